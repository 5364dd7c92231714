"""Which columns a table may have. A misspelt column, or a table of the other kind, is not read as something else."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import pyarrow as pa

from nearcast.errors import InvalidInput
from nearcast.geo.space import BOX_COLUMNS
from nearcast.model import KINDS, WINDOW_KINDS

GEOMETRY = "geometry"
WORDS = ("tokens", "text")
POINTS = ("x", "y", "lon", "lat", "lng", "longitude", "latitude")
RADII = ("km", "m", "miles", "radius_km")
TIMES = ("time", "expires")
MESSAGE_COLUMNS = ("id", *WORDS, *POINTS, *BOX_COLUMNS, *TIMES)
_SUBSCRIPTION_COLUMNS = (
    "id",
    "expression",
    "tokens",
    "region",
    *POINTS,
    *RADII,
    *BOX_COLUMNS,
    "kind",
    "window",
    "expires",
)

_MEANT = {
    "query": "expression",
    "keywords": "tokens",
    "words": "tokens",
    "terms": "tokens",
    "geometry": "region",
    "geom": "region",
    "polygon": "region",
    "wkt": "region",
    "geojson": "region",
    "radius": "km",
    "distance": "km",
    "expiry": "expires",
    "valid_until": "expires",
    "subscription": "id",
    "subscription_id": "id",
}
"""Names that people choose, and what they mean here."""

_OF_PANDAS = "__index_level_"  # begins the column that Arrow makes of an index of pandas

_MISSPELT = 0.8  # how alike a column of messages and a known name must be for the column to count as misspelt


def subscription_columns() -> list[str]:
    """All columns that a subscriptions table may have: parameters of registered kinds included."""
    kinds = [*KINDS.values(), *WINDOW_KINDS.values()]
    return [*dict.fromkeys([*_SUBSCRIPTION_COLUMNS, *(own.name for kind in kinds for own in kind.parameters)])]


def geometry_extension(field: pa.Field) -> str:
    """The name of the extension type of a column, or an empty text."""
    if isinstance(field.type, pa.BaseExtensionType):
        return str(field.type.extension_name)
    return str((field.metadata or {}).get(b"ARROW:extension:name", b"").decode())


def check_subscription_columns(schema: pa.Schema, allowed: tuple[str, ...] | None) -> None:
    """Raise InvalidInput for a table that looks like messages, and for a column that subscriptions do not have."""
    names = schema.names
    if not names:
        raise InvalidInput("the table of subscriptions has no columns")
    if allowed is None:
        return
    known, there = subscription_columns(), set(names)
    if there & {"text", "time"} - {*allowed} and not there & {"expression", "region", "threshold"}:
        own = next(name for name in names if name in ("text", "time"))
        raise InvalidInput(
            f"this looks like a messages table: it has a column '{own}'. Subscriptions have an expression or tokens; "
            "are the two tables swapped?",
            column=own,
        )
    for name in names:
        is_place = name == GEOMETRY and geometry_extension(schema.field(name)).startswith("geoarrow.")
        if name not in known and name not in allowed and not (is_place or name.startswith(_OF_PANDAS)):
            raise InvalidInput(
                f"subscriptions have no such column; {_hint(name, known)}, drop it, or name it as payload with "
                f"extra=['{name}'] (--extra {name})",
                column=name,
            )


def check_message_columns(names: Sequence[str], allowed: tuple[str, ...] | None) -> None:
    """Raise InvalidInput for a table that looks like subscriptions, and for a misspelt column.

    Any further column is an attribute. One is misspelt if it is nearly the name of a column that is missing. `allowed`
    are never misspelt: columns that `keep=` or a filter names.
    """
    if not names:
        raise InvalidInput("the table of messages has no columns")
    if allowed is None:
        return
    own = _sign_of_subscriptions([name for name in names if name not in allowed])
    if own is not None:
        raise InvalidInput(
            f"this looks like a subscriptions table: it has a column '{own}' and no text. Are the two tables swapped?",
            column=own,
        )
    absent = _absent(set(names))
    for name in names:
        if name not in MESSAGE_COLUMNS and name not in allowed:
            meant = _misspelt(name, absent)
            if meant is not None:
                raise InvalidInput(
                    f"is it '{meant}'? Rename it, or call it an attribute with extra=['{name}'] (--extra {name})",
                    column=name,
                )


def _sign_of_subscriptions(names: Sequence[str]) -> str | None:
    """A column that subscriptions have and messages without a text do not."""
    if "text" in names or "time" in names:
        return None
    signs = ["expression", *("threshold", "km", "miles", "radius_km") * ("tokens" in names)]
    return next((sign for sign in signs if sign in names), None)


def _absent(there: set[str]) -> list[str]:
    """The columns of messages that the table lacks. A place and words may be given in one of several ways."""
    absent = [name for name in ("id", *TIMES) if name not in there]
    absent += [] if there & {*WORDS} else WORDS
    has_place = any(
        there >= {*place} for place in (("x", "y"), ("lon", "lat"), ("lng", "lat"), POINTS[5:], BOX_COLUMNS)
    )
    return absent + ([] if has_place else [name for name in (*POINTS, *BOX_COLUMNS) if name not in there])


def _misspelt(name: str, absent: Sequence[str]) -> str | None:
    """The absent column that this name was meant to be. Of short names only capitals are noticed."""
    written = name.strip().lower()
    if written in absent:
        return written
    near = difflib.get_close_matches(written, [each for each in absent if len(each) > 2], 1, _MISSPELT)
    return near[0] if near else None


def _hint(name: str, known: Sequence[str]) -> str:
    meant = _MEANT.get(name.strip().lower())
    near = [meant] if meant in known else difflib.get_close_matches(name.strip().lower(), known, 1, 0.6)
    return f"do you mean '{near[0]}'? Rename it" if near else f"there are {', '.join(known)}. Rename it"

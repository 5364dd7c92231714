"""What a caller may ask of kind `rank`, one subscription at a time."""

from __future__ import annotations

from typing import Any

from nearcast.errors import InvalidInput
from nearcast.geo.region import Region
from nearcast.geo.space import Space
from nearcast.tables.ranks import DEFAULT_ALPHA
from nearcast.text.clauses import Clause

SERVED = ("match", "rank")


def asked(kind: str, alpha: Any, threshold: Any) -> tuple[float, float] | None:
    """Alpha and threshold, each a number from 0 to 1; None where the kind is not `rank`."""
    if kind not in SERVED:
        raise InvalidInput(f"kind= is {' or '.join(repr(name) for name in SERVED)}, not {kind!r}", column="kind")
    if kind != "rank":
        if alpha is not None or threshold is not None:
            raise InvalidInput("alpha= and threshold= go with kind='rank'", column="kind")
        return None
    if threshold is None:
        raise InvalidInput("kind='rank' needs threshold=, the least score to deliver, from 0 to 1", column="threshold")
    return _share(DEFAULT_ALPHA if alpha is None else alpha, "alpha"), _share(threshold, "threshold")


def _share(value: Any, name: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not 0.0 <= number <= 1.0:
        raise InvalidInput(f"{name}= is a number from 0 to 1, not {value!r}", column=name)
    return number


def require_rankable(wanted: list[Clause], region: Region, space: Space) -> None:
    """Plain words, and a place that is one box."""
    if len(wanted) != 1 or wanted[0].forbidden:
        raise InvalidInput("kind='rank' takes plain words, not OR or NOT", column="expression")
    if not region.is_box or len(region.boxes(space)) != 1:
        raise InvalidInput(f"kind='rank' takes box= or no place, not {region.describe()}", column="region")

"""`keep=`: columns of messages and subscriptions that matches carry along, the distance, and the matched words."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from nearcast.errors import InvalidInput

MESSAGE, SUBSCRIPTION, COMPUTED = "message", "subscription", "computed"
DISTANCE, WORDS = "distance_km", "words"
RESULT_COLUMNS = ("message", "subscription", "score")


class Kept(NamedTuple):
    """A column of the result."""

    name: str  # in the result, as it was asked for
    side: str  # MESSAGE, SUBSCRIPTION or COMPUTED
    column: str  # in the table of that side


def keep_names(keep: Iterable[str] | None) -> list[str]:
    """The names as a list, each once."""
    names = [] if keep is None else [keep] if isinstance(keep, str) else keep
    if not isinstance(names, Iterable) or getattr(names, "ndim", 1) == 0:
        raise InvalidInput(f"keep= is a list of column names, not {keep!r}", column="keep")
    names = [*names]
    for name in names:
        if not isinstance(name, str):
            raise InvalidInput(f"keep= is a list of column names, not of {name!r}", column="keep")
    return [*dict.fromkeys(names)]


def read_keep(keep: Iterable[str] | None, messages: Sequence[str], subscriptions: Sequence[str] | None) -> list[Kept]:
    """What `keep` names, given the columns of both tables. `subscriptions` is None where they are not kept.

    `text` is a column of that table which has it; `message.text` and `subscription.text` say which. `distance_km` and
    `words` are computed.
    """
    return [_kept(name, messages, subscriptions) for name in keep_names(keep)]


def _kept(name: str, messages: Sequence[str], subscriptions: Sequence[str] | None) -> Kept:
    if name in (DISTANCE, WORDS):
        return Kept(name, COMPUTED, name)
    side, dot, column = name.partition(".")
    if dot and side in (MESSAGE, SUBSCRIPTION):
        columns = messages if side == MESSAGE else subscriptions
        if columns is None:
            raise InvalidInput(f"'{name}': {NOT_KEPT}", column="keep")
        if column in columns:
            return Kept(name, side, column)
    in_messages, in_subscriptions = name in messages, name in (subscriptions or ())
    if in_messages and in_subscriptions:
        reason = f"both tables have a column '{name}'; keep 'message.{name}' or 'subscription.{name}'"
        raise InvalidInput(reason, column="keep")
    if not (in_messages or in_subscriptions):
        raise InvalidInput(_unknown(name, messages, subscriptions), column="keep")
    side = MESSAGE if in_messages else SUBSCRIPTION
    if name in RESULT_COLUMNS:
        raise InvalidInput(f"matches have a column '{name}' of their own; keep '{side}.{name}'", column="keep")
    return Kept(name, side, name)


NOT_KEPT = "the subscriptions were not kept (keep_source=False), so matches carry columns of messages alone"


def _unknown(name: str, messages: Sequence[str], subscriptions: Sequence[str] | None) -> str:
    known = [*dict.fromkeys([*messages, *(subscriptions or ()), DISTANCE, WORDS])]
    known += [f"{MESSAGE}.{each}" for each in messages] + [f"{SUBSCRIPTION}.{each}" for each in subscriptions or ()]
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(known[: len(known) // 2 + 1])}"
    more = f"; {NOT_KEPT}" if subscriptions is None else ""
    return f"neither table has a column '{name}'; {hint}{more}"

"""Validation of arguments of `Engine.subscribe` for kind `top` and for `follow=True`. Few engines import it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from nearcast.engine.kind_arguments import OF_A_WINDOW, number_of, refuse_others
from nearcast.engine.live.best_lists import Wanted
from nearcast.errors import InvalidInput
from nearcast.geo.region import BoxRegion, Region
from nearcast.model import TOP
from nearcast.text.clauses import Clause
from nearcast.topk.window_size import WindowSize


def read_top(given: Mapping[str, Any], clauses: list[Clause], place: Region) -> Wanted:
    """The arguments of a subscription of kind `top`: plain words at a point."""
    if not isinstance(place, BoxRegion) or (place.xmin, place.ymin) != (place.xmax, place.ymax):
        reason = f"kind='top' takes a point, near=(x, y) without km=, not {place.describe()}"
        raise InvalidInput(reason, column="region")
    if len(clauses) != 1 or clauses[0].forbidden or not clauses[0].required:
        raise InvalidInput("kind='top' takes plain words, one or more, not OR or NOT", column="expression")
    if given.get("window") is None:
        reason = "kind='top' needs window=, as in window=100_000 or window=timedelta(hours=1)"
        raise InvalidInput(reason, column="window")
    own = {parameter.name: parameter for parameter in TOP.parameters}
    refuse_others(set(given) - set(own) - set(OF_A_WINDOW))
    values = {name: number_of(given.get(name), parameter, TOP) for name, parameter in own.items()}
    window, farthest = WindowSize.of(given["window"]), _farthest(given.get("max_dist"))
    return Wanted(clauses[0].required, place.xmin, place.ymin, int(values["k"]), values["alpha"], window, farthest)


def _farthest(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not (is_number and math.isfinite(value) and value > 0):
        reason = f"max_dist= is a positive number, the distance at which place counts 0, not {value!r}"
        raise InvalidInput(reason, column="max_dist")
    return None if value is None else float(value)


def read_follow(kind: str, given: Mapping[str, Any], follow: bool, dwell: timedelta | None) -> int:
    """The dwell time of a subscription that follows, in microseconds."""
    if not follow:
        raise InvalidInput("dwell= goes with follow=True", column="dwell")
    if kind != "match":
        raise InvalidInput(f"follow=True goes with kind='match', not {kind!r}", column="kind")
    refuse_others(set(given))
    if dwell is None:
        return 0
    if not isinstance(dwell, timedelta) or dwell < timedelta(0):
        raise InvalidInput(f"dwell= is a timedelta from 0 on, not {dwell!r}", column="dwell")
    return dwell // timedelta(microseconds=1)

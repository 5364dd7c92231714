"""What a stateful job is: its kind, its options, and where its shards keep their states. Small: tasks get it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from nearcast.errors import InvalidInput
from nearcast.tables import OnBad

MESSAGES, MOVES, CHANGES = "messages", "moves", "changes"
INPUTS = (CHANGES, MOVES, MESSAGES)
"""In the order in which events of one time take effect."""

KINDS_OF_JOBS = ("top", "moving", "mixed")


class StatefulJob(NamedTuple):
    """A job whose shards step their states from micro-batch to micro-batch."""

    kind: str  # one of KINDS_OF_JOBS
    n_shards: int
    folder: str  # of the states
    options: Mapping[str, Any]  # JSON values, for the constructor of TopK, Moving or Engine
    delay: int = 0  # microseconds that events wait for earlier ones
    on_bad: OnBad = "skip"
    start: str = ""  # a folder in `folder`: the first subscriptions of each shard, and weights
    has_names: bool = False  # whether the ids of subscriptions are strings


def delay_of(delay: Any) -> int:
    """A delay as microseconds."""
    if not isinstance(delay, timedelta) or delay < timedelta(0):
        raise InvalidInput(f"delay={delay!r} is a timedelta of 0 or more: how long events wait for earlier ones")
    return delay // timedelta(microseconds=1)


def checked_shards(n_shards: Any) -> int:
    if isinstance(n_shards, bool) or not isinstance(n_shards, int) or not 1 <= n_shards <= 10_000:
        raise InvalidInput(f"shards={n_shards!r} is a whole number from 1 to 10,000")
    return n_shards

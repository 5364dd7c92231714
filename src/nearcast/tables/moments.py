"""Moments as arguments: what `advance(now)` and `now=` take."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import numpy as np

from nearcast.errors import InvalidInput
from nearcast.model import NEVER, NO_TIME

Time = datetime | np.datetime64 | str | int
"""A moment: a datetime (UTC unless it has a zone), an ISO string, or microseconds since 1970."""


def read_moment(now: Time) -> int:
    """Microseconds since 1970."""
    if isinstance(now, datetime):
        now = _stamp(now)
    elif isinstance(now, str):
        now = _parsed(now)
    if isinstance(now, np.datetime64):
        moment = now.astype("datetime64[us]").astype(np.int64)
        if moment == NO_TIME:
            raise InvalidInput("the time is NaT; it must be a moment", column="now")
        return int(moment)
    if isinstance(now, bool) or not isinstance(now, int | np.integer):
        raise InvalidInput(f"{now!r} is no time; give a datetime, an ISO string or microseconds", column="now")
    if not NO_TIME < now < NEVER:
        raise InvalidInput(f"{str(now)[:40]} is no time: microseconds are within int64", column="now")
    return int(now)


def _stamp(moment: datetime) -> np.datetime64:
    try:
        return np.datetime64(moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment, "us")
    except OverflowError:
        raise InvalidInput(f"{moment} is no time in UTC", column="now") from None


def present() -> int:
    """The present in microseconds since 1970."""
    return time.time_ns() // 1000


def _parsed(text: str) -> np.datetime64:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"'{text}' is no time; write it as 2026-01-31T12:00:00Z", column="now") from None
    return _stamp(moment)

"""Arguments that tables and objects of several packages take: ids, and moments."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import numpy as np

from nearcast.errors import InvalidInput
from nearcast.model import NO_TIME

Time = datetime | np.datetime64 | str | int
"""A moment: a datetime (UTC unless it has a zone), an ISO string, or microseconds since 1970."""


def read_ids(ids: Any) -> np.ndarray:
    """int64[n], of one id or several."""
    values = np.atleast_1d(np.asarray(list(ids) if isinstance(ids, Iterable) and not isinstance(ids, str) else ids))
    if values.ndim != 1 or (len(values) and values.dtype.kind not in "iu"):
        shown = f": {ids!r}" if isinstance(ids, str | float) else ""
        raise InvalidInput(f"ids are whole numbers, not {values.dtype}{shown}", column="id")
    return values.astype(np.int64)


def read_moment(now: Time) -> int:
    """Microseconds since 1970."""
    if isinstance(now, datetime):
        now = np.datetime64(now.astimezone(UTC).replace(tzinfo=None) if now.tzinfo else now, "us")
    elif isinstance(now, str):
        now = _parsed(now)
    if isinstance(now, np.datetime64):
        moment = now.astype("datetime64[us]").astype(np.int64)
        if moment == NO_TIME:
            raise InvalidInput("the time is NaT; it must be a moment", column="now")
        return int(moment)
    if isinstance(now, bool) or not isinstance(now, int | np.integer):
        raise InvalidInput(f"{now!r} is no time; give a datetime, an ISO string or microseconds", column="now")
    return int(now)


def _parsed(text: str) -> np.datetime64:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"'{text}' is no time; write it as 2026-01-31T12:00:00Z", column="now") from None
    return np.datetime64(moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment, "us")

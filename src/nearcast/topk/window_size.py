"""The size of a window: a number of messages, or a period."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any, NamedTuple

import numpy as np

from nearcast.errors import InvalidInput

LARGEST_COUNT = 1 << 30
"""Arrivals are numbered by int32, and the numbers of a whole window must fit."""

_UNITS = {
    "s": 1_000_000,
    "sec": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
    "day": 86_400_000_000,
    "days": 86_400_000_000,
}
_PERIOD = re.compile(rf"\s*(\d+(?:\.\d+)?)\s*({'|'.join(_UNITS)})\s*")
_RULE = (
    f"a window is a number of messages from 1 to {LARGEST_COUNT:,}, or a period such as timedelta(hours=1) or '90min'"
)


class WindowSize(NamedTuple):
    """The last `n_messages` messages or, if that is 0, those of the last `period_us` microseconds."""

    n_messages: int
    period_us: int = 0

    @property
    def is_period(self) -> bool:
        return self.n_messages == 0

    @classmethod
    def of(cls, window: Any) -> WindowSize:
        """The size of the argument: a whole number, a timedelta, or a text such as '100000', '1h' or '30 min'."""
        if isinstance(window, WindowSize):
            return window
        if isinstance(window, str):
            return cls._parsed(window)
        if isinstance(window, timedelta):
            period_us = window // timedelta(microseconds=1)
            if 0 < period_us < 1 << 62:
                return cls(0, period_us)
        elif isinstance(window, int | np.integer) and not isinstance(window, bool):
            if 0 < window <= LARGEST_COUNT:
                return cls(int(window))
        shown = str(window) if isinstance(window, timedelta) else repr(window)
        raise InvalidInput(f"window is {shown}; {_RULE}", column="window")

    @classmethod
    def _parsed(cls, text: str) -> WindowSize:
        if re.fullmatch(r"\s*[\d_]+\s*", text):
            return cls.of(int(text))
        found = _PERIOD.fullmatch(text)
        if found is None:
            raise InvalidInput(f"window is {text!r}; {_RULE}", column="window")
        return cls.of(timedelta(microseconds=round(float(found[1]) * _UNITS[found[2]])))

    def __str__(self) -> str:
        return str(timedelta(microseconds=self.period_us)) if self.is_period else f"{self.n_messages:,} messages"

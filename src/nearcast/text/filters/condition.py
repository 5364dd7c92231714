"""The conditions of a filter, and when they hold on the attributes of a message. All of a filter must hold."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d(?::?\d\d)?)?)?")
_WHOLE = re.compile(r"[+-]?\d+")

SORTS = (str, int, float, bool, Decimal, date)
"""The types of values that conditions hold on. A time is a date too."""

EQUAL, UNEQUAL = ("=", "in"), ("!=", "not in")
ORDERED = {
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}


@functools.lru_cache(maxsize=65_536)
def number_of(text: str) -> int | float | None:
    """The number that a text writes."""
    if not _NUMBER.fullmatch(text) or len(text) > 400:
        return None
    return int(text) if _WHOLE.fullmatch(text) else float(text)


@functools.lru_cache(maxsize=65_536)
def time_of(text: str) -> datetime | None:
    """The time that an ISO text writes, UTC unless it has a zone. Raises ValueError if there is no such day or hour."""
    if not _TIME.fullmatch(text):
        return None
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _time_or_none(text: str) -> datetime | None:
    try:
        return time_of(text)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Operand:
    """A value of a condition, as written. What it is compared as depends on the value of the message."""

    text: str
    is_quoted: bool = False
    """Texts are then compared as texts, even if both write numbers or times."""

    def __str__(self) -> str:
        escaped = self.text.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"' if self.is_quoted else self.text


@dataclass(frozen=True, slots=True)
class Condition:
    """A column, an operator, and one operand or the list of `in` and `not in`."""

    column: str
    operator: str
    operands: tuple[Operand, ...]

    def holds(self, value: Any) -> bool:
        """Whether it holds on the value of a message; never on None and NaN."""
        if value is None or value != value:
            return False
        if self.operator in EQUAL:
            return any(_is_equal(value, operand) for operand in self.operands)
        if self.operator in UNEQUAL:
            return not any(_is_equal(value, operand) for operand in self.operands)
        pair = _comparable(value, self.operands[0])
        return pair is not None and bool(ORDERED[self.operator](*pair))

    def __str__(self) -> str:
        name = self.column if re.fullmatch(r"[^\W\d][\w.]*", self.column) else str(Operand(self.column, True))
        values = ", ".join(map(str, self.operands))
        return f"{name} {self.operator} {f'({values})' if self.operator in ('in', 'not in') else values}"


def _is_equal(value: Any, operand: Operand) -> bool:
    if isinstance(value, str) and value == operand.text:
        return True
    if isinstance(value, bool):
        return operand.text.casefold() == str(value).casefold()
    if isinstance(value, str) and (operand.is_quoted or not _is_written(operand)):
        return False
    pair = _comparable(value, operand)
    return pair is not None and bool(pair[0] == pair[1])


def _is_written(operand: Operand) -> bool:
    """Whether the operand writes a number or a time."""
    return number_of(operand.text) is not None or _time_or_none(operand.text) is not None


def _comparable(value: Any, operand: Operand) -> tuple[Any, Any] | None:
    """(value, operand) as two numbers, times or texts; None if they are of different sorts."""
    number, time = number_of(operand.text), _time_or_none(operand.text)
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float | Decimal):
        return None if number is None else (value, number)
    if isinstance(value, date):
        return None if time is None else (_moment(value), time)
    if not isinstance(value, str):
        return None
    if operand.is_quoted or (number is None and time is None):
        return value, operand.text
    own = number_of(value) if number is not None else _time_or_none(value)
    return None if own is None else (own, time if number is None else number)


def _moment(value: date) -> datetime:
    """A date is its midnight; times without a zone are UTC."""
    if not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    return value if value.tzinfo else value.replace(tzinfo=UTC)

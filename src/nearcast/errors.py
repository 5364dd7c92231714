"""What can go wrong, by name. Every error of nearcast's own derives from NearcastError."""

from __future__ import annotations


class NearcastError(Exception):
    """The base of all errors that nearcast raises on purpose."""


class InvalidInput(NearcastError, ValueError):
    """A row of a table, or an argument, that cannot be accepted.

    `row` is the position in the table given (None where the fault is not one row's), `column` the column's name, and
    `reason` one sentence that says what is wrong and what would be right.
    """

    def __init__(self, reason: str, *, row: int | None = None, column: str | None = None) -> None:
        self.reason = reason
        self.row = row
        self.column = column
        where = [f"row {row}" if row is not None else "", f"column '{column}'" if column else ""]
        place = ", ".join(part for part in where if part)
        super().__init__(f"{place}: {reason}" if place else reason)


class ExpressionError(InvalidInput):
    """A boolean expression that cannot be read; `position` is the offending character, counted from 0."""

    def __init__(self, reason: str, expression: str, position: int) -> None:
        self.expression = expression
        self.position = position
        shown = expression.replace("\n", " ").replace("\t", " ")
        super().__init__(f"{reason} at character {position + 1}\n  {shown}\n  {' ' * position}^", column="expression")


class UnknownMethod(NearcastError, LookupError):
    """No method of that name is registered."""


class UnsupportedKind(NearcastError, ValueError):
    """The method chosen cannot serve this kind of subscription."""


class CorruptFile(NearcastError):
    """A stored file is truncated, changed, or not what its manifest says. Nothing of it was used."""


class ForeignVersion(NearcastError):
    """A stored file was written by a version of the format, or of the analyser, that this version cannot read."""


class MissingPart(NearcastError):
    """Something outside of nearcast that it needs is not there; the text says what, and how to get it."""

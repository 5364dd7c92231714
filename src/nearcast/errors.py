"""The exceptions of nearcast, all derived from NearcastError."""

from __future__ import annotations


class NearcastError(Exception):
    """The base class of all exceptions that nearcast raises deliberately."""


class NearcastWarning(UserWarning):
    """The base class of all warnings that nearcast gives."""


class MadeIds(NearcastWarning):
    """A table without a column `id` was given: row numbers, from 0, are the ids."""


class MostlyRejected(NearcastWarning):
    """More than half of the rows of a table were bad, and were skipped."""


class InvalidInput(NearcastError, ValueError):
    """A row of a table, or an argument, is not valid.

    `row` is the number of the row, counted from 1 without a header (None if the error does not concern a single row),
    `column` the name of the column, `file` the file that the table is from (None if it is from none), and `reason` a
    sentence with the value, the rule and the remedy.
    """

    def __init__(self, reason: str, *, row: int | None = None, column: str | None = None) -> None:
        """`row` is the position in the table, from 0."""
        self.reason = reason
        self.row = None if row is None else row + 1
        self.column = column
        self.file: str | None = None
        super().__init__(self._located(None))

    def in_file(self, file: str, line: int | None = None) -> InvalidInput:
        """The same error, which names the file and, if it is known, the line."""
        self.file = file
        self.args = (self._located(line), *self.args[1:])
        return self

    def _located(self, line: int | None) -> str:
        row = "" if self.row is None else f"row {self.row}" + ("" if line is None else f" (line {line})")
        where = [self.file or "", row, f"column '{self.column}'" if self.column else ""]
        place = ", ".join(part for part in where if part)
        return f"{place}: {self.reason}" if place else self.reason


_SHOWN_AROUND = 500
"""Characters of an expression that an error shows before and behind the mistake."""


class ExpressionError(InvalidInput):
    """A boolean expression cannot be parsed; `position` is the index of the wrong character, from 0."""

    def __init__(self, reason: str, expression: str, position: int) -> None:
        self.expression = expression
        self.position = position
        first = max(0, position - _SHOWN_AROUND)
        shown = expression[first : position + _SHOWN_AROUND].replace("\n", " ").replace("\t", " ")
        mark = " " * (position - first)
        super().__init__(f"{reason} at character {position + 1}\n  {shown}\n  {mark}^", column="expression")


class UnknownId(InvalidInput, KeyError):
    """No subscription has this id."""

    def __str__(self) -> str:  # a KeyError would show the quotes of a string
        return str(self.args[0])


class UnknownTerm(InvalidInput, IndexError):
    """A vocabulary has no term of this number."""


class UnknownMethod(InvalidInput, LookupError):
    """No method of that name is registered."""


class UnsupportedKind(NearcastError, ValueError):
    """The chosen method does not support this kind of subscription."""


class CorruptFile(NearcastError):
    """A stored file is truncated, modified, or differs from its manifest. None of it was used."""


class ForeignVersion(NearcastError):
    """A stored file has a version of the format or of the analyser that this version of nearcast cannot read."""


class MissingPart(NearcastError):
    """A dependency outside nearcast is missing; the message names it and says how to install it."""


class DataLoss(NearcastError):
    """A stream cannot read input that it still needs, such as trimmed entries. It stopped instead of leaving it out."""


class StorageError(NearcastError, OSError):
    """A file system or an object store does not answer, refuses, or is of an unknown kind. The message names the URL
    and the remedy.
    """


class NotReplaced(StorageError, FileExistsError):
    """A save names a file, or a folder with other files than a save of the same kind. Nothing was written."""


class NotSaved(StorageError, FileNotFoundError):
    """Nothing of this kind was saved at this path."""

"""The subscriptions as they were given: Arrow rows by the numbers of their ids.

The rows lie in parts, in the order in which they came. A part may also say which numbers are gone. A later part wins
over an earlier one. Parts of like size are merged: so there are few, and a row is copied O(log n) times.
A `Sources` never changes: readers keep theirs.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.arrays.arrow import one_array, stream_bytes, stream_table
from nearcast.arrays.ragged import distinct
from nearcast.errors import CorruptFile, InvalidInput

_NONE = np.empty(0, np.int64)
ABSENT = -1


class _Part:
    """Rows with different numbers, and numbers that are gone since."""

    def __init__(self, numbers: np.ndarray, table: pa.Table | None, gone: np.ndarray = _NONE) -> None:
        self.numbers, self.table, self.gone = numbers, table, gone
        self.size = len(numbers) + len(gone)

    @cached_property
    def _ordered(self) -> tuple[np.ndarray, np.ndarray | None]:
        """(numbers in ascending order, their rows). Most tables come in this order; others are sorted on first use."""
        if (self.numbers[1:] > self.numbers[:-1]).all():
            return self.numbers, None
        order = np.argsort(self.numbers, kind="stable")
        return self.numbers[order], order

    def rows_of(self, wanted: np.ndarray) -> np.ndarray:
        """int64[n]: the row of each number, or ABSENT."""
        numbers, order = self._ordered
        if len(numbers) == 0:
            return np.full(len(wanted), ABSENT)
        at = np.minimum(np.searchsorted(numbers, wanted), len(numbers) - 1)
        rows = at if order is None else order[at]
        return np.where(numbers[at] == wanted, rows, ABSENT)

    def has_gone(self, wanted: np.ndarray) -> np.ndarray:
        return np.isin(wanted, self.gone)

    @property
    def nbytes(self) -> int:
        table = 0 if self.table is None else int(self.table.nbytes)
        return table + int(self.numbers.nbytes) + int(self.gone.nbytes)


class Sources:
    """All subscriptions that are there, as they were given."""

    def __init__(self, parts: tuple[_Part, ...] = ()) -> None:
        self._parts = parts

    @property
    def nbytes(self) -> int:
        """Bytes of the kept rows. A table of the caller's that is kept without a copy counts too."""
        return sum(part.nbytes for part in self._parts)

    def with_rows(self, numbers: np.ndarray, table: pa.Table) -> Sources:
        """With these rows, which replace older ones of the same numbers."""
        return self._added(_Part(numbers, table)) if len(numbers) else self

    def without(self, numbers: np.ndarray) -> Sources:
        """Without the rows of these numbers."""
        known = numbers[self.has(numbers)] if len(numbers) and self._parts else _NONE
        return self._added(_Part(_NONE, None, distinct(known))) if len(known) else self

    def _added(self, part: _Part) -> Sources:
        parts = [*self._parts]
        while parts and parts[-1].size <= 2 * part.size:
            merged = _merged(parts[-1], part, is_first=len(parts) == 1)
            if merged is None:
                break
            parts.pop()
            part = merged
        return Sources((*parts, part))

    def numbers(self) -> np.ndarray:
        """int64[n]: the numbers of all rows, in ascending order."""
        found = distinct(np.sort(np.concatenate([_NONE, *(part.numbers for part in self._parts)])))
        return found[self.has(found)]

    def has(self, wanted: np.ndarray) -> np.ndarray:
        """bool[n]: whether there is a row of each number."""
        return self._places(wanted)[0] != ABSENT

    def _places(self, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(int64[n]: the part of each number, or ABSENT; int64[n]: its row there)."""
        parts, rows = np.full(len(wanted), ABSENT), np.zeros(len(wanted), np.int64)
        is_open = np.ones(len(wanted), bool)
        for at in range(len(self._parts) - 1, -1, -1):
            part, left = self._parts[at], np.flatnonzero(is_open)
            found = part.rows_of(wanted[left])
            here = left[found != ABSENT]
            parts[here], rows[here] = at, found[found != ABSENT]
            is_open[here] = False
            if len(part.gone):
                left = np.flatnonzero(is_open)
                is_open[left[part.has_gone(wanted[left])]] = False
        return parts, rows

    @property
    def column_names(self) -> list[str]:
        """The columns of all parts, in the order in which they came."""
        tables = (part.table for part in self._parts if part.table is not None)
        return [*dict.fromkeys(name for table in tables for name in table.column_names)]

    def take(self, numbers: np.ndarray, columns: list[str] | None = None) -> pa.Table:
        """The rows of these numbers, in this order. Numbers without a row, and absent columns, have nulls."""
        names = self.column_names if columns is None else columns
        parts, rows = self._places(numbers)
        return pa.table({name: self._column(name, parts, rows) for name in names})

    def _column(self, name: str, parts: np.ndarray, rows: np.ndarray) -> pa.Array:
        pieces, places = [], []
        for at, part in enumerate(self._parts):
            here = np.flatnonzero(parts == at)
            if len(here) and part.table is not None and name in part.table.column_names:
                pieces.append(one_array(part.table[name].take(pa.array(rows[here]))))
                places.append(here)
        if not pieces:
            tables = [part.table for part in self._parts if part.table is not None]
            types = [table.schema.field(name).type for table in tables if name in table.column_names]
            return pa.nulls(len(rows), types[0] if types else pa.null())
        back = np.full(len(rows), ABSENT)
        back[np.concatenate(places)] = np.arange(sum(map(len, places)))
        joined = _joined([pa.table({name: piece}) for piece in pieces], name)[name]
        return one_array(joined.take(pa.array(back, mask=back == ABSENT)))

    def one(self, number: int) -> dict[str, Any] | None:
        """One row as it was given, without columns that it has no value for; None if there is none."""
        parts, rows = self._places(np.array([number], np.int64))
        if parts[0] == ABSENT:
            return None
        table = self._parts[parts[0]].table
        assert table is not None
        row = table.slice(int(rows[0]), 1).to_pylist()[0]
        return {name: value for name, value in row.items() if value is not None}

    # -- files

    def arrays(self) -> dict[str, np.ndarray]:
        """All rows as one table in Arrow's stream format, and their numbers."""
        numbers = self.numbers()
        return {"numbers": numbers, "table": stream_bytes(self.take(numbers))}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Sources:
        """The result of `arrays`. The table is not copied."""
        if not {"numbers", "table"} <= set(arrays):
            raise CorruptFile("the kept subscriptions lack an array")
        table = stream_table(arrays["table"])
        if table.num_rows != len(arrays["numbers"]):
            raise CorruptFile("the kept subscriptions do not fit their ids")
        return cls((_Part(np.asarray(arrays["numbers"]), table),))


def _merged(older: _Part, newer: _Part, is_first: bool) -> _Part | None:
    """Both parts as one; None if their columns have different types."""
    hidden = np.isin(older.numbers, newer.numbers) | newer.has_gone(older.numbers)
    kept = np.flatnonzero(~hidden)
    older_rows = None if older.table is None else older.table.take(pa.array(kept))
    tables = [table for table in (older_rows, newer.table) if table is not None]
    try:
        table = pa.concat_tables(tables, promote_options="permissive").combine_chunks() if tables else None
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return None
    gone = _NONE if is_first else distinct(np.sort(np.concatenate([older.gone, newer.gone])))
    return _Part(np.concatenate([older.numbers[kept], newer.numbers]), table, gone)


def _joined(tables: list[pa.Table], name: str) -> pa.Table:
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        kinds = ", ".join(dict.fromkeys(str(table.schema.field(name).type) for table in tables))
        reason = f"the subscriptions have values of different types here ({kinds}); give them the same one"
        raise InvalidInput(reason, column=name) from None

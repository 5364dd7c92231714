"""Bad rows: records the first fault of each row, then raises it or returns a table of rejects."""

from __future__ import annotations

import json
import threading
import warnings
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from nearcast.errors import InvalidInput, MostlyRejected

OnBad = Literal["raise", "skip"]

REJECTS_SCHEMA = pa.schema(
    [("row", pa.int64()), ("column", pa.string()), ("reason", pa.string()), ("record", pa.string())]
)
"""`row` is the number of the row, from 1, and `record` the original row as JSON."""
_NO_REJECTS = REJECTS_SCHEMA.empty_table()


class Faults:
    """The faults of the rows of one table: the first of each row."""

    def __init__(self, n_rows: int, on_bad: OnBad) -> None:
        if not isinstance(on_bad, str) or on_bad not in ("raise", "skip"):
            raise InvalidInput(f"on_bad is 'raise' or 'skip', not {on_bad!r}")
        self._on_bad = on_bad
        self._faults: dict[int, tuple[str, str]] = {}  # by row: column and reason
        self.is_bad = np.zeros(n_rows, bool)

    def add(self, row: int, column: str, reason: str) -> None:
        """Record a fault unless the row has one."""
        if not self.is_bad[row]:
            self.is_bad[row] = True
            self._faults[int(row)] = (column, reason)

    def add_where(self, mask: np.ndarray, column: str, reason: str) -> None:
        """Record the same fault for all rows of the mask that have none."""
        for row in np.flatnonzero(mask & ~self.is_bad):
            self.add(int(row), column, reason)

    @property
    def good_rows(self) -> np.ndarray:
        return np.flatnonzero(~self.is_bad)

    def raise_or_reject(self, table: pa.Table) -> pa.Table:
        """Raise the fault of the first bad row, or return the rejects table, as `on_bad` demands."""
        if not self._faults:
            return _NO_REJECTS
        if self._on_bad == "raise":
            row = min(self._faults)
            column, reason = self._faults[row]
            more = f" (and {len(self._faults) - 1} more bad rows)" if len(self._faults) > 1 else ""
            raise InvalidInput(reason + more, row=row, column=column)
        rows = sorted(self._faults)
        columns, reasons = zip(*(self._faults[row] for row in rows), strict=True)
        records = table.take(pa.array(rows, pa.int64())).to_pylist()
        texts = [json.dumps(record, default=str, ensure_ascii=False) for record in records]
        numbers = [row + 1 for row in rows]
        return pa.table({"row": numbers, "column": columns, "reason": reasons, "record": texts}, schema=REJECTS_SCHEMA)


def rejected_positions(rejects: pa.Table) -> np.ndarray:
    """int64[n]: where the rejected rows are in their table, from 0."""
    return np.asarray(rejects["row"].to_numpy() - 1)


class _OfThread(threading.local):
    table: pa.Table | None = None


class WithRejects:
    """What takes tables with on_bad="skip"."""

    def __init__(self) -> None:
        self._rejects = _OfThread()

    @property
    def rejects(self) -> pa.Table | None:
        """The bad rows of this thread's last call with a table; None if there was none, or if it raised."""
        return self._rejects.table

    @rejects.setter
    def rejects(self, rejects: pa.Table | None) -> None:
        self._rejects.table = rejects


class NothingAccepted(InvalidInput):
    """No row of a table is good. `rejects` has all of them."""

    def __init__(self, rejects: pa.Table, what: str) -> None:
        super().__init__(f"all {rejects.num_rows:,} rows of the {what} are bad; {first_fault(rejects)}")
        self.rejects, self._what = rejects, what

    def __reduce__(self) -> tuple[Any, ...]:
        return NothingAccepted, (self.rejects, self._what)


def require_accepted(rejects: pa.Table, n_rows: int, what: str) -> None:
    """Raise NothingAccepted if all rows were rejected; warn if more than half were."""
    n_bad = rejects.num_rows
    if n_bad and n_bad == n_rows:
        raise NothingAccepted(rejects, what)
    if 2 * n_bad > n_rows:
        text = f"{n_bad:,} of the {n_rows:,} rows of the {what} are bad and were skipped; {first_fault(rejects)}"
        warnings.warn(text, MostlyRejected, stacklevel=3)


def first_fault(rejects: pa.Table) -> str:
    """The first bad row, in words."""
    first = rejects.slice(0, 1).to_pylist()[0]
    return f"the first is row {first['row']}, column '{first['column']}': {first['reason']}"

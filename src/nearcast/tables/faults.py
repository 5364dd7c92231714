"""Bad rows: the first fault of each is kept, and either raised or written to a rejects table."""

from __future__ import annotations

import json
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.errors import InvalidInput

OnBad = Literal["raise", "skip"]

REJECTS_SCHEMA = pa.schema(
    [("row", pa.int64()), ("column", pa.string()), ("reason", pa.string()), ("record", pa.string())]
)
"""`record` is the row as it came, as JSON."""
_NO_REJECTS = REJECTS_SCHEMA.empty_table()


class Fault(NamedTuple):
    column: str
    reason: str


class Faults:
    """Collects faults of the rows of one table."""

    def __init__(self, n_rows: int, on_bad: OnBad) -> None:
        if on_bad not in ("raise", "skip"):
            raise InvalidInput(f"on_bad is 'raise' or 'skip', not {on_bad!r}")
        self._on_bad = on_bad
        self._faults: dict[int, Fault] = {}
        self.is_bad = np.zeros(n_rows, bool)

    def add(self, row: int, column: str, reason: str) -> None:
        if not self.is_bad[row]:
            self.is_bad[row] = True
            self._faults[int(row)] = Fault(column, reason)

    def add_where(self, mask: np.ndarray, column: str, reason: str) -> None:
        for row in np.flatnonzero(mask & ~self.is_bad):
            self.add(int(row), column, reason)

    @property
    def good_rows(self) -> np.ndarray:
        return np.flatnonzero(~self.is_bad)

    def raise_or_reject(self, table: pa.Table) -> pa.Table:
        """Raise the first fault, or return the rejects table."""
        if not self._faults:
            return _NO_REJECTS
        if self._on_bad == "raise":
            row = min(self._faults)
            fault = self._faults[row]
            more = f" (and {len(self._faults) - 1} more bad rows)" if len(self._faults) > 1 else ""
            raise InvalidInput(fault.reason + more, row=row, column=fault.column)
        rows = sorted(self._faults)
        records = table.take(pa.array(rows, pa.int64())).to_pylist()
        return pa.table(
            [
                pa.array(rows, pa.int64()),
                pa.array([self._faults[row].column for row in rows], pa.string()),
                pa.array([self._faults[row].reason for row in rows], pa.string()),
                pa.array([json.dumps(record, default=str, ensure_ascii=False) for record in records], pa.string()),
            ],
            schema=REJECTS_SCHEMA,
        )

"""What all readers of raw files give: blocks of records, each with its place in the file, and faults."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.errors import NearcastError

MOST_SHOWN = 65_536
"""Characters of a broken record that a reject keeps."""


class BrokenFile(NearcastError):
    """A file that cannot be read on from here; what was read before stands."""


class Fault(NamedTuple):
    """A record that is no row of a table, and why."""

    position: int  # the line or row within the file, from 1
    column: str | None
    reason: str
    record: str


class Block(NamedTuple):
    """Some records of one file. What the reader counted must be rows plus faults: the ingest checks it."""

    table: pa.Table  # columns by their names in the contract, values as they came
    positions: np.ndarray  # int64[n_rows]  the line or row of each within the file, from 1
    faults: list[Fault]
    n_read: int


def printable(record: str | bytes) -> str:
    """A broken record as text that fits a table: bytes that are no UTF-8 are escaped, the rest of a giant is cut."""
    if isinstance(record, bytes):
        return record[: 4 * MOST_SHOWN].decode("utf-8", "backslashreplace")[:MOST_SHOWN]
    return record[:MOST_SHOWN].encode("utf-8", "backslashreplace").decode()


def reject_all_rows(block: Block, reason: str, column: str | None = None) -> Block:
    """The block with every row of it a fault: its file lacks something that each of them needs."""
    records = [str(record) for record in block.table.to_pylist()]
    faults = [
        Fault(int(position), column, reason, printable(record))
        for position, record in zip(block.positions, records, strict=True)
    ]
    return Block(block.table.slice(0, 0), block.positions[:0], block.faults + faults, block.n_read)

"""What all readers of raw files return: blocks of records with their positions in the file, and faults."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.errors import NearcastError

MOST_SHOWN = 65_536
"""Characters of a record that a reject keeps."""


class BrokenFile(NearcastError):
    """A file that cannot be read further; the records before are kept."""


class Fault(NamedTuple):
    """A record that cannot become a row of a table, and the reason."""

    position: int  # the line or row within the file, from 1
    column: str | None
    reason: str
    record: str


class Block(NamedTuple):
    """Some records of one file. `n_read` must equal rows plus faults; the ingest checks it."""

    table: pa.Table  # columns named as in the messages or subscriptions table, with raw values
    positions: np.ndarray  # int64[n_rows]  the line or row of each within the file, from 1
    faults: list[Fault]
    n_read: int


def printable(record: str | bytes) -> str:
    """A record as text that fits a table: bytes that are not UTF-8 are escaped, long records are cut."""
    if isinstance(record, bytes):
        return record[: 4 * MOST_SHOWN].decode("utf-8", "backslashreplace")[:MOST_SHOWN]
    return record[:MOST_SHOWN].encode("utf-8", "backslashreplace").decode()


def printable_record(record: dict[str, Any]) -> str:
    """A row of a table as JSON that fits a table."""
    return printable(json.dumps(record, default=str, ensure_ascii=False))


def reject_all_rows(block: Block, fault: tuple[str, str] | None) -> Block:
    """The block with every row turned into a fault (column, reason), if there is one: the file lacks a column."""
    if fault is None:
        return block
    rows = zip(block.positions.tolist(), block.table.to_pylist(), strict=True)
    faults = [Fault(position, *fault, printable(str(record))) for position, record in rows]
    return Block(block.table.slice(0, 0), block.positions[:0], block.faults + faults, block.n_read)

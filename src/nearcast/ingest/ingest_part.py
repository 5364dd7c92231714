"""What one task of the ingest does: read its part of the raw files, judge each record, write three files.

The files bear the part's number and are renamed into place when they are whole: a task that is run again, or twice
at once, leaves the same files.
"""

from __future__ import annotations

import os
import re
import uuid
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.ingest.csv_records import CsvDialect, csv_blocks
from nearcast.ingest.json_records import json_blocks
from nearcast.ingest.parquet_records import parquet_blocks
from nearcast.ingest.records import Block, BrokenFile, Fault
from nearcast.ingest.sources import Part, Split, delimiter_of
from nearcast.ingest.validate import IngestRules, Validated, table_schema, validate_records

REJECTED_SCHEMA = pa.schema(
    [
        ("source", pa.string()),
        ("position", pa.int64()),
        ("column", pa.string()),
        ("reason", pa.string()),
        ("record", pa.string()),
    ]
)
"""A reject: the file, the line or row of it (from 1), what is wrong with which column, and the record as it came."""

SEEN_SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("part", pa.int32()),
        ("place", pa.int64()),
        ("row", pa.int64()),
        ("source", pa.int32()),
        ("position", pa.int64()),
    ]
)
"""An id that was read: its record's place in the part, and its row among the accepted ones (-1 if it is none)."""

MADE_ID_SHIFT = 40
"""A made id is (number of the file << 40) + line or row: unique, and the same at each run over the same files."""


class IngestJob(NamedTuple):
    """What all parts share. Small: it travels to workers with each task."""

    rules: IngestRules
    delimiter: str | None
    encoding: str
    header: tuple[str, ...] | None
    make_ids: bool
    accepted: str  # folders
    rejects: str
    seen: str


class PartCounts(NamedTuple):
    """What became of a part's records. `read` is the reader's own count."""

    part: int
    read: int
    accepted: int
    rejected: int
    by_reason: dict[str, int]


def part_file(folder: str, part: int, suffix: str = "") -> str:
    return os.path.join(folder, f"part-{part:05d}{suffix}.parquet")


def ingest_part(part: Part, job: IngestJob) -> PartCounts:
    """Read, judge and write one part."""
    reasons: Counter[str] = Counter()
    n_read = n_accepted = n_rejected = n_before = 0
    with (
        AtomicParquetFile(part_file(job.accepted, part.number), table_schema(job.rules.columns)) as accepted,
        AtomicParquetFile(part_file(job.rejects, part.number), REJECTED_SCHEMA) as rejected,
        AtomicParquetFile(part_file(job.seen, part.number), SEEN_SCHEMA) as seen,
    ):
        for split, block in _blocks(part, job):
            cleaned = validate_records(_with_ids(block, split, job), job.rules)
            faults = [*block.faults, *_rejects(cleaned, block)]
            seen.write(_seen(cleaned, block, split, part.number, n_before, n_accepted))
            accepted.write(cleaned.accepted)
            rejected.write(rejects_table(split.path, faults))
            reasons.update(reason_kind(fault.column, fault.reason) for fault in faults)
            n_read += block.n_read
            n_accepted += cleaned.accepted.num_rows
            n_rejected += len(faults)
            n_before += block.table.num_rows
    return PartCounts(part.number, n_read, n_accepted, n_rejected, dict(reasons))


def _blocks(part: Part, job: IngestJob) -> Iterator[tuple[Split, Block]]:
    """A file that breaks is one more record, which is a fault: it is told, and the job goes on."""
    for split in part.splits:
        position = split.first_position
        try:
            for block in _reader(split, job):
                position = max(position, int(block.positions[-1]) if len(block.positions) else position)
                yield split, block
        except BrokenFile as error:
            nothing = pa.table({name: pa.nulls(0, pa.string()) for name in job.rules.columns.targets})
            fault = Fault(position, None, str(error), "")
            yield split, Block(nothing, np.empty(0, np.int64), [fault], 1)


def _reader(split: Split, job: IngestJob) -> Iterator[Block]:
    columns = job.rules.columns
    if split.format == "parquet":
        return parquet_blocks(split, columns)
    if split.format == "jsonl":
        return json_blocks(split, columns, job.encoding)
    return csv_blocks(split, columns, CsvDialect(delimiter_of(split.path, job.delimiter), job.encoding, job.header))


def _with_ids(block: Block, split: Split, job: IngestJob) -> pa.Table:
    if not job.make_ids:
        return block.table
    return block.table.add_column(0, "id", pa.array((split.source << MADE_ID_SHIFT) + block.positions))


def _rejects(cleaned: Validated, block: Block) -> list[Fault]:
    return [Fault(int(block.positions[row]), column, reason, record) for row, column, reason, record in cleaned.rejects]


def rejects_table(source: str, faults: list[Fault]) -> pa.Table:
    columns = zip(*faults, strict=True) if faults else [[], [], [], []]
    position, column, reason, record = columns
    return pa.table([[source] * len(faults), position, column, reason, record], schema=REJECTED_SCHEMA)


def _seen(cleaned: Validated, block: Block, split: Split, part: int, n_before: int, n_accepted: int) -> pa.Table:
    """All ids that were read, also those of records that are bad for another reason: so the library has it too."""
    n = block.table.num_rows
    rows = np.full(n, -1)
    rows[cleaned.accepted_rows] = n_accepted + np.arange(len(cleaned.accepted_rows))
    made: list[Any] = [
        cleaned.ids,
        np.full(n, part, np.int32),
        np.arange(n_before, n_before + n),
        rows,
        np.full(n, split.source, np.int32),
        block.positions,
    ]
    return pa.table([pa.array(values[cleaned.has_id]) for values in made], schema=SEEN_SCHEMA)


_VALUE = re.compile(r"'[^']*'|\"[^\"]*\"|\b0x[0-9a-f]+|(?<![A-Za-z0-9])[-+]?\d(?:[\d.,e+-]*\d)?")


def reason_kind(column: str | None, reason: str) -> str:
    """The reason without the values in it, so that a million rejects make a short table."""
    kind = _VALUE.sub("…", reason.split("\n")[0])[:120]
    return f"{column}: {kind}" if column else kind


class AtomicParquetFile:
    """A Parquet file that appears under its name when it is whole."""

    def __init__(self, path: str, schema: pa.Schema) -> None:
        self._path = path
        self._temporary = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.{uuid.uuid4().hex[:8]}")
        self._writer = pq.ParquetWriter(self._temporary, schema, compression="zstd")

    def write(self, table: pa.Table) -> None:
        if table.num_rows:
            self._writer.write_table(table)

    def __enter__(self) -> AtomicParquetFile:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        self._writer.close()
        if kind is None:
            os.replace(self._temporary, self._path)
        else:
            os.unlink(self._temporary)

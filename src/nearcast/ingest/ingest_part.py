"""One task of the ingest: reads its part of the raw files, validates each record, and writes three files.

The files are named after the number of the part and renamed into place when they are complete. A task that runs again,
or twice at once, leaves the same files.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.ingest.csv_records import TextFormat, csv_blocks, csv_header
from nearcast.ingest.json_records import json_blocks, json_names
from nearcast.ingest.output_folder import AtomicParquetFile
from nearcast.ingest.parquet_records import parquet_blocks, parquet_names
from nearcast.ingest.records import Block, BrokenFile, Fault, printable_record
from nearcast.ingest.row_groups import duplicate_id_reason
from nearcast.ingest.sources import Part, Source, Split
from nearcast.ingest.validate import IngestRules, Validated, validate_records
from nearcast.sharding.normalise import SOURCE_REJECTS_SCHEMA, with_ids_of

REJECTED_SCHEMA = SOURCE_REJECTS_SCHEMA.set(1, pa.field("position", pa.int64()))
"""A reject: the file, the line or row in it (from 1), the column, the reason, and the raw record."""

SEEN_SCHEMA = pa.schema(
    [("id", pa.int64()), ("part", pa.int32()), ("place", pa.int64())]
    + [("row", pa.int64()), ("source", pa.int32()), ("position", pa.int64())]
)
"""An id that was read: the place of its record in the part, and its row among the accepted records (-1: rejected)."""


def seen_schema(rules: IngestRules) -> pa.Schema:
    return with_ids_of(SEEN_SCHEMA, rules.id_type)


MADE_ID_SHIFT = 40
"""A made id is (number of the file << 40) + line or row: unique, and the same in each run over the same files."""


_SAMPLED_FILES = 20


class IngestJob(NamedTuple):
    """What all parts need. Small: it travels to workers with each task."""

    rules: IngestRules
    text_format: TextFormat
    make_ids: bool
    accepted: str  # folders
    rejects: str
    seen: str


class PartCounts(NamedTuple):
    """The counts of a part. `read` is counted by the reader of the raw file."""

    part: int
    read: int
    accepted: int
    rejected: int
    by_reason: dict[str, int]


def part_file(folder: str, part: int, suffix: str = "") -> str:
    return os.path.join(folder, f"part-{part:05d}{suffix}.parquet")


def ingest_part(part: Part, job: IngestJob) -> PartCounts:
    """Read, validate and write one part."""
    reasons: Counter[str] = Counter()
    n_read = n_accepted = n_rejected = n_before = 0
    with (
        AtomicParquetFile(part_file(job.accepted, part.number), job.rules.schema) as accepted,
        AtomicParquetFile(part_file(job.rejects, part.number), REJECTED_SCHEMA) as rejected,
        AtomicParquetFile(part_file(job.seen, part.number), seen_schema(job.rules)) as seen,
    ):
        for split, block in _blocks(part, job):
            validated = validate_records(_with_ids(block, split, job), job.rules)
            at = block.positions
            faults = block.faults + [fault._replace(position=int(at[fault.position])) for fault in validated.rejects]
            seen.write(_seen(validated, block, split, part.number, n_before, n_accepted).cast(seen_schema(job.rules)))
            accepted.write(validated.accepted)
            rejected.write(rejects_table(split.path, faults))
            reasons.update(reason_kind(fault.column, fault.reason) for fault in faults)
            n_read += block.n_read
            n_accepted += validated.accepted.num_rows
            n_rejected += len(faults)
            n_before += block.table.num_rows
    return PartCounts(part.number, n_read, n_accepted, n_rejected, dict(reasons))


def _blocks(part: Part, job: IngestJob) -> Iterator[tuple[Split, Block]]:
    """The blocks of all splits. A file that breaks adds one faulty record, and the job goes on."""
    for split in part.splits:
        position = split.first_position
        try:
            for block in _read(split, job):
                position = max([position, *block.positions[-1:].tolist()])
                yield split, block
        except BrokenFile as error:
            nothing = pa.table({name: pa.nulls(0, pa.string()) for name in job.rules.columns.targets})
            fault = Fault(position, None, str(error), "")
            yield split, Block(nothing, np.empty(0, np.int64), [fault], 1)


def _read(split: Split, job: IngestJob) -> Iterator[Block]:
    if split.format == "parquet":
        return parquet_blocks(split, job.rules.columns)
    if split.format == "jsonl":
        return json_blocks(split, job.rules.columns, job.text_format.encoding)
    return csv_blocks(split, job.rules.columns, job.text_format)


def column_names_of(sources: Sequence[Source], text_format: TextFormat) -> list[str]:
    """The columns of the first files. An unreadable file is skipped here; its task reports the fault."""
    names: dict[str, None] = {}
    for source in sources[:_SAMPLED_FILES]:
        try:
            names |= dict.fromkeys(_names(source, text_format))
        except BrokenFile:
            continue
    return list(names)


def _names(source: Source, text_format: TextFormat) -> Sequence[str]:
    if source.format == "parquet":
        return parquet_names(source.path)
    if source.format == "jsonl":
        return json_names(source.path, text_format.encoding)
    return csv_header(source.path, text_format).names


def _with_ids(block: Block, split: Split, job: IngestJob) -> pa.Table:
    if not job.make_ids:
        return block.table
    return block.table.add_column(0, "id", pa.array((split.source << MADE_ID_SHIFT) + block.positions))


def rejects_table(source: str, faults: list[Fault]) -> pa.Table:
    columns = zip(*faults, strict=True) if faults else [[], [], [], []]
    return pa.table([[source] * len(faults), *columns], schema=REJECTED_SCHEMA)


def _seen(validated: Validated, block: Block, split: Split, part: int, n_before: int, n_accepted: int) -> pa.Table:
    """All readable ids, also of records that are rejected for another reason, as in a single table."""
    n = block.table.num_rows
    rows = np.full(n, -1)
    rows[validated.accepted_rows] = n_accepted + np.arange(len(validated.accepted_rows))
    made: list[Any] = [
        np.full(n, part, np.int32),
        np.arange(n_before, n_before + n),
        rows,
        np.full(n, split.source, np.int32),
        block.positions,
    ]
    columns = [validated.ids, *map(pa.array, made)]
    return pa.table(columns, SEEN_SCHEMA.names).filter(pa.array(validated.has_id))


_VALUE = re.compile(r"'[^']*'|\"[^\"]*\"|\b0x[0-9a-f]+|(?<![A-Za-z0-9])[-+]?\d(?:[\d.,e+-]*\d)?")


def reason_kind(column: str | None, reason: str) -> str:
    """The reason without the values in it, so that the counts by reason stay short."""
    kind = _VALUE.sub("…", reason.split("\n")[0])[:120]
    return f"{column}: {kind}" if column else kind


# -- ids that occur more than once over all parts


def reject_rows(duplicates: pa.Table, job: IngestJob, paths: Sequence[str]) -> pa.Table:
    """Write a part's accepted records again without the duplicates, and the duplicates as rejects. Both files have
    other names than the file that is read, so a task that runs again finds the same input.
    """
    part = duplicates["part"][0].as_py()
    duplicates = duplicates.sort_by("row")
    rows = duplicates["row"].to_numpy()
    file = pq.ParquetFile(part_file(job.accepted, part))
    first = 0
    with (
        AtomicParquetFile(part_file(job.accepted, part, "-first"), file.schema_arrow) as kept,
        AtomicParquetFile(part_file(job.rejects, part, "-late"), REJECTED_SCHEMA) as rejected,
    ):
        for batch in file.iter_batches():
            here = slice(*np.searchsorted(rows, [first, first + batch.num_rows]))
            is_kept = np.ones(batch.num_rows, bool)
            is_kept[rows[here] - first] = False
            table = pa.Table.from_batches([batch])
            kept.write(table.filter(pa.array(is_kept)))
            found = duplicates.slice(here.start, here.stop - here.start)
            rejected.write(_as_rejects(found, table.filter(~is_kept), paths))
            first += batch.num_rows
    return pa.table({"part": pa.array([part], pa.int32()), "dropped": pa.array([len(rows)], pa.int64())})


def _as_rejects(duplicates: pa.Table, records: pa.Table, paths: Sequence[str]) -> pa.Table:
    """The reject shows the accepted record: the raw one is no longer known."""
    shown = [printable_record(record) for record in records.to_pylist()]
    reasons = [duplicate_id_reason(number) for number in duplicates["id"].to_pylist()]
    sources = [paths[source] for source in duplicates["source"].to_pylist()]
    positions = duplicates["position"].combine_chunks()
    return pa.table([sources, positions, ["id"] * len(shown), reasons, shown], schema=REJECTED_SCHEMA)

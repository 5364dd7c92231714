"""What a task of the stream does: its messages against base and delta, the pairs into a file of its own.

A task tells the driver which files it finished; the driver takes over those and no others, so that attempts that
failed, or that nobody waits for any more, leave nothing in the table.
"""

from __future__ import annotations

import functools
import os
import re
import uuid
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import nearcast.indexes  # noqa: F401  registers every method
from nearcast.errors import InvalidInput, UnsupportedKind
from nearcast.ingest.broker_values import decode_values
from nearcast.matching.rank_method import find_rank_method
from nearcast.sharding.live.delta import is_among, open_delta
from nearcast.sharding.match_shards import match_all_shards
from nearcast.sharding.normalise import (
    MESSAGES_SCHEMA,
    SERVED_KINDS,
    SOURCE_REJECTS_SCHEMA,
    file_reject,
    normalise_messages,
    with_source,
)
from nearcast.sharding.sharded_index import ShardedIndex, index_weights, shard_router
from nearcast.tables import RANKED_SCHEMA, Dialect, as_arrow

ROWS_AT_ONCE = 16_384  # messages: what they match is held in memory

PARTS_SCHEMA = pa.schema(
    [
        ("file", pa.string()),
        ("rows", pa.int64()),
        ("messages", pa.int64()),
        ("rejects", pa.string()),
        ("rejected", pa.int64()),
    ]
)
PARTS_SQL = "file string, rows long, messages long, rejects string, rejected long"


class StreamJob(NamedTuple):
    """What the tasks of one micro-batch are told."""

    base: ShardedIndex
    delta: str | None
    folder: str  # where files that the driver has not taken over lie


class _Chunk(NamedTuple):
    """Messages as they came, or why there are none."""

    source: str
    first_row: int
    table: pa.Table | None  # a broker's rows name their source in the column `entry`
    rejects: pa.Table | None = None


def deliver_files(job: StreamJob, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For mapInArrow over rows with a column `path`."""
    names = (path for batch in batches for path in batch.column("path").to_pylist())
    yield _deliver(job, (chunk for name in names for chunk in _chunks_of_file(_local(name))))


def deliver_values(job: StreamJob, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For mapInArrow over a broker's rows: `entry`, where each came from, and `value`, see values.py."""
    yield _deliver(job, (_Chunk("", 0, *decode_values(batch)) for batch in batches))


def pairs_of(base: ShardedIndex, delta: str | None, messages: pa.Table) -> pa.Table:
    """The matches of messages in MESSAGES_SCHEMA, sorted, no pair twice; always with scores, null for kind `match`."""
    found = _scored(match_all_shards(base, messages))
    if delta is None:
        return found
    indexes, touched = open_delta(delta, dialect_of(base), lambda: index_weights(base))
    if len(touched):
        found = found.filter(pa.array(~is_among(found["subscription"].to_numpy(), touched)))
    if indexes:
        found = pa.concat_tables([found, *(_scored(index.match(messages)) for index in indexes)])
        found = _sorted(found)
    return found


def _scored(pairs: pa.Table) -> pa.Table:
    """All files of a stream have the same columns, whatever is ranked when: readers take those of any one."""
    if "score" in pairs.column_names:
        return pairs
    return pairs.append_column("score", pa.nulls(pairs.num_rows, pa.float64()))


def dialect_of(base: ShardedIndex) -> Dialect:
    """How messages and subscriptions are read for this index."""
    router = shard_router(base)
    return Dialect(router.analyser, router.space, "skip", served_kinds(base.manifest["method"]))


def served_kinds(method: str) -> tuple[str, ...]:
    """A base of a method that does not rank could not take up ranked ones when the delta is compacted."""
    try:
        find_rank_method(method)
    except UnsupportedKind:
        return tuple(kind for kind in SERVED_KINDS if kind != "rank")
    return SERVED_KINDS


def _sorted(pairs: pa.Table) -> pa.Table:
    order = np.lexsort((pairs["subscription"].to_numpy(), pairs["message"].to_numpy()))
    return pairs.take(pa.array(order)).combine_chunks()


def _deliver(job: StreamJob, chunks: Iterable[_Chunk]) -> pa.RecordBatch:
    dialect = dialect_of(job.base)
    pairs, rejects = _File(job.folder, "part", RANKED_SCHEMA), _File(job.folder, "_rejects", SOURCE_REJECTS_SCHEMA)
    n_messages = 0
    for chunk in chunks:
        messages, bad = _normalised(chunk, dialect)
        rejects.write(bad)
        n_messages += messages.num_rows
        pairs.write(pairs_of(job.base, job.delta, messages))
    told = [pairs.finish(), pairs.n_rows, n_messages, rejects.finish(), rejects.n_rows]
    return pa.record_batch(
        [pa.array([value], field.type) for value, field in zip(told, PARTS_SCHEMA, strict=True)], schema=PARTS_SCHEMA
    )


def _normalised(chunk: _Chunk, dialect: Dialect) -> tuple[pa.Table, pa.Table]:
    before = SOURCE_REJECTS_SCHEMA.empty_table() if chunk.rejects is None else chunk.rejects
    if chunk.table is None or not chunk.table.num_rows:
        return MESSAGES_SCHEMA.empty_table(), before
    try:
        messages, rejects = normalise_messages(chunk.table, dialect)
    except InvalidInput as error:  # what is wrong with a column is wrong with each of its rows
        return MESSAGES_SCHEMA.empty_table(), file_reject(chunk.source, str(error), error.column, chunk.first_row)
    rows = rejects["row"].to_numpy()
    found = with_source(rejects.set_column(0, "row", pa.array(rows + chunk.first_row)), chunk.source)
    if "entry" in chunk.table.column_names:
        entries = chunk.table["entry"].take(pa.array(rows))
        found = found.set_column(0, "source", entries).set_column(1, "row", pa.nulls(len(rows), pa.int64()))
    return messages, pa.concat_tables([before, found])


def _chunks_of_file(path: str) -> Iterator[_Chunk]:
    """A file's rows, some at a time; one that cannot be read is rejected from there on, and does not stop the rest."""
    row = 0
    try:
        if not path.lower().endswith((".parquet", ".pq")):
            yield _Chunk(path, 0, as_arrow(path))
            return
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(ROWS_AT_ONCE):
                yield _Chunk(path, row, pa.Table.from_batches([batch]))
                row += batch.num_rows
    except (pa.ArrowException, OSError, InvalidInput) as error:
        reason = f"it cannot be read{f' from row {row} on' if row else ''}: {error}"
        yield _Chunk(path, row, None, file_reject(path, reason, row=row))


def _local(name: str) -> str:
    """Spark puts the scheme before the path, which it does not escape."""
    return re.sub(r"^file:/+", "/", name)


class _File:
    """A Parquet file that is begun with the first row and durable when it is finished."""

    def __init__(self, folder: str, stem: str, schema: pa.Schema) -> None:
        self._name = f"{stem}-{uuid.uuid4().hex}.parquet"
        self._path = os.path.join(folder, self._name)
        self._schema = schema
        self.n_rows = 0

    @functools.cached_property
    def _writer(self) -> pq.ParquetWriter:
        return pq.ParquetWriter(self._path, self._schema, compression="zstd")

    def write(self, table: pa.Table) -> None:
        if table.num_rows:
            self._writer.write_table(table)
            self.n_rows += table.num_rows

    def finish(self) -> str | None:
        """The file's name, or None if nothing was written."""
        if not self.n_rows:
            return None
        self._writer.close()
        with open(self._path, "rb+") as written:
            os.fsync(written.fileno())
        return self._name

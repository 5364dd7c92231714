"""What a task of a micro-batch does: matches its messages against base and delta and writes the pairs to a unique file.

A task reports the names of the files that it finished. The driver commits these files and no others, so attempts that
failed or were abandoned leave nothing in the table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

import nearcast.indexes  # noqa: F401  registers every method
from nearcast.errors import InvalidInput
from nearcast.ingest.brokers.values import decode_values
from nearcast.ingest.output_folder import UniqueParquetFile
from nearcast.matching.method import kinds_of
from nearcast.sharding.live.attempts import Attempts
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
from nearcast.tables import Dialect, as_arrow
from nearcast.tables.faults import rejected_positions
from nearcast.tables.ids import INT64, IdType
from nearcast.tables.matches import matches_schema

ROWS_AT_ONCE = 16_384  # messages: their matches must fit in memory


class StreamJob(NamedTuple):
    """What every task of one micro-batch must know. Small: it travels to workers with each task."""

    base: ShardedIndex
    delta: str | None
    folder: str  # for files that are not committed yet
    message_ids: IdType = INT64
    attempts: Attempts | None = None  # in repeated batches of files

    @property
    def schema(self) -> pa.Schema:
        """Of the matches: always with scores, null for kind `match`, as all files of a stream have the same columns."""
        return matches_schema(self.message_ids.arrow, self.base.id_type.arrow, is_scored=True)


class _Chunk(NamedTuple):
    """Some messages of one source, and what was rejected before."""

    source: str
    first_row: int | None  # None: its rows have no numbers
    table: pa.Table  # rows of a broker name their source in the column `entry`
    rejects: pa.Table = SOURCE_REJECTS_SCHEMA.empty_table()


Deliver = Callable[[StreamJob, Iterable[pa.RecordBatch]], dict[str, Any]]
"""Matches the messages of a partition; returns the counts, and the names of the files that it wrote and read."""


def deliver_files(job: StreamJob, batches: Iterable[pa.RecordBatch]) -> dict[str, Any]:
    """The task over rows with a column `path`."""
    names = [_local(path) for batch in batches for path in batch.column("path").to_pylist()]
    return _deliver(job, (chunk for name in names for chunk in _attempted(job, name)), names)


def deliver_values(job: StreamJob, batches: Iterable[pa.RecordBatch]) -> dict[str, Any]:
    """The task over rows of a broker: `entry` and `value` (see ingest/brokers/values.py)."""
    return _deliver(job, (_Chunk("", None, *decode_values(batch)) for batch in batches))


def deliver_rows(job: StreamJob, batches: Iterable[pa.RecordBatch]) -> dict[str, Any]:
    """The task over rows of a messages table."""
    return _deliver(job, (_Chunk("", None, pa.Table.from_batches([batch])) for batch in batches))


def pairs_of(base: ShardedIndex, delta: str | None, messages: pa.Table) -> pa.Table:
    """The matches of messages in MESSAGES_SCHEMA, sorted, no pair twice; always with scores, null for kind `match`."""
    found = _scored(match_all_shards(base, messages))
    if delta is None:
        return found
    indexes, touched = open_delta(delta, dialect_of(base), lambda: index_weights(base))
    if len(touched):
        found = found.filter(pa.array(~is_among(found["subscription"], touched)))
    if indexes:
        found = pa.concat_tables([found, *(_scored(index.match(messages)).cast(found.schema) for index in indexes)])
        found = found.sort_by([("message", "ascending"), ("subscription", "ascending")]).combine_chunks()
    return found


def _scored(pairs: pa.Table) -> pa.Table:
    """Add null scores if there are none."""
    if "score" in pairs.column_names:
        return pairs
    return pairs.append_column("score", pa.nulls(pairs.num_rows, pa.float64()))


def dialect_of(base: ShardedIndex) -> Dialect:
    """The dialect in which messages and subscriptions are read for this index."""
    if base.id_type.name == "uuid":
        raise InvalidInput(f"{base.path}: its ids are UUIDs; a stream takes whole numbers or strings")
    kinds = served_kinds(base.manifest["method"])
    return shard_router(base).dialect._replace(on_bad="skip", kinds=kinds, id_type=base.id_type)


def served_kinds(method: str) -> tuple[str, ...]:
    """The kinds that a stream over this method serves. Compaction must be able to build them."""
    return tuple(kind for kind in SERVED_KINDS if kind in kinds_of(method))


def _deliver(job: StreamJob, chunks: Iterable[_Chunk], inputs: Sequence[str] = ()) -> dict[str, Any]:
    dialect = dialect_of(job.base)._replace(id_type=job.message_ids)
    if job.base.attributes:
        names = ", ".join(job.base.attributes)
        raise InvalidInput(
            f"the index has filters on the columns {names}, which this stream does not carry; "
            "match a streaming DataFrame with nearcast.spark.match, or build the index without filters"
        )
    pairs = UniqueParquetFile(job.folder, "part", job.schema)
    rejects = UniqueParquetFile(job.folder, "_rejects", SOURCE_REJECTS_SCHEMA)
    n_messages = 0
    for chunk in chunks:
        messages, bad = _normalised(chunk, dialect)
        rejects.write(bad)
        n_messages += messages.num_rows
        if messages.num_rows:
            pairs.write(pairs_of(job.base, job.delta, messages))
    files = {"file": pairs.finish(is_durable=True), "rejects": rejects.finish(is_durable=True)}
    counts = {"rows": pairs.n_rows, "messages": n_messages, "rejected": rejects.n_rows}
    return {**files, **counts, "inputs": list(inputs)}


def _normalised(chunk: _Chunk, dialect: Dialect) -> tuple[pa.Table, pa.Table]:
    if not chunk.table.num_rows:
        return MESSAGES_SCHEMA.empty_table(), chunk.rejects
    try:
        messages, rejects = normalise_messages(chunk.table, dialect)
    except InvalidInput as error:  # a fault of a column is a fault of each of its rows
        return MESSAGES_SCHEMA.empty_table(), file_reject(chunk.source, str(error), error.column, chunk.first_row)
    rows = rejected_positions(rejects)
    numbers = pa.nulls(len(rows), pa.int64()) if chunk.first_row is None else pa.array(rows + chunk.first_row + 1)
    found = with_source(rejects.set_column(0, "row", numbers), chunk.source)
    if "entry" in chunk.table.column_names:
        found = found.set_column(0, "source", chunk.table["entry"].take(pa.array(rows)))
    return messages, pa.concat_tables([chunk.rejects, found])


def _attempted(job: StreamJob, path: str) -> Iterator[_Chunk]:
    """The rows of a file, unless it was set aside; in repeated batches, marked while it is read and matched."""
    if job.attempts is None:
        yield from _chunks_of_file(path)
    elif job.attempts.are_over(path):
        reason = f"it was set aside after {job.attempts.most} attempts: the workers that read it died"
        yield _Chunk(path, 0, MESSAGES_SCHEMA.empty_table(), file_reject(path, reason))
    else:
        with job.attempts.mark(path):
            yield from _chunks_of_file(path)


def _chunks_of_file(path: str) -> Iterator[_Chunk]:
    """The rows of a file in chunks. Where it becomes unreadable, one reject stands for the rest of the file."""
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
        yield _Chunk(path, row, MESSAGES_SCHEMA.empty_table(), file_reject(path, reason, row=row))


def _local(name: str) -> str:
    """The path without the scheme that Spark puts before it; Spark does not escape the path."""
    return re.sub(r"^file:/+", "/", name)

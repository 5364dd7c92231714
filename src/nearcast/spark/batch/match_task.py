"""The tasks of batch matching: what workers run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa

from nearcast.ingest.broker_values import as_arrow_stream
from nearcast.ingest.parquet_writers import UniqueParquetFile
from nearcast.sharding.match_shards import id_order, match_all_in_parts, match_one_in_parts, route_table
from nearcast.sharding.sharded_index import ShardedIndex
from nearcast.spark.batch.duplicate_ids import Source, TablePart
from nearcast.spark.runtime.arrow_payload import (
    NO_SHARD,
    ArrowPayload,
    join_tables,
    one_row,
    pack_payloads,
    payloads_by_shard,
    sql_schema,
    task_numbers,
)
from nearcast.tables import REJECTS_SCHEMA

_COUNTS = ("messages", "visits", "pairs", "rejected")
_REPORT_SCHEMA = pa.schema([("file", pa.string()), *((name, pa.int64()) for name in _COUNTS), ("rejects", pa.binary())])
REPORT_SQL = sql_schema(_REPORT_SCHEMA)


class MatchJob(NamedTuple):
    """What every task must know. Small: it travels to workers with each task."""

    sharded: ShardedIndex
    source: Source  # of messages
    attempts: str  # the folder for files that are not committed yet
    salts: int  # partitions per shard

    @property
    def n_partitions(self) -> int:
        """The partitions of all shards, and a last one for rejects and counts."""
        return self.sharded.n_shards * self.salts + 1


def match_pieces(job: MatchJob, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Replicated layout: read messages and match them against all shards."""
    for task in task_numbers(batches):
        part = _in_id_order(job.source.read(task))
        matched = match_all_in_parts(job.sharded, part.table)
        file, n_pairs = _write_matches(job, matched.parts)
        yield _report(file, (matched.n_messages, matched.n_visits, n_pairs), part.all_rejects(matched.rejects))


def route_pieces(job: MatchJob, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Sharded layout, before the shuffle: read messages and send them to the shards that they visit."""
    for task in task_numbers(batches):
        part = job.source.read(task)
        routed, rejects = route_table(job.sharded, part.table)
        payloads = [ArrowPayload(shard * job.salts + task % job.salts, shard, table) for shard, table in routed.items()]
        n_good = str(part.table.num_rows - len(rejects)).encode()
        bad = ArrowPayload(job.n_partitions - 1, NO_SHARD, part.all_rejects(rejects), n_good)
        yield from pack_payloads([*payloads, bad])


def match_shards(job: MatchJob, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Sharded layout, after the shuffle: match the messages of each shard."""
    by_shard = payloads_by_shard(batches)
    for payload in by_shard.pop(NO_SHARD, []):
        yield _report(None, (int(payload.note or b"0"), 0, 0), payload.table)
    for shard, payloads in by_shard.items():
        table = join_tables(payloads)
        file, n_pairs = _write_matches(job, match_one_in_parts(job.sharded, shard, table))
        yield _report(file, (0, table.num_rows, n_pairs), REJECTS_SCHEMA.empty_table())


def _in_id_order(part: TablePart) -> TablePart:
    """The part sorted by id before it is matched, so that rejects of matching keep their row numbers."""
    order = id_order(part.table)
    return part if order is None else TablePart(part.table.take(pa.array(order)), part.rows[order], part.rejects)


def _write_matches(job: MatchJob, parts: Iterable[pa.Table]) -> tuple[str | None, int]:
    """(the name of a new file with these matches, how many there are); no file where there are none."""
    file = UniqueParquetFile(job.attempts, "part", job.sharded.matches_schema)
    for part in parts:
        file.write(part)
    return file.finish(), file.n_rows


def _report(file: str | None, counts: tuple[int, int, int], rejects: pa.Table) -> pa.RecordBatch:
    return one_row(_REPORT_SCHEMA, [file, *counts, len(rejects), as_arrow_stream(rejects)])

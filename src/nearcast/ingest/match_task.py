"""The tasks of batch matching between Parquet tables: what workers run. No pyspark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from nearcast.ingest.output_folder import UniqueParquetFile
from nearcast.ingest.row_groups import Source, TablePart
from nearcast.sharding.match_shards import id_order, match_all_in_parts, match_one_in_parts, route_table
from nearcast.sharding.payloads import NO_SHARD, ArrowPayload, join_tables
from nearcast.sharding.sharded_index import ShardedIndex
from nearcast.tables import REJECTS_SCHEMA

COUNTS = ("messages", "rejected", "visits", "pairs")


class MatchJob(NamedTuple):
    """What every task must know. Small: it travels to workers with each task."""

    sharded: ShardedIndex
    source: Source  # of messages
    attempts: str  # the folder for files that are not committed yet
    salts: int  # partitions per shard
    schema: pa.Schema  # of the matches

    @property
    def n_partitions(self) -> int:
        """The partitions of all shards, and a last one for rejects and counts."""
        return self.sharded.n_shards * self.salts + 1


def match_pieces(job: MatchJob, task: int) -> Iterator[dict[str, Any]]:
    """Replicated layout: read messages and match them against all shards."""
    part = _in_id_order(job.source.read(task))
    matched = match_all_in_parts(job.sharded, part.table)
    yield _report(job, matched.parts, matched.n_messages, matched.n_visits, part.all_rejects(matched.rejects))


def route_pieces(job: MatchJob, task: int) -> Iterator[ArrowPayload]:
    """Sharded layout, before the shuffle: read messages and send them to the shards that they visit."""
    part = job.source.read(task)
    routed, rejects = route_table(job.sharded, part.table)
    for shard, table in routed.items():
        yield ArrowPayload(shard * job.salts + task % job.salts, shard, table)
    n_good = str(part.table.num_rows - len(rejects)).encode()
    yield ArrowPayload(job.n_partitions - 1, NO_SHARD, part.all_rejects(rejects), n_good)


def match_shards(job: MatchJob, shard: int, payloads: list[ArrowPayload]) -> Iterator[dict[str, Any]]:
    """Sharded layout, after the shuffle: match the messages of a shard; report the rejects and counts."""
    if shard == NO_SHARD:
        for payload in payloads:
            yield _report(job, (), int(payload.note or b"0"), 0, payload.table)
        return
    table = join_tables(payloads)
    parts = match_one_in_parts(job.sharded, shard, table)
    yield _report(job, parts, 0, table.num_rows, REJECTS_SCHEMA.empty_table())


def _in_id_order(part: TablePart) -> TablePart:
    """The part sorted by id before it is matched, so that rejects of matching keep their row numbers."""
    order = id_order(part.table)
    return part if order is None else TablePart(part.table.take(pa.array(order)), part.rows[order], part.rejects)


def _report(
    job: MatchJob, parts: Iterable[pa.Table], n_messages: int, n_visits: int, rejects: pa.Table
) -> dict[str, Any]:
    """Write the matches to a new file, unless there are none; return its name, the counts and the rejects."""
    file = UniqueParquetFile(job.attempts, "part", job.schema)
    for part in parts:
        file.write(part)
    counts = (n_messages, len(rejects), n_visits, file.n_rows)
    return {"file": file.finish(), "rejects": rejects, **dict(zip(COUNTS, counts, strict=True))}

"""What the tasks of batch matching do."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.sharding.match_shards import id_order, match_all_in_parts, match_one_in_parts, route_table
from nearcast.sharding.sharded_index import ShardedIndex
from nearcast.spark.batch.arrow_payload import ArrowPayload, as_bytes, pack_payloads, unpack_payloads
from nearcast.spark.batch.duplicate_ids import Part, Source, numbered
from nearcast.tables import REJECTS_SCHEMA

REPORT_SQL = "file string, messages long, visits long, pairs long, rejected long, rejects binary"
_TOLD_ARROW = pa.schema(
    [
        ("file", pa.string()),
        ("messages", pa.int64()),
        ("visits", pa.int64()),
        ("pairs", pa.int64()),
        ("rejected", pa.int64()),
        ("rejects", pa.binary()),
    ]
)
_NO_SHARD = -1


class MatchJob(NamedTuple):
    """All that a task must know."""

    sharded: ShardedIndex
    source: Source  # of messages
    attempts: str  # the folder for files that the driver has not yet heard of
    salts: int  # partitions of each shard

    @property
    def n_partitions(self) -> int:
        """The last one is of bad rows and counts."""
        return self.sharded.n_shards * self.salts + 1


def match_pieces(job: MatchJob, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Replicated: read messages, match them against all shards."""
    for task in _task_numbers(batches):
        part = _in_id_order(job.source.read(task))
        matched = match_all_in_parts(job.sharded, part.table)
        file, pairs = _written(job, matched.parts)
        yield _told(file, (matched.n_messages, matched.n_visits, pairs), _all_rejects(part, matched.rejects))


def route_pieces(job: MatchJob, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Sharded, before the shuffle: read messages, send them to the shards that they visit."""
    for task in _task_numbers(batches):
        part = job.source.read(task)
        routed, rejects = route_table(job.sharded, part.table)
        payloads = [ArrowPayload(shard * job.salts + task % job.salts, shard, table) for shard, table in routed.items()]
        n_good = str(part.table.num_rows - len(rejects)).encode()
        bad = ArrowPayload(job.n_partitions - 1, _NO_SHARD, _all_rejects(part, rejects), n_good)
        yield from pack_payloads([*payloads, bad])


def match_shards(job: MatchJob, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Sharded, after the shuffle: match what came for each shard, which is one unless Spark put partitions together."""
    of_shard: defaultdict[int, list[ArrowPayload]] = defaultdict(list)
    for payload in unpack_payloads(batches):
        of_shard[payload.shard].append(payload)
    for payload in of_shard.pop(_NO_SHARD, []):
        yield _told("", (int(payload.note or b"0"), 0, 0), payload.table)
    for shard, payloads in sorted(of_shard.items()):
        table = pa.concat_tables([payload.table for payload in payloads], promote_options="permissive")
        file, pairs = _written(job, match_one_in_parts(job.sharded, shard, table))
        yield _told(file, (0, table.num_rows, pairs), REJECTS_SCHEMA.empty_table())


def _task_numbers(batches: Iterable[pa.RecordBatch]) -> Iterator[int]:
    for batch in batches:
        yield from batch.column("id").to_pylist()


def _in_id_order(part: Part) -> Part:
    """Here, so that it is known which rows of the table the rejects of matching are."""
    order = id_order(part.table)
    return part if order is None else Part(part.table.take(pa.array(order)), part.rows[order], part.rejects)


def _all_rejects(part: Part, rejects: pa.Table) -> pa.Table:
    return pa.concat_tables([part.rejects, numbered(rejects, part.rows)])


def _written(job: MatchJob, parts: Iterable[pa.Table]) -> tuple[str, int]:
    """(the name of a new file with these matches, how many there are); no file where there are none."""
    name = f"{uuid.uuid4().hex}.parquet"
    pairs = 0
    writer = None
    for part in parts:
        if not part.num_rows:
            continue
        if writer is None:
            writer = pq.ParquetWriter(Path(job.attempts) / name, job.sharded.matches_schema, compression="zstd")
        writer.write_table(part)
        pairs += part.num_rows
    if writer is None:
        return "", 0
    writer.close()
    return name, pairs


def _told(file: str, counts: tuple[int, int, int], rejects: pa.Table) -> pa.RecordBatch:
    row = [file, *counts, len(rejects), as_bytes(rejects)]
    columns = [pa.array([value], field.type) for value, field in zip(row, _TOLD_ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=_TOLD_ARROW)

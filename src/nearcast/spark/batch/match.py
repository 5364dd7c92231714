"""Batch matching: a messages table -> a matches table, in one of two layouts.

*replicated*: each task reads its own messages and matches them against all shards, which the workers of a machine
share as one map; nothing is shuffled. *sharded*: messages are routed and shuffled, and a task matches against one
shard; for indexes that do not fit into a machine's memory.

Tasks write files under names of their own and tell them. The driver puts together what it was told, once for each
task, and renames the whole: a reader sees all matches of the run or none, whatever died on the way.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.errors import InvalidInput
from nearcast.ingest.row_groups import pieces_of
from nearcast.sharding.match_shards import MESSAGE_COLUMNS
from nearcast.sharding.sharded_index import ShardedIndex, open_sharded
from nearcast.spark.batch.arrow_payload import PAYLOAD_SQL, from_bytes
from nearcast.spark.batch.duplicate_ids import open_source
from nearcast.spark.batch.match_task import REPORT_SQL, MatchJob, match_pieces, match_shards, route_pieces
from nearcast.spark.runtime.session import cores_of
from nearcast.tables import REJECTS_SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Layout = Literal["auto", "replicated", "sharded"]

ROWS_PER_TASK = 1 << 18
"""Messages, at most: half a second or more of work, against 10 ms that a task costs."""

_TASKS_PER_CORE = 4  # at least, where there are messages enough: cores that are done early find something to do
_FEWEST_ROWS_PER_TASK = 1 << 14
_MOST_OF_MEMORY = 0.5  # of a machine, for an index that every worker maps


def match_batch(
    session: SparkSession,
    index: str,
    messages: str,
    out: str,
    *,
    layout: Layout = "auto",
    rows_per_task: int | None = None,
) -> dict[str, Any]:
    """Match a messages table (a Parquet file or folder) and write the matches table to the folder `out`, replacing what
    was there. Return counts, which are also in `out/_counts.json`. Of messages with the same id the first in the table
    is matched; the others are rejected, as all bad rows are, into `out/_rejects.parquet`.
    """
    sharded = open_sharded(index)
    chosen = chosen_layout(sharded, layout)
    rows = rows_per_task or _rows_per_task(messages, cores_of(session))
    staging = _staging(out)
    try:
        source = open_source(session, messages, staging / "late", rows, MESSAGE_COLUMNS)
        job = MatchJob(sharded, source, str(staging / "attempts"), _salts(sharded, len(source.tasks)))
        told = _run(session, job, chosen) if source.tasks else []
        counts = {"layout": chosen, "shards": sharded.n_shards, "tasks": len(told), **_counts(told)}
        _commit(Path(out), staging, told, counts, sharded.matches_schema)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return counts


def chosen_layout(sharded: ShardedIndex, layout: Layout) -> str:
    """`auto`: replicated while the whole index takes at most half of a machine's memory."""
    if layout not in ("auto", "replicated", "sharded"):
        raise InvalidInput(f"no layout '{layout}'; it is auto, replicated or sharded")
    if layout != "auto":
        return layout
    return "replicated" if sharded.nbytes <= _MOST_OF_MEMORY * _memory_bytes() else "sharded"


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _rows_per_task(messages: str, n_cores: int) -> int:
    total = sum(piece.n_rows for piece in pieces_of(messages, 1 << 40))
    return max(_FEWEST_ROWS_PER_TASK, min(ROWS_PER_TASK, -(-total // (_TASKS_PER_CORE * n_cores))))


def _salts(sharded: ShardedIndex, n_tasks: int) -> int:
    """Into how many partitions the messages of one shard go, for about as many partitions as there are tasks."""
    return max(1, round(n_tasks / sharded.n_shards))


def _run(session: SparkSession, job: MatchJob, layout: str) -> list[Any]:
    n_tasks = len(job.source.tasks)
    frame = session.range(0, n_tasks, 1, n_tasks)
    if layout == "sharded":
        routed = frame.mapInArrow(partial(route_pieces, job), PAYLOAD_SQL)
        frame = routed.repartitionById(job.n_partitions, routed["partition"])
    match = match_pieces if layout == "replicated" else match_shards
    told: list[Any] = frame.mapInArrow(partial(match, job), REPORT_SQL).collect()
    return told


def _counts(told: list[Any]) -> dict[str, int]:
    return {name: sum(row[name] for row in told) for name in ("messages", "rejected", "visits", "pairs")}


def _staging(out: str) -> Path:
    """A hidden folder beside `out`, on the same file system. What a killed run left there is removed."""
    target = Path(out)
    target.parent.mkdir(parents=True, exist_ok=True)
    for old in target.parent.glob(f".{target.name}.unfinished-*"):
        shutil.rmtree(old, ignore_errors=True)
    staging = target.parent / f".{target.name}.unfinished-{uuid.uuid4().hex[:12]}"
    (staging / "attempts").mkdir(parents=True)
    (staging / "whole").mkdir()
    return staging


def _commit(out: Path, staging: Path, told: list[Any], counts: dict[str, Any], schema: pa.Schema) -> None:
    """Put the files that were told together and rename them into place."""
    whole = staging / "whole"
    files = [row.file for row in told if row.file]
    for k, name in enumerate(files):
        (staging / "attempts" / name).rename(whole / f"part-{k:05d}.parquet")
    if not files:
        pq.write_table(schema.empty_table(), whole / "part-00000.parquet")
    rejects = pa.concat_tables([REJECTS_SCHEMA.empty_table(), *(from_bytes(row.rejects) for row in told)])
    if len(rejects):
        pq.write_table(rejects.sort_by("row"), whole / "_rejects.parquet")
    (whole / "_counts.json").write_text(json.dumps(counts, indent=1), encoding="utf-8")
    if out.exists():
        out.rename(staging / "replaced")
    whole.rename(out)

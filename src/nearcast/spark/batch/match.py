"""Batch matching: a messages table -> a matches table, in one of two layouts.

*replicated*: each task reads its own messages and matches them against all shards; the workers of a machine share the
shards as one map, and nothing is shuffled. *sharded*: messages are routed and shuffled, and each task matches against
one shard; for indexes that do not fit into the memory of a machine.

Each task writes one uniquely named file and returns its name. The driver collects the files of the successful attempts
in a new folder and renames the folder. Readers therefore see all matches of a run or none, even if tasks or the driver
were killed.
"""

from __future__ import annotations

import json
import os
import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.errors import InvalidInput
from nearcast.ingest.output_folder import NewFolder
from nearcast.ingest.row_groups import pieces_of
from nearcast.sharding.match_shards import MESSAGE_COLUMNS
from nearcast.sharding.sharded_index import ShardedIndex, open_sharded
from nearcast.spark.batch.duplicate_ids import open_source
from nearcast.spark.batch.match_task import REPORT_SCHEMA, MatchJob, match_pieces, match_shards, route_pieces
from nearcast.spark.runtime.arrow_payload import read_arrow_stream
from nearcast.spark.runtime.session import cores_of
from nearcast.spark.runtime.tasks import run_on_shards, run_tasks, send_payloads
from nearcast.tables import REJECTS_SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Layout = Literal["auto", "replicated", "sharded"]

ROWS_PER_TASK = 1 << 18
"""Messages, at most: half a second or more of work, while a task costs 10 ms."""

_TASKS_PER_CORE = 4  # at least, if there are enough messages: a core that finishes early takes another task
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
    """Match a messages table (a Parquet file or folder) and write the matches table to the folder `out`, replacing its
    old content. Return the counts, which are also in `out/_counts.json`. Bad rows go to `out/_rejects.parquet`, and so
    do all messages with the same id but the first.
    """
    sharded = open_sharded(index)
    chosen = chosen_layout(sharded, layout)
    rows = rows_per_task or _rows_per_task(messages, cores_of(session))
    with NewFolder(out, replaces_anything=True) as folder:
        attempts = folder.path / "_attempts"
        attempts.mkdir()
        source = open_source(session, messages, folder.path / "_duplicates", rows, MESSAGE_COLUMNS)
        job = MatchJob(sharded, source, str(attempts), _salts(sharded, len(source.tasks)))
        reports = _run(session, job, chosen) if source.tasks else []
        counts = {"layout": chosen, "shards": sharded.n_shards, "tasks": len(reports), **_counts(reports)}
        _assemble(folder.path, reports, counts, sharded.matches_schema)
        for scratch in (attempts, source.duplicates):
            shutil.rmtree(scratch)
        folder.publish()
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
    """The number of partitions per shard, so that there are about as many partitions as tasks."""
    return max(1, round(n_tasks / sharded.n_shards))


def _run(session: SparkSession, job: MatchJob, layout: str) -> list[Any]:
    n_tasks = len(job.source.tasks)
    if layout == "replicated":
        return run_tasks(session, n_tasks, partial(match_pieces, job), REPORT_SCHEMA)
    routed = send_payloads(session, n_tasks, partial(route_pieces, job), job.n_partitions)
    return run_on_shards(routed, partial(match_shards, job), REPORT_SCHEMA)


def _counts(reports: list[Any]) -> dict[str, int]:
    return {name: sum(row[name] for row in reports) for name in ("messages", "rejected", "visits", "pairs")}


def _assemble(folder: Path, reports: list[Any], counts: dict[str, Any], schema: pa.Schema) -> None:
    """Fill the new folder with the files named in the reports, the rejects and the counts."""
    files = [row.file for row in reports if row.file]
    for k, name in enumerate(files):
        (folder / "_attempts" / name).rename(folder / f"part-{k:05d}.parquet")
    if not files:
        pq.write_table(schema.empty_table(), folder / "part-00000.parquet")
    rejects = pa.concat_tables([REJECTS_SCHEMA.empty_table(), *(read_arrow_stream(row.rejects) for row in reports)])
    if len(rejects):
        pq.write_table(rejects.sort_by("row"), folder / "_rejects.parquet")
    (folder / "_counts.json").write_text(json.dumps(counts, indent=1), encoding="utf-8")

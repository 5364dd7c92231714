"""Batch matching: a messages table -> a matches table, in one of two layouts.

*replicated*: each task reads its own messages and matches them against all shards; the workers of a machine share the
shards as one map, and nothing is shuffled. *sharded*: messages are routed and shuffled, and each task matches against
one shard; for indexes that do not fit into the memory of a machine.

Each task writes one uniquely named file and reports its name. The driver collects these files in a new folder and
renames the folder: readers see all matches of a run or none, even if tasks or the driver were killed.
"""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.ingest.match_task import COUNTS, MatchJob, match_pieces, match_shards, route_pieces
from nearcast.ingest.output_folder import NewFolder
from nearcast.ingest.row_groups import id_type_of, pieces_of
from nearcast.sharding.layout import Layout, chosen_layout
from nearcast.sharding.match_shards import MESSAGE_COLUMNS
from nearcast.sharding.sharded_index import open_sharded
from nearcast.spark.batch.duplicate_ids import open_source
from nearcast.spark.runtime.session import SparkSession, cores_of
from nearcast.spark.runtime.tasks import run_on_shards, run_tasks, send_payloads
from nearcast.tables import REJECTS_SCHEMA

ROWS_PER_TASK = 1 << 18
"""Messages, at most: half a second or more of work, while a task costs 10 ms."""

_TASKS_PER_CORE = 4  # at least, if there are enough messages: a core that finishes early takes another task
_FEWEST_ROWS_PER_TASK = 1 << 14


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
    chosen = chosen_layout(sharded.nbytes, layout)
    rows = rows_per_task or _rows_per_task(messages, cores_of(session))
    scratch_path = f"{os.path.abspath(out)}.attempts"
    with NewFolder(out, replaces_anything=True) as folder, NewFolder(scratch_path) as attempts:
        source = open_source(
            session, messages, attempts.path / "duplicates", rows, (*MESSAGE_COLUMNS, *sharded.attributes)
        )
        salts = max(1, round(len(source.tasks) / sharded.n_shards))  # about as many partitions as tasks
        schema = sharded.matches_schema(id_type_of(messages).arrow)
        job = MatchJob(sharded, source, str(attempts.path), salts, schema)
        reports = _run(session, job, chosen) if source.tasks else []
        counts: dict[str, Any] = {"layout": chosen, "shards": sharded.n_shards, "tasks": len(reports)}
        counts |= {name: sum(report[name] for report in reports) for name in COUNTS}
        for k, name in enumerate(report["file"] for report in reports if report["file"]):
            (attempts.path / name).rename(folder.path / f"part-{k:05d}.parquet")
        _complete(folder.path, reports, counts, schema)
        folder.publish()
    return counts


def _rows_per_task(messages: str, n_cores: int) -> int:
    total = sum(piece.n_rows for piece in pieces_of(messages, 1 << 40))
    return max(_FEWEST_ROWS_PER_TASK, min(ROWS_PER_TASK, -(-total // (_TASKS_PER_CORE * n_cores))))


def _run(session: SparkSession, job: MatchJob, layout: str) -> list[Any]:
    n_tasks = len(job.source.tasks)
    if layout == "replicated":
        return run_tasks(session, n_tasks, partial(match_pieces, job))
    routed = send_payloads(session, n_tasks, partial(route_pieces, job), job.n_partitions)
    return run_on_shards(routed, partial(match_shards, job))


def _complete(folder: Path, reports: list[Any], counts: dict[str, Any], schema: pa.Schema) -> None:
    """Add the rejects and the counts to the files of matches, and an empty file where nothing matched."""
    if not any(report["file"] for report in reports):
        pq.write_table(schema.empty_table(), folder / "part-00000.parquet")
    rejects = pa.concat_tables([REJECTS_SCHEMA.empty_table(), *(report["rejects"] for report in reports)])
    if len(rejects):
        pq.write_table(rejects.sort_by("row"), folder / "_rejects.parquet")
    (folder / "_counts.json").write_text(json.dumps(counts, indent=1), encoding="utf-8")

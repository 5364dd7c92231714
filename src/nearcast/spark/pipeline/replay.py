"""Replays the messages of a batch as a stream of a few files, and checks that both give the same matches."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearcast.errors import NearcastError
from nearcast.spark.pipeline.stages import Pipeline, Stage
from nearcast.spark.pipeline.steps import Step, files_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def replay_stage(pipeline: Pipeline) -> Stage:
    """The stage that replays all files; the pipeline's change log takes effect in the middle."""
    inputs = [pipeline.path(name) for name in ("index", "messages", "matches")]
    inputs += [pipeline.changes] if pipeline.changes else []
    step = Step("stream", tuple(inputs), (pipeline.path("stream"),), {"files": pipeline.stream_files})
    return Stage(step, lambda session: replay(session, pipeline) | check_replay(session, pipeline))


def replay(session: SparkSession, pipeline: Pipeline) -> dict[str, Any]:
    """Stream half of the files, then the changes and the other half, so that the state of each message is known."""
    from nearcast.spark.streaming.stream import run_stream

    folder = Path(pipeline.path("stream"))
    shutil.rmtree(folder, ignore_errors=True)
    incoming, changes = folder / "incoming", folder / "changes"
    incoming.mkdir(parents=True)
    changes.mkdir()
    files = _divided(session, pipeline, folder / "_divided")
    middle = len(files) - len(files) // 2
    runs = []
    for part in (files[:middle], files[middle:]):
        for file in part:
            os.replace(file, incoming / file.name)
        paths = [str(folder / name) for name in ("incoming", "matches", "checkpoint")]
        runs.append(run_stream(session, pipeline.path("index"), *paths, changes=str(changes), once=True, max_files=1))
        for change in files_of(pipeline.changes) if pipeline.changes else []:
            shutil.copy(change, changes)
    shutil.rmtree(folder / "_divided")
    first = session.read.parquet(*(str(incoming / file.name) for file in files[middle:])).agg({"id": "min"})
    return _together(runs) | {"first_message_after_changes": first.first()[0] if len(files) > 1 else None}


def _divided(session: SparkSession, pipeline: Pipeline, folder: Path) -> list[Path]:
    """The clean messages in `stream_files` files, by id."""
    messages = session.read.parquet(pipeline.path("messages"))
    messages.repartitionByRange(pipeline.stream_files, "id").write.parquet(str(folder))
    return sorted(folder.glob("part-*.parquet"))


def _together(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The counts of all runs added up."""
    whole: dict[str, Any] = {}
    for each in runs:
        for name, value in each.items():
            is_count = isinstance(value, int | float) and not isinstance(value, bool)
            whole[name] = whole.get(name, 0) + value if is_count else value
    return whole


def check_replay(session: SparkSession, pipeline: Pipeline) -> dict[str, Any]:
    """Compare batch and stream by pairs and scores, without the subscriptions that the change log names."""
    batch = session.read.parquet(pipeline.path("matches"))
    columns = batch.columns  # the stream always has scores
    stream = session.read.parquet(pipeline.path("stream", "matches")).select(columns)
    changed = _changed_ids(pipeline)
    if changed:
        ids = session.createDataFrame([(each,) for each in changed], "subscription long")
        batch, stream = (pairs.join(ids, "subscription", "left_anti") for pairs in (batch, stream))
    missing, extra = _n_without(batch, stream), _n_without(stream, batch)
    if missing or extra:
        raise NearcastError(f"the stream differs from the batch: {missing:,} pairs are missing, {extra:,} are too many")
    return {"pairs_compared": batch.count(), "changed_subscriptions": len(changed)}


def _n_without(some: DataFrame, others: DataFrame) -> int:
    return int(some.select(sorted(some.columns)).exceptAll(others.select(sorted(some.columns))).count())


def _changed_ids(pipeline: Pipeline) -> list[int]:
    from nearcast.tables import as_arrow

    ids: set[int] = set()
    for file in files_of(pipeline.changes) if pipeline.changes else []:
        ids.update(as_arrow(file)["id"].to_pylist())
    return sorted(ids)

"""A whole pipeline: raw files to tables, vocabulary, index, matches, a stream of the same messages, a report.

OUT/messages  OUT/subscriptions         clean tables        OUT/rejects/...   rejected rows, with reasons
OUT/vocabulary                          tokens, and how many messages contain each
OUT/index                               shards, router, manifest
OUT/matches                             of the batch
OUT/stream/{incoming,changes,matches,checkpoint}
OUT/report.html

Only stages that are not up to date run. The last one replays the messages of the batch as a stream of a few files, and
checks that both give the same matches.
"""

from __future__ import annotations

import json
import os
import shutil
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

from nearcast.arrays.bundle import write_whole
from nearcast.errors import InvalidInput, MostlyRejected, NearcastError
from nearcast.ingest.mapping import Kind
from nearcast.ingest.output_folder import mounted_path
from nearcast.ingest.pipeline.checks import check_build, check_match, check_table
from nearcast.ingest.pipeline.pipeline_file import Pipeline, Raw
from nearcast.ingest.pipeline.steps import Step, files_of, require_inputs, run_step
from nearcast.ingest.sources import local_source
from nearcast.matching.method import find_method
from nearcast.sharding.layout import Layout
from nearcast.sharding.sharded_index import KEPT_HOURS
from nearcast.spark.batch.build import build_sharded
from nearcast.spark.batch.ingest import IngestOptions, check_ingest, ingest
from nearcast.spark.batch.match import match_batch
from nearcast.spark.batch.statistics import build_vocabulary, statistics
from nearcast.spark.runtime.session import DataFrame, SparkSession
from nearcast.spark.streaming.stream import run_stream
from nearcast.tables import as_arrow

Work = Callable[[SparkSession], dict[str, Any]]


class Stage(NamedTuple):
    """A step, its work, and a check of its arguments that needs neither Spark nor the output of other steps."""

    step: Step
    work: Work
    check: Callable[[], object] = lambda: None


def stages(pipeline: Pipeline) -> list[Stage]:
    """All stages up to the matches, in order."""
    path, space = pipeline.path, {"space": pipeline.space}
    messages, subscriptions, index, vocabulary = map(path, ("messages", "subscriptions", "index", "vocabulary"))
    how: dict[str, Any] = space if pipeline.analyser is None else space | {"analyser": pipeline.analyser}
    options = {"shards": pipeline.shards, "method": pipeline.method, "weights": pipeline.weights or vocabulary, **how}
    return [
        ingest_stage(pipeline.messages, "messages", messages, path("rejects", "messages"), how),
        ingest_stage(pipeline.subscriptions, "subscriptions", subscriptions, path("rejects", "subscriptions"), how),
        vocabulary_stage(messages, vocabulary),
        statistics_stage(messages, vocabulary, path("statistics.json")),
        build_stage(subscriptions, messages, index, options),
        match_stage(index, messages, path("matches"), pipeline.layout),
    ]


def ingest_stage(raw: Raw, kind: Kind, out: str, rejects: str, options: Mapping[str, Any]) -> Stage:
    """`options` are fields of IngestOptions."""
    for each in (out, rejects):
        mounted_path(each)
    raw = raw._replace(sources=tuple(map(local_source, raw.sources)))
    step = Step(f"ingest {kind}", raw.sources, (out, rejects), {"map": dict(raw.mapping), **options})
    given = IngestOptions(**options)
    arguments = (raw.sources, kind, raw.mapping, out, rejects)

    def work(session: SparkSession) -> dict[str, Any]:
        counts = ingest(session, *arguments, options=given)
        _require_accepted(counts, kind, rejects)
        return counts

    return Stage(step, work, lambda: check_ingest(*arguments, given))


def _require_accepted(counts: Mapping[str, Any], kind: Kind, rejects: str) -> None:
    """Raise InvalidInput if all rows were rejected; warn if more than half were."""
    n, n_bad = int(counts["read"]), int(counts["rejected"])
    if 2 * n_bad > n:
        reason = next(iter(counts["by_reason"]), "")
        most = f"the most frequent reason is: {reason}; {rejects} has all of them"
        if n_bad == n:
            raise InvalidInput(f"all {n:,} rows of the {kind} are bad; {most}")
        warnings.warn(f"{n_bad:,} of the {n:,} rows of the {kind} are bad; {most}", MostlyRejected, stacklevel=2)


def vocabulary_stage(messages: str, out: str) -> Stage:
    step = Step("vocabulary", (messages,), (out,), {})
    return Stage(step, lambda session: build_vocabulary(session, messages, out), lambda: check_table(messages))


def statistics_stage(messages: str, vocabulary: str, out: str) -> Stage:
    """Write the statistics as a JSON file, from which the report is made."""
    step = Step("statistics", (messages, vocabulary), (out,), {})

    def work(session: SparkSession) -> dict[str, Any]:
        found = statistics(session, messages, vocabulary=vocabulary)
        write_whole(Path(out), json.dumps(found).encode(), is_private=False)
        return {"messages": found["messages"]}

    return Stage(step, work)


def build_stage(
    subscriptions: str, messages: str | None, out: str, options: Mapping[str, Any], keep_hours: float = KEPT_HOURS
) -> Stage:
    """`options`: method, space, weights (a file or None) and shards (None: by table size and cores)."""
    files = [each for each in (messages, options.get("weights")) if each]
    step = Step("build", (subscriptions, *files), (out,), dict(options))

    def work(session: SparkSession) -> dict[str, Any]:
        made = build_sharded(session, subscriptions, out, messages=messages, keep_hours=keep_hours, **options)
        return {name: value for name, value in made.manifest.items() if isinstance(value, str | int | float)}

    return Stage(step, work, lambda: check_build(subscriptions, messages, out, options))


def match_stage(index: str, messages: str, out: str, layout: Layout) -> Stage:
    mounted_path(out)
    step = Step("match", (index, messages), (out,), {"layout": layout})
    return Stage(
        step,
        lambda session: match_batch(session, index, messages, out, layout=layout),
        lambda: check_match(index, messages),
    )


# -- running them

Working = Callable[[str], AbstractContextManager[None]]
"""Gives a context for a named step, for example one that shows a progress bar while the step runs."""


OpenSession = Callable[[], SparkSession]
"""Gives the session, which is started when the first step needs it."""


def run_pipeline(session: OpenSession, pipeline: Pipeline, force: bool, working: Working) -> dict[str, dict[str, Any]]:
    """The result of each step, by the name of the step. `seconds` are those of the run that did the work."""
    require_inputs([*pipeline.messages.sources, *pipeline.subscriptions.sources])
    every = stages(pipeline)
    for stage in every:
        if stage.step.name.startswith("ingest"):  # the inputs of other steps are made by these
            stage.check()
    find_method("match", pipeline.method)
    if pipeline.stream_files:
        every.append(replay_stage(pipeline))
    return {stage.step.name: _run_stage(session, stage, force, working) for stage in every}


def _run_stage(session: OpenSession, stage: Stage, force: bool, working: Working) -> dict[str, Any]:
    def work() -> dict[str, Any]:
        spark = session()
        start = time.perf_counter()
        with working(stage.step.name):
            result = stage.work(spark)
        # A stage may report its own seconds: the stream leaves out its check.
        return {"seconds": time.perf_counter() - start, **result}

    done = run_step(stage.step, work, force)
    return {**done.result, "up_to_date": done.was_done}


def read_statistics(pipeline: Pipeline) -> dict[str, Any]:
    """The output of the step `statistics`."""
    statistics: dict[str, Any] = json.loads(Path(pipeline.path("statistics.json")).read_bytes())
    return statistics


def replay_stage(pipeline: Pipeline) -> Stage:
    """The stage that replays all files; the pipeline's change log takes effect in the middle."""
    inputs = [pipeline.path(name) for name in ("index", "messages", "matches")]
    inputs += [pipeline.changes] if pipeline.changes else []
    step = Step("stream", tuple(inputs), (pipeline.path("stream"),), {"files": pipeline.stream_files})
    return Stage(step, lambda session: replay(session, pipeline) | check_replay(session, pipeline))


def replay(session: SparkSession, pipeline: Pipeline) -> dict[str, Any]:
    """Stream half of the files, then the changes and the other half, so that the state of each message is known."""
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
        for change in _change_files(pipeline):
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
            whole[name] = value if isinstance(value, str) else whole.get(name, 0) + value
    return whole


def check_replay(session: SparkSession, pipeline: Pipeline) -> dict[str, Any]:
    """Compare batch and stream by pairs and scores, without the subscriptions that the change log names."""
    batch = session.read.parquet(pipeline.path("matches"))
    columns = batch.columns  # the stream always has scores
    stream = session.read.parquet(pipeline.path("stream", "matches")).select(columns)
    changed = {number for file in _change_files(pipeline) for number in as_arrow(file)["id"].to_pylist()}
    if changed:
        ids = session.createDataFrame([(number,) for number in changed], "subscription long")
        batch, stream = (pairs.join(ids, "subscription", "left_anti") for pairs in (batch, stream))
    missing, extra = _n_without(batch, stream), _n_without(stream, batch)
    if missing or extra:
        raise NearcastError(f"the stream differs from the batch: {missing:,} pairs are missing, {extra:,} are too many")
    return {"pairs_compared": batch.count(), "changed_subscriptions": len(changed)}


def _n_without(some: DataFrame, others: DataFrame) -> int:
    return int(some.select(sorted(some.columns)).exceptAll(others.select(sorted(some.columns))).count())


def _change_files(pipeline: Pipeline) -> list[str]:
    return files_of(pipeline.changes) if pipeline.changes else []

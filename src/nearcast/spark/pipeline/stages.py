"""The stages of a pipeline: raw files to tables, vocabulary, index, matches, a stream of the same messages, a report.

OUT/messages  OUT/subscriptions         clean tables        OUT/rejects/...   rejected rows, with reasons
OUT/vocabulary                          tokens, and how many messages contain each
OUT/index                               shards, router, manifest
OUT/matches                             of the batch
OUT/stream/{incoming,changes,matches,checkpoint}
OUT/report.html
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from nearcast.arrays.bundle import write_whole
from nearcast.ingest.mapping import Kind
from nearcast.ingest.output_folder import mounted_path
from nearcast.ingest.pipeline.checks import check_build, check_match, check_table
from nearcast.ingest.pipeline.pipeline_file import Pipeline, Raw
from nearcast.ingest.pipeline.steps import Step
from nearcast.ingest.sources import local_source
from nearcast.sharding.layout import Layout
from nearcast.spark.batch.build import build_sharded
from nearcast.spark.batch.ingest import IngestOptions, check_ingest, ingest
from nearcast.spark.batch.match import match_batch
from nearcast.spark.batch.statistics import statistics
from nearcast.spark.batch.vocabulary import build_vocabulary
from nearcast.spark.runtime.session import SparkSession

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
    options = {"shards": pipeline.shards, "method": pipeline.method, "weights": pipeline.weights or vocabulary, **space}
    return [
        ingest_stage(pipeline.messages, "messages", messages, path("rejects", "messages"), space),
        ingest_stage(pipeline.subscriptions, "subscriptions", subscriptions, path("rejects", "subscriptions"), space),
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
    return Stage(
        step,
        lambda session: ingest(session, *arguments, options=given),
        lambda: check_ingest(*arguments, given),
    )


def vocabulary_stage(messages: str, out: str) -> Stage:
    step = Step("vocabulary", (messages,), (out,), {})
    return Stage(step, lambda session: build_vocabulary(session, messages, out), lambda: check_table(messages))


def statistics_stage(messages: str, vocabulary: str, out: str) -> Stage:
    """Write the statistics as a JSON file, from which the report is made."""
    step = Step("statistics", (messages, vocabulary), (out,), {})

    def work(session: SparkSession) -> dict[str, Any]:
        found = statistics(session, messages, vocabulary=vocabulary)
        write_whole(Path(out), json.dumps(found).encode())
        return {"messages": found["messages"]}

    return Stage(step, work)


def build_stage(subscriptions: str, messages: str | None, out: str, options: Mapping[str, Any]) -> Stage:
    """`options`: method, space, weights (a file or None) and shards (None: by table size and cores)."""
    files = [each for each in (messages, options.get("weights")) if each]
    step = Step("build", (subscriptions, *files), (out,), dict(options))

    def work(session: SparkSession) -> dict[str, Any]:
        made = build_sharded(session, subscriptions, out, messages=messages, **options)
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

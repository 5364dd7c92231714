"""The demo on Spark: the whole pipeline over the shipped messages, in batch and as a stream with live changes, and the
same matches through a DataFrame.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nearcast import spark as ncs
from nearcast.demo.demo_subscriptions import (
    DEMO_SUBSCRIPTIONS,
    NEW_SUBSCRIPTION,
    REMOVED_ID,
    REPLACED_SUBSCRIPTION,
    changes_table,
    sample_messages,
    sample_path,
    subscriptions_table,
)
from nearcast.demo.result import DemoResult, check_matches, count_lines
from nearcast.engine.index import build_index
from nearcast.errors import NearcastError
from nearcast.ingest.pipeline.pipeline_file import Pipeline, Raw
from nearcast.spark.pipeline import Working, read_statistics, run_pipeline
from nearcast.spark.runtime.session import spark_path
from nearcast.tables import as_arrow, write_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STREAM_FILES = 6
_SCHEMA = "id long, text string, lon double, lat double, time timestamp"
_ORDER = [("message", "ascending"), ("subscription", "ascending")]
_COLUMNS = {"id": "id", "text": "text", "x": "lon", "y": "lat", "time": "time"}


def sample_pipeline(out: Path, n_drawn: int = 20_000) -> Pipeline:
    """A pipeline over the shipped messages. Its subscriptions and its change log are written to OUT/raw."""
    raw = out / "raw"
    subscriptions, changes = raw / "subscriptions.parquet", raw / "changes" / "middle-of-the-year.parquet"
    _write_if_changed(subscriptions_table(sample_messages(), n_drawn), subscriptions)
    _write_if_changed(changes_table(), changes)
    return Pipeline(
        out,
        Raw((sample_path(),), _COLUMNS),
        Raw((str(subscriptions),)),
        shards=2,
        stream_files=STREAM_FILES,
        changes=str(changes.parent),
    )


def _write_if_changed(table: pa.Table, path: Path) -> None:
    """Write the table unless the file already has it: an unchanged file keeps later steps up to date."""
    if not path.exists() or not as_arrow(path).equals(table):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_table(table, path)


def run_with_pipeline(
    session: SparkSession, pipeline: Pipeline, n_drawn: int, force: bool, working: Working
) -> DemoResult:
    """Run a pipeline made by `sample_pipeline`, and check its batch and its stream against the library."""
    steps = run_pipeline(lambda: session, pipeline, force, working)
    with working("checking against brute force"):
        messages = sample_messages()
        subscriptions = subscriptions_table(messages, n_drawn)
        matches = _read_pairs(pipeline.path("matches"))
        figures = {"steps": steps, **check_matches(subscriptions, messages, matches)}
        figures["stream_pairs_checked"] = _check_stream(pipeline, steps["stream"]["first_message_after_changes"])
    with working("matching a DataFrame"):
        figures["frame"] = _match_frame(session, pipeline, matches)
    figures |= {"subscriptions": subscriptions.num_rows, "messages": messages.num_rows, "deliveries": matches.num_rows}
    return DemoResult(messages, subscriptions, matches, figures, _lines(figures), read_statistics(pipeline))


def _match_frame(session: SparkSession, pipeline: Pipeline, batch: pa.Table) -> dict[str, Any]:
    """Match the shipped file as Spark reads it, with the pipeline's index. The pairs must be those of the batch."""
    from pyspark.sql import Observation

    counts, index = Observation(), ncs.open_index(pipeline.path("index"))
    notes = session.read.csv(spark_path(sample_path()), _SCHEMA, header=True, escape='"', multiLine=True)
    start = time.perf_counter()
    found = ncs.match(notes, index, metrics=counts).select("message", "subscription").toArrow()
    seconds = time.perf_counter() - start
    if not found.cast(batch.schema).sort_by(_ORDER).combine_chunks().equals(batch):
        raise NearcastError(f"the DataFrame has other pairs: {found.num_rows}, and {batch.num_rows} in the batch")
    reasons = ncs.rejects(notes, index).groupBy("reason").count().collect()
    return {**counts.get, "seconds": seconds, "reject_reasons": {row["reason"]: row["count"] for row in reasons}}


def _read_pairs(folder: str) -> pa.Table:
    """A matches table, sorted by message and subscription."""
    pairs = pq.read_table(folder, columns=["message", "subscription"])
    return pairs.sort_by(_ORDER).combine_chunks()


def _check_stream(pipeline: Pipeline, first_after: int) -> int:
    """Compare the subscriptions that change in mid-stream with the library; return the number of pairs compared.

    `first_after` is the id of the first message after the changes. The step `stream` compares all other subscriptions.
    """
    messages, by_id = sample_messages(), {each.id: each for each in DEMO_SUBSCRIPTIONS}
    expected = []
    for subscriptions, part in (
        ([by_id[REMOVED_ID], by_id[REPLACED_SUBSCRIPTION.id]], pc.less(messages["id"], first_after)),
        ([REPLACED_SUBSCRIPTION, NEW_SUBSCRIPTION], pc.greater_equal(messages["id"], first_after)),
    ):
        index = build_index([each.row() for each in subscriptions], "brute")
        expected.append(index.match(messages.filter(part)))
    whole = pa.concat_tables(expected).combine_chunks()
    found = _read_pairs(pipeline.path("stream", "matches"))
    changed = pa.array([REMOVED_ID, REPLACED_SUBSCRIPTION.id, NEW_SUBSCRIPTION.id])
    found = found.filter(pc.is_in(found["subscription"], changed))
    if not found.combine_chunks().equals(whole):
        raise NearcastError(f"the stream's changes differ: {found.num_rows} pairs, {whole.num_rows} expected")
    return int(whole.num_rows)


def _lines(figures: dict[str, Any]) -> list[tuple[str, str]]:
    steps, n, shared = figures["steps"], figures["messages"], count_lines(figures)
    ingest, build, batch, stream = (steps[name] for name in ("ingest messages", "build", "match", "stream"))
    deliveries = f"{figures['deliveries']:,} deliveries of {n:,} messages"
    frame = figures["frame"]
    reasons = "; ".join(f"{count:,} because {reason}" for reason, count in frame["reject_reasons"].items())
    return [
        ("matches", f"{figures['deliveries']:,}, {figures['deliveries'] / n:.0f} of each message"),
        ("rejected messages", reasons or "none"),
        ("ingested", f"{ingest['read']:,} messages read, {ingest['rejected']:,} rejected"),
        shared["subscriptions"],
        ("index built in", f"{build['seconds']:.1f} s, {build['n_shards']} shards"),
        ("batch", f"{deliveries}, {_rate(n, batch)}, layout {batch['layout']}"),
        (
            "DataFrame",
            f"{frame['matches']:,} deliveries, the same pairs, {n / frame['seconds']:,.0f} messages per second",
        ),
        ("stream", f"{stream['pairs']:,} deliveries in {stream['batches']} micro-batches, {_rate(n, stream)}"),
        ("live changes", f"{stream['changed_subscriptions']} subscriptions added, removed or changed in mid-stream"),
        ("stream = batch", f"{stream['pairs_compared']:,} pairs compared, all equal"),
        shared["checked"],
    ]


def _rate(n: int, step: dict[str, Any]) -> str:
    return f"{n / step['seconds']:,.0f} messages per second" + (" (in an earlier run)" if step["up_to_date"] else "")

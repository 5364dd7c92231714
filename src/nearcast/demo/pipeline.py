"""The demo on Spark: the shipped messages through the whole pipeline, in batch and as a stream with live changes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearcast.cli.console import working
from nearcast.cli.demo import Demo, checked, checked_told
from nearcast.cli.pipeline.run import run_all, statistics_of
from nearcast.cli.pipeline.spark_console import on_spark
from nearcast.demo.demo_subscriptions import NEW_SUBSCRIPTION, REMOVED_ID, REPLACED_SUBSCRIPTION, DEMO_SUBSCRIPTIONS, changes_table, sample_messages, sample_path
from nearcast.demo.demo_subscriptions import subscriptions_table as drawn_subscriptions
from nearcast.errors import NearcastError

if TYPE_CHECKING:
    import pyarrow as pa

    from nearcast.spark.pipeline.pipeline import Pipeline

STREAM_FILES = 6
_COLUMNS = {"id": "id", "text": "text", "x": "lon", "y": "lat", "time": "time"}


def sample_pipeline(out: Path, n_drawn: int = 20_000) -> Pipeline:
    """The shipped messages and the demo's subscriptions; the latter, and the change log, are written to OUT/raw."""
    from nearcast.spark.pipeline.pipeline import Pipeline, Raw

    raw = out / "raw"
    subscriptions, changes = raw / "subscriptions.parquet", raw / "changes" / "middle-of-the-year.parquet"
    _write_if_other(drawn_subscriptions(sample_messages(), n_drawn), subscriptions)
    _write_if_other(changes_table(), changes)
    return Pipeline(
        out,
        Raw((sample_path(),), _COLUMNS),
        Raw((str(subscriptions),)),
        shards=2,
        stream_files=STREAM_FILES,
        changes=str(changes.parent),
    )


def _write_if_other(table: pa.Table, path: Path) -> None:
    """A file that stays as it is keeps its time, and the steps after it stay up to date."""
    from nearcast.tables import as_arrow, write_table

    if not path.exists() or not as_arrow(path).equals(table):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_table(table, path)


def by_pipeline(n_drawn: int, out: Path, master: str | None, force: bool, quiet: bool) -> Demo:
    """Run it, and check batch and stream against the library."""
    pipeline = sample_pipeline(out, n_drawn)
    with on_spark(master, quiet) as spark:
        told = run_all(spark, pipeline, force)
        with working(spark.shown, "checking against brute force"):
            messages, subscriptions = sample_messages(), drawn_subscriptions(sample_messages(), n_drawn)
            matches = _pairs(pipeline.path("matches"))
            figures = {"steps": told, **checked(subscriptions, messages, matches)}
            figures["stream_pairs_checked"] = _checked_stream(pipeline, told["stream"])
    figures |= {"subscriptions": subscriptions.num_rows, "messages": messages.num_rows, "deliveries": matches.num_rows}
    return Demo(messages, subscriptions, matches, figures, lines(figures), statistics_of(pipeline))


def _pairs(folder: str) -> pa.Table:
    """A matches table in the order of the contract."""
    import pyarrow.parquet as pq

    pairs = pq.read_table(folder, columns=["message", "subscription"])
    return pairs.sort_by([("message", "ascending"), ("subscription", "ascending")]).combine_chunks()


def _checked_stream(pipeline: Pipeline, told: dict[str, Any]) -> int:
    """Those subscriptions that change, before and after: as the library says. The others were compared already."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from nearcast.engine.index import build_index

    first_after = told["first_message_after_changes"]
    messages, by_id = sample_messages(), {wish.id: wish for wish in DEMO_SUBSCRIPTIONS}
    before = [by_id[REMOVED_ID], by_id[REPLACED_SUBSCRIPTION.id]]
    expected = []
    for wishes, part in (
        (before, messages.filter(pc.less(messages["id"], first_after))),
        ([REPLACED_SUBSCRIPTION, NEW_SUBSCRIPTION], messages.filter(pc.greater_equal(messages["id"], first_after))),
    ):
        index = build_index([{"id": w.id, "expression": w.expression, "region": w.region} for w in wishes], "brute")
        expected.append(index.match(part))
    whole = pa.concat_tables(expected).combine_chunks()
    found = _pairs(pipeline.path("stream", "matches"))
    found = found.filter(pc.is_in(found["subscription"], pa.array([REMOVED_ID, REPLACED_SUBSCRIPTION.id, NEW_SUBSCRIPTION.id])))
    if not found.combine_chunks().equals(whole):
        raise NearcastError(f"the stream's changes differ: {found.num_rows} pairs, {whole.num_rows} expected")
    return int(whole.num_rows)


def lines(figures: dict[str, Any]) -> list[tuple[str, str]]:
    """The figures in words."""
    steps = figures["steps"]
    ingest, build, batch, stream = (steps[name] for name in ("ingest messages", "build", "match", "stream"))
    n = figures["messages"]
    return [
        ("ingested", f"{ingest['read']:,} messages read, {ingest['rejected']:,} rejected"),
        ("subscriptions", f"{figures['subscriptions']:,} ({len(DEMO_SUBSCRIPTIONS)} written by hand, the others drawn)"),
        ("index built in", f"{build['seconds']:.1f} s, {build['n_shards']} shards"),
        (
            "batch",
            f"{figures['deliveries']:,} deliveries of {n:,} messages, {_rate(n, batch)}, layout {batch['layout']}",
        ),
        ("stream", f"{stream['pairs']:,} deliveries in {stream['batches']} micro-batches, {_rate(n, stream)}"),
        (
            "live changes",
            f"{stream['changed_subscriptions']} subscriptions came, went or changed in mid-stream",
        ),
        ("stream = batch", f"{stream['pairs_compared']:,} pairs compared, all equal"),
        ("checked", checked_told(figures)),
    ]


def _rate(n: int, told: dict[str, Any]) -> str:
    return f"{n / told['seconds']:,.0f} messages per second" + (" (the last time)" if told["up_to_date"] else "")

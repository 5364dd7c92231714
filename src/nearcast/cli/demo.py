"""`nearcast demo`: a year of traffic messages of one city, delivered to those who asked, with a report.

On Spark (demo_pipeline.py), or in this process by the library alone.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.console import Group
from rich.table import Table
from rich.text import Text

from nearcast.cli.console import note, progress, show, working
from nearcast.cli.match import chosen_by
from nearcast.cli.pipeline.spark_console import Force, Master
from nearcast.demo.demo_subscriptions import LICENCE, DEMO_SUBSCRIPTIONS, DemoSubscription, sample_messages, subscriptions_table
from nearcast.errors import NearcastError

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.progress import Progress

    from nearcast.engine.index import Index

CHECKED_MESSAGES = 500
ROUNDS = 5
_USED = ("auto", "brute", "pyramid")


class Demo(NamedTuple):
    """What the demo did: tables and figures."""

    messages: pa.Table  # id, text, lon, lat, time
    subscriptions: pa.Table
    matches: pa.Table
    figures: dict[str, Any]
    lines: list[tuple[str, str]]  # the figures in words, for screen and report
    statistics: dict[str, Any] | None = None  # of the messages, counted by Spark


class Delivery(NamedTuple):
    """A message and those by name who got it."""

    time: str
    text: str
    names: list[str]
    others: int


def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the report and the tables go.")] = Path("demo-output"),
    library: Annotated[
        bool, typer.Option("--library", help="Without Spark: the library alone, in this process.")
    ] = False,
    n_drawn: Annotated[int, typer.Option("--subscriptions", min=0, hidden=True)] = 20_000,
    master: Master = None,
    force: Force = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Deliver a year of real traffic messages to 20,000 subscriptions.

    Runs the whole pipeline on Spark: ingest, vocabulary, index in shards, matching in batch and as a stream with
    live changes. Uses a small sample of open data that comes with nearcast; needs no network. Leaves report.html,
    all tables and the index. A second run does only what changed.

    \b
    Example:
      nearcast demo --out demo-output
    """
    from nearcast.cli.warmup import warmed

    warmed(list(_USED), as_json)  # so that the figures below do not time the compiler
    if library or not _has_spark():
        warmed(list(_USED), as_json, processes=1)  # nor the loading of what other processes have compiled
        done = _by_library(n_drawn, out, as_json)
    else:
        from nearcast.demo.pipeline import by_pipeline

        done = by_pipeline(n_drawn, out, master, force, as_json)
    written = _write(done, out)
    show(
        {**done.figures, "files": [str(file) for file in written], "licence": LICENCE},
        as_json,
        _told(done, written),
    )


def _has_spark() -> bool:
    from importlib.util import find_spec

    if find_spec("pyspark") is not None:
        return True
    note("PySpark is not installed, so the library runs alone; for the pipeline: pip install 'nearcast[spark]'")
    return False


def _by_library(n_drawn: int, out: Path, quiet: bool) -> Demo:
    with progress(quiet) as shown:
        done = _run(n_drawn, shown)
        with working(shown, "writing the tables"):
            from nearcast.tables import write_table

            write_table(done.matches, out / "matches.parquet")
            write_table(done.subscriptions, out / "subscriptions.parquet")
    return done


def _run(n_drawn: int, shown: Progress) -> Demo:
    from nearcast.engine.index import build_index

    with working(shown, "drawing subscriptions"):
        messages = sample_messages()
        subscriptions = subscriptions_table(messages, n_drawn)
    with working(shown, "building the index"):
        start = time.perf_counter()
        index = build_index(subscriptions)
        build_seconds = time.perf_counter() - start
    with working(shown, "matching"):
        matches, figures = _matched(index, messages)
    with working(shown, "checking against brute force"):
        figures |= checked(subscriptions, messages, matches)
    figures = {"build_seconds": build_seconds, **figures}
    return Demo(messages, subscriptions, matches, figures, figures_told(figures))


def _matched(index: Index, messages: pa.Table) -> tuple[pa.Table, dict[str, Any]]:
    start = time.perf_counter()
    matches = index.match(messages)
    whole_seconds = time.perf_counter() - start
    batch = index.read_messages(messages)
    work, seconds = index.stats, []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        index.matcher.match(batch)
        seconds.append(time.perf_counter() - start)
    n = messages.num_rows
    return matches, {
        "method": index.method,
        "chosen": chosen_by(index),
        "subscriptions": len(index),
        "messages": n,
        "deliveries": matches.num_rows,
        "messages_per_second": n / whole_seconds,
        "us_per_message": 1e6 * statistics.median(seconds) / n,
        "candidates_per_message": work.candidates / n,
        "bytes_per_subscription": index.nbytes / len(index),
    }


def checked(subscriptions: pa.Table, messages: pa.Table, matches: pa.Table) -> dict[str, Any]:
    """Every nth message once more, by comparing everything with everything."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from nearcast.engine.index import build_index

    step = max(1, messages.num_rows // CHECKED_MESSAGES)
    slice_ = messages.take(pa.array(range(0, messages.num_rows, step)))
    expected = build_index(subscriptions, "brute").match(slice_)
    found = matches.filter(pc.is_in(matches["message"], slice_["id"].combine_chunks()))
    if not found.equals(expected):
        raise NearcastError(
            f"the matches differ from brute force: {found.num_rows} pairs, {expected.num_rows} expected"
        )
    return {"checked_messages": slice_.num_rows, "checked_pairs": expected.num_rows}


def _write(done: Demo, out: Path) -> list[Path]:
    """The report; and what else lies beside it."""
    from nearcast.arrays.bundle import write_whole
    from nearcast.demo.report import report_html

    write_whole(out / "report.html", report_html(done, deliveries_of(done), _pictures(done)).encode())
    return sorted(file for file in out.iterdir() if not file.name.startswith("."))


def _pictures(done: Demo) -> dict[str, bytes]:
    """By caption; none, with a note, where matplotlib is not installed."""
    try:
        from nearcast.demo.pictures import pictures
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        note("the report has no pictures: they need matplotlib, as in pip install 'nearcast[pictures]'")
        return {}
    return pictures(done.messages, done.matches)


def counts_of(done: Demo) -> dict[int, int]:
    """Deliveries of each wish."""
    import pyarrow.compute as pc

    counted = {row["values"]: row["counts"] for row in pc.value_counts(done.matches["subscription"]).to_pylist()}
    return {wish.id: counted.get(wish.id, 0) for wish in DEMO_SUBSCRIPTIONS}


def deliveries_of(done: Demo) -> list[Delivery]:
    """For each wish one message: the middle one of those it got."""
    import pyarrow.compute as pc

    chosen = []
    for wish in DEMO_SUBSCRIPTIONS:
        got = done.matches.filter(pc.equal(done.matches["subscription"], wish.id))["message"]
        if len(got):
            chosen.append(got[len(got) // 2].as_py())
    return [_delivery(done, message) for message in sorted(set(chosen))]


def _delivery(done: Demo, message: int) -> Delivery:
    import pyarrow.compute as pc

    row = done.messages.filter(pc.equal(done.messages["id"], message)).to_pylist()[0]
    to = set(done.matches.filter(pc.equal(done.matches["message"], message))["subscription"].to_pylist())
    names = [wish.name for wish in DEMO_SUBSCRIPTIONS if wish.id in to]
    return Delivery(f"{row['time']:%d %b %H:%M}", row["text"], names, len(to) - len(names))


def figures_told(figures: dict[str, Any]) -> list[tuple[str, str]]:
    """The library's figures in words."""
    return [
        ("subscriptions", f"{figures['subscriptions']:,} ({len(DEMO_SUBSCRIPTIONS)} written by hand, the others drawn)"),
        ("messages", f"{figures['messages']:,}"),
        (
            "deliveries",
            f"{figures['deliveries']:,}, {figures['deliveries'] / figures['messages']:.0f} per message",
        ),
        ("index built in", f"{figures['build_seconds']:.2f} s, from the table"),
        ("text to deliveries", f"{figures['messages_per_second']:,.0f} messages per second on one core"),
        ("matching alone", f"{figures['us_per_message']:.1f} µs per message, method {figures['chosen']}"),
        ("work", f"{figures['candidates_per_message']:,.0f} candidates compared per message"),
        ("memory", f"{figures['bytes_per_subscription']:.0f} bytes per subscription"),
        ("checked", checked_told(figures)),
    ]


def checked_told(figures: dict[str, Any]) -> str:
    return f"{figures['checked_pairs']:,} pairs of {figures['checked_messages']} messages: same as brute"


def _told(done: Demo, files: list[Path]) -> Group:
    counts = counts_of(done)
    wishes = Table("who", "what", "where", "got", title="Subscriptions written by hand", title_justify="left")
    wishes.columns[3].justify = "right"
    for wish in DEMO_SUBSCRIPTIONS:
        wishes.add_row(wish.name, shown_expression(wish), wish.where, f"{counts[wish.id]:,}")
    examples = Table("when (UTC)", "message", "delivered to", title="Some deliveries", title_justify="left")
    for delivery in deliveries_of(done):
        examples.add_row(delivery.time, Text(delivery.text), told_names(delivery))
    grid = Table.grid(padding=(0, 2))
    for name, value in done.lines:
        grid.add_row(name, value)
    report = next(file for file in files if file.name == "report.html")
    grid.add_row("left behind", f"{report}, with {len(files) - 1} tables and folders beside it")
    return Group(wishes, examples, grid, Text(f"\n{LICENCE}"))


def shown_expression(wish: DemoSubscription) -> str:
    return wish.expression or "(everything)"


def told_names(delivery: Delivery) -> str:
    return f"{', '.join(delivery.names)} and {delivery.others:,} others"

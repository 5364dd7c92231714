"""The outcome of a demo run: its check, the rows that the screen shows, and the report, one HTML file."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from nearcast.arrays.bundle import write_whole
from nearcast.demo.demo_subscriptions import DEMO_SUBSCRIPTIONS, LICENCE
from nearcast.engine.index import build_index
from nearcast.errors import NearcastError
from nearcast.ingest.reports.page import html_figure, html_page, html_table
from nearcast.ingest.reports.table_report import report_html

CHECKED_MESSAGES = 500
_TITLE = "nearcast demo"


class DemoResult(NamedTuple):
    """Tables and figures of a demo run."""

    messages: pa.Table  # id, text, lon, lat, time
    subscriptions: pa.Table
    matches: pa.Table
    figures: dict[str, Any]
    lines: list[tuple[str, str]]  # the figures in words: (name, value)
    statistics: dict[str, Any] | None = None  # of the messages, if Spark counted them


def check_matches(subscriptions: pa.Table, messages: pa.Table, matches: pa.Table) -> dict[str, int]:
    """Compare every nth message with brute force; return the numbers of messages and pairs compared."""
    step = max(1, messages.num_rows // CHECKED_MESSAGES)
    sample = messages.take(pa.array(range(0, messages.num_rows, step)))
    expected = build_index(subscriptions, "brute", extra=["name"]).match(sample)
    found = matches.filter(pc.is_in(matches["message"], sample["id"].combine_chunks()))
    if not found.equals(expected):
        raise NearcastError(
            f"the matches differ from brute force: {found.num_rows} pairs, {expected.num_rows} expected"
        )
    return {"checked_messages": sample.num_rows, "checked_pairs": expected.num_rows}


def count_lines(figures: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """The lines that both demo runs show, by name."""
    n = f"{figures['subscriptions']:,} ({len(DEMO_SUBSCRIPTIONS)} written by hand, the others drawn)"
    checked = f"{figures['checked_pairs']:,} pairs of {figures['checked_messages']} messages: same as brute"
    return {"subscriptions": ("subscriptions", n), "checked": ("checked", checked)}


SUBSCRIPTION_TITLES = ("who", "what", "where", "deliveries")


def subscription_rows(result: DemoResult) -> list[tuple[str, str, str, str]]:
    """Name, expression, place and number of deliveries of each subscription that was written by hand."""
    counts = {row["values"]: row["counts"] for row in pc.value_counts(result.matches["subscription"]).to_pylist()}
    return [
        (each.name, each.expression or "(everything)", each.where, f"{counts.get(each.id, 0):,}")
        for each in DEMO_SUBSCRIPTIONS
    ]


DELIVERY_TITLES = ("when (UTC)", "message", "delivered to")


def delivery_rows(result: DemoResult) -> list[tuple[str, str, str]]:
    """Time, text and recipients of some messages: for each subscription written by hand, the middle one it got."""
    chosen = set()
    for each in DEMO_SUBSCRIPTIONS:
        received = result.matches.filter(pc.equal(result.matches["subscription"], each.id))["message"]
        if len(received):
            chosen.add(received[len(received) // 2].as_py())
    return [_delivery_row(result, message) for message in sorted(chosen)]


def _delivery_row(result: DemoResult, message: int) -> tuple[str, str, str]:
    row = result.messages.filter(pc.equal(result.messages["id"], message)).to_pylist()[0]
    ids = set(result.matches.filter(pc.equal(result.matches["message"], message))["subscription"].to_pylist())
    names = [each.name for each in DEMO_SUBSCRIPTIONS if each.id in ids]
    return f"{row['time']:%d %b %H:%M}", row["text"], f"{', '.join(names)} and {len(ids) - len(names):,} others"


def write_report(result: DemoResult, file: Path, note: Callable[[str], None]) -> None:
    """Write the report. `note` is called with a line of text if the report has no pictures."""
    pictures = _draw_pictures(result, note)
    parts = [
        "<p>Traffic messages of Calgary, 2024, each delivered to the subscriptions that it matches.</p>",
        html_table((), result.lines),
        "<h2>Who got what</h2>",
        html_table(SUBSCRIPTION_TITLES, subscription_rows(result)),
        "<h2>Some deliveries</h2>",
        html_table(DELIVERY_TITLES, delivery_rows(result)),
        "<h2>Pictures</h2>",
        *(html_figure(caption, png) for caption, png in pictures.items()),
        f"<footer><p>{escape(LICENCE)}</p></footer>",
    ]
    html = html_page(_TITLE, parts) if result.statistics is None else report_html(result.statistics, _TITLE, parts)
    write_whole(file, html.encode(), is_private=False)


def _draw_pictures(result: DemoResult, note: Callable[[str], None]) -> dict[str, bytes]:
    """The pictures as PNGs by caption; none, with a note, if matplotlib is not installed."""
    try:
        from nearcast.demo.pictures import draw_pictures
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        note("the report has no pictures: they need matplotlib; install it with pip install 'nearcast[pictures]'")
        return {}
    return draw_pictures(result.messages, result.matches)

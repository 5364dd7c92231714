"""The demo's report: one HTML file that needs no other file."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from pathlib import Path

from nearcast.arrays.bundle import write_whole
from nearcast.demo.demo_subscriptions import LICENCE
from nearcast.demo.result import DELIVERY_TITLES, SUBSCRIPTION_TITLES, DemoResult, delivery_rows, subscription_rows
from nearcast.ingest.reports.page import html_figure, html_page, html_table
from nearcast.ingest.reports.table_report import report_html

_TITLE = "nearcast demo"


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
    write_whole(file, html.encode())


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

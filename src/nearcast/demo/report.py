"""The demo's report: one HTML file that needs nothing else."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from nearcast.cli.demo import counts_of, shown_expression, told_names
from nearcast.demo.demo_subscriptions import LICENCE, DEMO_SUBSCRIPTIONS
from nearcast.ingest.reports.page import html_figure, html_page, html_table
from nearcast.ingest.reports.table_report import report_html as statistics_html

if TYPE_CHECKING:
    from nearcast.cli.demo import Delivery, Demo

_TITLE = "nearcast demo"


def report_html(done: Demo, deliveries: list[Delivery], pictures: dict[str, bytes]) -> str:
    """The page; pictures are PNGs by caption. What Spark counted follows, where it ran."""
    parts = [*_parts(done, deliveries), *(html_figure(caption, png) for caption, png in pictures.items())]
    parts.append(f"<footer><p>{escape(LICENCE)}</p></footer>")
    return html_page(_TITLE, parts) if done.statistics is None else statistics_html(done.statistics, _TITLE, parts)


def _parts(done: Demo, deliveries: list[Delivery]) -> list[str]:
    counts = counts_of(done)
    wishes = [(wish.name, shown_expression(wish), wish.where, counts[wish.id]) for wish in DEMO_SUBSCRIPTIONS]
    examples = [(delivery.time, delivery.text, told_names(delivery)) for delivery in deliveries]
    return [
        "<p>Traffic messages of Calgary, 2024, each delivered to the subscriptions that it concerns.</p>",
        html_table((), done.lines),
        "<h2>Who got what</h2>",
        html_table(("who", "what", "where", "deliveries"), wishes),
        "<h2>Some deliveries</h2>",
        html_table(("when (UTC)", "message", "delivered to"), examples),
        "<h2>Pictures</h2>",
    ]

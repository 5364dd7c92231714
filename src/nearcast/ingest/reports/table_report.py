"""The report on an ingested table: one HTML page with embedded pictures."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from nearcast.arrays.bundle import write_whole
from nearcast.ingest.reports.page import html_figure, html_page, html_table


def write_report(
    path: str | os.PathLike[str], stats: dict[str, Any], *, title: str = "nearcast report", more: Iterable[str] = ()
) -> None:
    """Write the page about `stats`. `more` is HTML that comes before the statistics."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_whole(target, report_html(stats, title, more).encode(), is_private=False)


def report_html(stats: dict[str, Any], title: str, more: Iterable[str]) -> str:
    parts = [*more, *_ingested(stats.get("ingest"))]
    if stats["messages"]:
        parts += ["<h2>What is in the messages</h2>", html_table((), _figures(stats)), *_pictures(stats)]
        words = stats["words"]["top"]
        parts += ["<h2>Most frequent words</h2>", html_table(("word", "messages"), words)]
    else:
        parts.append("<p>There are no messages.</p>")
    return html_page(title, parts)


def _ingested(counts: dict[str, Any] | None) -> list[str]:
    if not counts:
        return []
    names = ("read", "accepted", "rejected", "files", "bytes")
    parts = ["<h2>What was read</h2>", html_table((), [(name, counts[name]) for name in names])]
    if counts["by_reason"]:
        parts.append(html_table(("reason", "records"), counts["by_reason"].items()))
    return parts


def _figures(stats: dict[str, Any]) -> list[tuple[str, object]]:
    words, places = stats["words"], stats["places"]
    return [
        ("messages", stats["messages"]),
        ("words in them", words["occurrences"]),
        ("different words", words["different"]),
        ("words in one message only", words["in_one_message"]),
        ("different words in a message, mean", words["different_per_message"]),
        ("box around all places", ", ".join(f"{bound:.6g}" for bound in places["box"])),
        ("cells of the map in use", f"{places['cells_in_use']:,} of {places['cells']:,}"),
        ("messages in the densest hundredth of them", f"{places['share_of_densest_hundredth']:.1%}"),
    ]


def _pictures(stats: dict[str, Any]) -> list[str]:
    """The pictures as figures, or one line if matplotlib is not installed."""
    try:
        from nearcast.ingest.reports.pictures import pictures
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        return ["<p>Pictures need matplotlib: pip install 'nearcast[pictures]'.</p>"]
    return [html_figure(caption, png) for caption, png in pictures(stats).items()]

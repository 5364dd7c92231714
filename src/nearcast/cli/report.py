"""The demo's report: one HTML file that needs nothing else."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

from nearcast.cli.demo import counts_of, figures_told, shown_expression, told_names
from nearcast.cli.wishes import LICENCE, WISHES

if TYPE_CHECKING:
    from nearcast.cli.demo import Delivery, Demo

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 60rem;
       margin: 2rem auto; padding: 0 1rem; }
h1, h2 { line-height: 1.2; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 0.9rem; }
th, td { text-align: left; vertical-align: top; padding: 0.3rem 0.8rem 0.3rem 0;
         border-bottom: 1px solid #ddd; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
img { max-width: 100%; height: auto; }
figure { margin: 1.5rem 0; }
figcaption { color: #555; font-size: 0.9rem; }
footer { color: #555; font-size: 0.85rem; margin-top: 3rem; border-top: 1px solid #ddd; }
"""


def report_html(done: Demo, deliveries: list[Delivery], pictures: dict[str, bytes]) -> str:
    """The page; pictures are PNGs by caption."""
    counts = counts_of(done)
    wishes = [(wish.name, shown_expression(wish), wish.where, f"{counts[wish.id]:,}") for wish in WISHES]
    examples = [(delivery.time, delivery.text, told_names(delivery)) for delivery in deliveries]
    parts = [
        "<h1>nearcast demo</h1>",
        "<p>Traffic messages of Calgary, 2024, each delivered to the subscriptions that it concerns.</p>",
        _table(("", ""), figures_told(done.figures)),
        "<h2>Who got what</h2>",
        _table(("who", "what", "where", "deliveries"), wishes),
        "<h2>Some deliveries</h2>",
        _table(("when (UTC)", "message", "delivered to"), examples),
        "<h2>Pictures</h2>",
        *(_figure(caption, png) for caption, png in pictures.items()),
        f"<footer><p>{escape(LICENCE)}</p></footer>",
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>nearcast demo</title>'
        f"<style>{_STYLE}</style></head>\n<body>\n" + "\n".join(parts) + "\n</body></html>\n"
    )


def _table(names: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in names) if any(names) else ""
    body = "\n".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows)
    return f"<table>\n<tr>{head}</tr>\n{body}\n</table>" if head else f"<table>\n{body}\n</table>"


def _cell(value: str) -> str:
    number = ' class="number"' if value.replace(",", "").isdigit() else ""
    return f"<td{number}>{escape(value)}</td>"


def _figure(caption: str, png: bytes) -> str:
    image = f'<img alt="{escape(caption)}" src="data:image/png;base64,{b64encode(png).decode()}">'
    return f"<figure>{image}<figcaption>{escape(caption)}</figcaption></figure>"

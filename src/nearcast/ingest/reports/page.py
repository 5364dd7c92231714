"""Self-contained HTML pages with tables and embedded pictures."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape

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
figcaption, footer { color: #555; font-size: 0.9rem; }
"""


def html_page(title: str, parts: Iterable[str]) -> str:
    """A whole page; `parts` are HTML."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head>\n<body>\n<h1>{escape(title)}</h1>\n" + "\n".join(parts) + "\n</body></html>\n"
    )


def html_table(names: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table. Values are escaped; numbers get commas and are right-aligned. Without names there is no head."""
    head = "<tr>" + "".join(f"<th>{escape(name)}</th>" for name in names) + "</tr>\n" if any(names) else ""
    body = "\n".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows)
    return f"<table>\n{head}{body}\n</table>"


def html_figure(caption: str, png: bytes) -> str:
    image = f'<img alt="{escape(caption)}" src="data:image/png;base64,{b64encode(png).decode()}">'
    return f"<figure>{image}<figcaption>{escape(caption)}</figcaption></figure>"


def _cell(value: object) -> str:
    if isinstance(value, float):
        value = f"{value:,.2f}"
    elif isinstance(value, int):
        value = f"{value:,}"
    text = str(value)
    number = ' class="number"' if text.replace(",", "").replace(".", "").isdigit() else ""
    return f"<td{number}>{escape(text)}</td>"

"""What notebooks show of an index, an engine, a `TopK` or a `Moving`: counts, memory, and a small map."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np

from nearcast.geo.space import Space

WIDTH, HEIGHT = 240, 120
CELLS_X, CELLS_Y = 48, 24
MOST_ROWS = 100_000
"""Subscriptions that are drawn: of more, an even sample."""


def html_summary(title: str, figures: Mapping[str, object], boxes: np.ndarray, space: Space) -> str:
    """A table of figures beside a map of the boxes (float64[n,4])."""
    pairs = ((escape(name), escape(_shown(value))) for name, value in figures.items())
    rows = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in pairs)
    table = f"<table><caption>{escape(title)}</caption>{rows}</table>"
    return f'<div style="display:flex;gap:1em;align-items:center">{table}{density_map(boxes, space)}</div>'


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def memory_text(n_bytes: int) -> str:
    """A number of bytes as people say it."""
    size, unit = float(n_bytes), "bytes"
    for larger in ("kB", "MB", "GB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:.3g} {unit}" if unit != "bytes" else f"{n_bytes} bytes"


def density_map(boxes: np.ndarray, space: Space) -> str:
    """An SVG picture: how many of the boxes have their centres where. Boxes of the whole space are left out."""
    inner = boxes[~(boxes == space.bounds).all(axis=1)] if len(boxes) else boxes
    head = f'<svg width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {CELLS_X} {CELLS_Y}" role="img">'
    frame = f'<rect width="{CELLS_X}" height="{CELLS_Y}" fill="none" stroke="#999" stroke-width="0.2"/>'
    if len(inner) == 0:
        return f"{head}<title>no subscription has a place</title>{frame}</svg>"
    centres = inner[:, :2] / 2 + inner[:, 2:] / 2
    low, high = centres.min(axis=0), centres.max(axis=0)
    side = np.maximum(high - low, 1e-9)
    cells = np.minimum((centres - low) / side * (CELLS_X, CELLS_Y), (CELLS_X - 1, CELLS_Y - 1)).astype(np.int64)
    counts = np.bincount(cells[:, 1] * CELLS_X + cells[:, 0], minlength=CELLS_X * CELLS_Y)
    shades = np.log1p(counts) / np.log1p(counts.max())
    squares = "".join(
        f'<rect x="{at % CELLS_X}" y="{CELLS_Y - 1 - at // CELLS_X}" width="1" height="1" fill="#06c" '
        f'fill-opacity="{0.15 + 0.85 * shades[at]:.2f}"/>'
        for at in np.flatnonzero(counts).tolist()
    )
    place = " to ".join(f"{x:.4g}, {y:.4g}" for x, y in (low.tolist(), high.tolist()))
    return f"{head}<title>where the subscriptions are: {place}</title>{squares}{frame}</svg>"


def sampled(rows: np.ndarray) -> np.ndarray:
    """All of these rows, or an even sample."""
    return rows[:: max(1, len(rows) // MOST_ROWS)]

"""Pictures of the statistics of a table, as PNGs. This module needs matplotlib: import it only where needed."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure

_INK, _BAR = "#222222", "#2a6f97"
_MOST_REASONS = 12


def pictures(stats: dict[str, Any]) -> dict[str, bytes]:
    """The pictures by caption; those without data are left out."""
    made = {
        "Where the messages are: each cell's colour is the number of messages in it, on a logarithmic scale.": _map(
            stats["places"]
        ),
        "How many messages hold each word, by the word's rank: Zipf's law is a straight line.": _zipf(stats["words"]),
        "How long messages are, in tokens and in characters.": _lengths(stats["lengths"]),
    }
    if stats.get("times"):
        made["When messages were sent (UTC)."] = _times(stats["times"])
    reasons = (stats.get("ingest") or {}).get("by_reason")
    if reasons:
        made["Records that were refused, by reason."] = _rejects(reasons)
    return made


def _png(figure: Figure, has_frame: bool = False) -> bytes:
    """The figure as a PNG, without the upper and right sides of its frames unless `has_frame`."""
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(has_frame)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=120, metadata={"Software": None})
    return out.getvalue()


def _map(places: dict[str, Any]) -> bytes:
    density = np.array(places["density"], float)
    xmin, ymin, xmax, ymax = places["box"]
    figure = Figure(figsize=(8, 6), layout="constrained")
    axes = figure.add_subplot()
    density[density == 0] = np.nan
    is_flat = xmax == xmin or ymax == ymin  # all places are on one line, but an extent needs two dimensions
    image = axes.imshow(
        density,
        origin="lower",
        extent=None if is_flat else (xmin, xmax, ymin, ymax),
        norm=LogNorm(1, max(2.0, float(np.nanmax(density)))),
        aspect="auto" if is_flat else _aspect(ymin, ymax),
        interpolation="nearest",
    )
    figure.colorbar(image, label="messages in the cell")
    names = ("longitude, degrees", "latitude, degrees") if _is_globe(places["box"]) else ("x", "y")
    axes.set(title=f"{int(np.nansum(density)):,} messages", xlabel=names[0], ylabel=names[1])
    return _png(figure, has_frame=True)


def _is_globe(box: list[float]) -> bool:
    """Whether these can be longitudes and latitudes."""
    xmin, ymin, xmax, ymax = box
    return -180 <= xmin and xmax <= 180 and -90 <= ymin and ymax <= 90


def _aspect(ymin: float, ymax: float) -> float:
    """The height of a unit of y over the width of a unit of x: lon/lat by latitude, 1 in a plane."""
    middle = (ymin + ymax) / 2
    is_latitude = -90 <= ymin and ymax <= 90
    return 1 / max(0.2, math.cos(math.radians(middle))) if is_latitude else 1.0


def _zipf(words: dict[str, Any]) -> bytes:
    figure = Figure(figsize=(8, 4.6), layout="constrained")
    axes = figure.add_subplot()
    if words["zipf_ranks"]:
        axes.loglog(words["zipf_ranks"], words["zipf_counts"], ".", markersize=5, color=_BAR)
    for rank, (token, count) in enumerate(words["top"], 1):
        if rank in (1, 4, 16):
            axes.annotate(_plain_text(token[:30]), (rank, count), (6, 6), textcoords="offset points", color=_INK)
    title = f"{words['different']:,} different words"
    axes.set(title=title, xlabel="rank of the word", ylabel="messages that hold it")
    return _png(figure)


def _plain_text(token: str) -> str:
    """The token with "?" for characters that the font lacks, and for $, which begins a formula."""
    return "".join(sign if sign.isascii() and sign.isprintable() and sign != "$" else "?" for sign in token)


def _lengths(lengths: dict[str, Any]) -> bytes:
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    tokens, characters = figure.subplots(1, 2)
    counts = np.array(lengths["tokens"])
    last = int(np.flatnonzero(counts).max(initial=0)) + 1
    tokens.bar(np.arange(last), counts[:last], width=1.0, color=_BAR)
    tokens.set(xlabel="tokens", ylabel="messages")
    bits = np.array(lengths["characters_bits"])
    used = int(np.flatnonzero(bits).max(initial=0)) + 1
    characters.bar(np.arange(used), bits[:used], width=0.9, color=_BAR)
    characters.set_xticks(np.arange(used), [_range(k) for k in range(used)], rotation=45, ha="right")
    characters.set(xlabel="characters", ylabel="messages")
    return _png(figure)


def _range(bits: int) -> str:
    return str(bits) if bits < 2 else f"{2 ** (bits - 1):,}–{2**bits - 1:,}"


def _times(times: dict[str, Any]) -> bytes:
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    days, hours = figure.subplots(1, 2, width_ratios=(2, 1))
    counts = np.array(times["messages"])
    first, each = np.datetime64(times["first_day"], "D"), int(times["days_each"])
    days.bar(first + each * np.arange(len(counts)), counts, width=each, align="edge", color=_BAR)
    days.set(xlabel="day, UTC", ylabel="messages a day" if each == 1 else f"messages in {each} days")
    days.xaxis.set_major_locator(locator := AutoDateLocator(maxticks=8))
    days.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    hours.bar(np.arange(24) + 0.5, times["hours"], width=0.85, color=_BAR)
    hours.set(xlabel="hour of the day, UTC", ylabel="messages", xticks=range(0, 25, 6))
    return _png(figure)


def _rejects(reasons: dict[str, int]) -> bytes:
    top = list(reasons.items())[:_MOST_REASONS]
    figure = Figure(figsize=(10, 1.2 + 0.4 * len(top)), layout="constrained")
    axes = figure.add_subplot()
    axes.barh(range(len(top)), [count for _, count in top], color=_BAR)
    axes.set_yticks(range(len(top)), [_plain_text(reason.replace("…", "..."))[:60] for reason, _ in top])
    axes.invert_yaxis()
    axes.set(xscale="symlog", xlabel="records")
    return _png(figure)

"""The demo's pictures as PNGs. This module imports matplotlib, so import it only to draw."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.dates import DateFormatter, MonthLocator
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from nearcast.demo.demo_subscriptions import DEMO_SUBSCRIPTIONS, KM_PER_DEGREE, LON_PER_LAT
from nearcast.text.analyser import Analyser

_INK, _DOT, _BAR = "#222222", "#5b7c99", "#2a6f97"
_COLOURS = ("#d1495b", "#edae49", "#00798c", "#6a4c93", "#2e933c", "#8d6a4f", "#e07a5f", "#3d5a80")


def draw_pictures(messages: pa.Table, matches: pa.Table) -> dict[str, bytes]:
    """All pictures, by caption."""
    return {
        "Every dot is a message; outlines are the regions of subscriptions written by hand.": _map(messages),
        "Deliveries over the year and over the day, in UTC as all times here; Calgary is 6 or 7 hours behind.": _times(
            messages, matches
        ),
        "Number of messages with each word: a few words occur in most messages, most words in few.": _words(messages),
    }


def _png(figure: Figure) -> bytes:
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=120, metadata={"Software": None})
    return out.getvalue()


def _map(messages: pa.Table) -> bytes:
    figure = Figure(figsize=(8, 8.4), layout="constrained")
    axes = figure.add_subplot()
    axes.scatter(messages["lon"], messages["lat"], s=5, color=_DOT, alpha=0.4, linewidths=0, rasterized=True)
    for colour, (name, xs, ys) in zip(_COLOURS, _outlines(), strict=False):
        axes.plot(xs, ys, color=colour, linewidth=2, label=name)
    axes.set(aspect=LON_PER_LAT, title=f"{messages.num_rows:,} traffic messages, Calgary, 2024")
    axes.set(xlabel="longitude, degrees", ylabel="latitude, degrees")
    axes.xaxis.set_major_locator(MultipleLocator(0.1))
    axes.yaxis.set_major_locator(MultipleLocator(0.1))
    _scale_bar(axes)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return _png(figure)


def _outlines() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Name and outline of each subscription with a region."""
    for each in DEMO_SUBSCRIPTIONS:
        if each.region.startswith("circle"):
            x, y, km = (float(part.removesuffix("km")) for part in each.region[len("circle(") : -1].split(","))
            angles = np.linspace(0, 2 * np.pi, 200)
            radius = km / KM_PER_DEGREE
            yield each.name, x + radius * LON_PER_LAT * np.cos(angles), y + radius * np.sin(angles)
        elif each.region.startswith("{"):
            ring = np.array(json.loads(each.region)["coordinates"][0])
            yield each.name, ring[:, 0], ring[:, 1]


def _scale_bar(axes: Any, km: float = 5.0) -> None:
    length = km / KM_PER_DEGREE * LON_PER_LAT
    x, y = axes.get_xlim()[0] + 0.012, axes.get_ylim()[0] + 0.008
    axes.plot([x, x + length], [y, y], color=_INK, linewidth=3, solid_capstyle="butt")
    axes.text(x + length / 2, y + 0.003, f"{km:g} km", ha="center", va="bottom", color=_INK)


def _times(messages: pa.Table, matches: pa.Table) -> bytes:
    rows = np.searchsorted(messages["id"].to_numpy(), matches["message"].to_numpy())
    seconds = messages["time"].cast(pa.timestamp("s", "UTC"), safe=False).cast(pa.int64()).to_numpy()
    times = seconds[rows]
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    year, day = figure.subplots(1, 2, width_ratios=(2, 1))
    days = times // 86400
    counts = np.bincount((days - days.min()) // 7) / 1000
    weeks = (days.min() + 7 * np.arange(len(counts))).astype("datetime64[D]")
    year.bar(weeks, counts, width=6.2, align="edge", color=_BAR)
    year.set(title="Deliveries per week", xlabel="month, UTC", ylabel="thousand deliveries")
    year.xaxis.set_major_locator(MonthLocator())
    year.xaxis.set_major_formatter(DateFormatter("%b"))
    day.bar(np.arange(24) + 0.5, np.bincount(times // 3600 % 24, minlength=24) / 1000, width=0.85, color=_BAR)
    day.set(
        title="Deliveries by hour of day",
        xlabel="hour of the day, UTC",
        ylabel="thousand deliveries",
        xticks=range(0, 25, 6),
    )
    return _png(figure)


def _words(messages: pa.Table) -> bytes:
    """Number of messages with a word by the rank of the word. On two logarithmic axes Zipf's law is a straight line."""
    names, counts = _frequencies(messages)
    ranks = np.arange(1, len(counts) + 1)
    figure = Figure(figsize=(8, 4.6), layout="constrained")
    axes = figure.add_subplot()
    axes.loglog(ranks, counts, ".", markersize=4, color=_BAR)
    for rank in (1, 4, 16, 64, 256):
        spelt = next((k for k in range(rank, len(names)) if names[k - 1].isalpha()), None)  # skips house numbers
        if spelt is not None:
            at = (spelt, counts[spelt - 1])
            axes.annotate(names[spelt - 1], at, (6, 6), textcoords="offset points", color=_INK)
    axes.set(title=f"{len(counts):,} different words", xlabel="rank of the word", ylabel="messages that contain it")
    return _png(figure)


def _frequencies(messages: pa.Table) -> tuple[list[str], np.ndarray]:
    tokens = Analyser().tokens_batch(messages["text"])
    pairs = pa.table({"message": pc.list_parent_indices(tokens), "token": pc.list_flatten(tokens)})
    distinct = pairs.group_by(["message", "token"]).aggregate([])
    counted = distinct.group_by("token").aggregate([([], "count_all")])
    counted = counted.sort_by([("count_all", "descending"), ("token", "ascending")])
    return counted["token"].to_pylist(), counted["count_all"].to_numpy()

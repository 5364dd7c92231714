"""Pictures of results: panels of lines or bars on a logarithmic axis, one colour for each method."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any, NamedTuple

from nearcast.bench.reports.figures import figures
from nearcast.bench.reports.tables import format_value
from nearcast.bench.runs.results import Result
from nearcast.errors import InvalidInput, NearcastError


class NoMatplotlib(NearcastError):
    """Matplotlib, which pictures need, is not installed."""


_PANEL_INCHES = (4.6, 3.4)
_FEWEST_FOR_LINES = 3
_MOST_IN_A_ROW = 4
_ENDINGS = (".png", ".svg", ".pdf")


class Mark(NamedTuple):
    """One measured value: its position on the axis, its method, its height."""

    key: str  # identifies the position on the axis
    label: str
    method: str
    height: float
    low: float | None = None  # of the rounds; no bar is drawn without
    high: float | None = None


class Labels(NamedTuple):
    title: str
    along: str
    height: str


def save_picture(result: Result, path: str | os.PathLike[str]) -> None:
    """Draw µs per message to a .png, .svg or .pdf file, with one panel for each group of messages."""
    varied = result.sweep["varied"]
    along = varied[-1] if varied else None  # the last parameter varies along the axis, the first makes panels
    apart = varied[0] if len(varied) > 1 else None
    panels: dict[str, list[Mark]] = {}
    for line in figures(result):
        if line.batch_us:
            name = line.group if apart is None else f"{line.group}, {apart} {format_value(line.varied[apart])}"
            value = line.workload if along is None else line.varied[along]
            panels.setdefault(name, []).append(Mark(str(value), format_value(value), line.method, line.batch_us))
    labels = Labels(f"{result.sweep['name']}: CPU time per message", along or "", "µs per message")
    save_panels(panels, labels, path)


def save_panels(panels: dict[str, list[Mark]], labels: Labels, path: str | os.PathLike[str]) -> None:
    """Draw one panel for each title."""
    if Path(path).suffix.lower() not in _ENDINGS:
        raise InvalidInput(f"{path} has no known ending; pictures go to {', '.join(_ENDINGS)}")
    if not panels:
        raise InvalidInput("nothing was measured, so there is nothing to draw")
    figure = _drawn(panels, labels)
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(target, dpi=120)
    except OSError as error:
        raise InvalidInput(f"{target} cannot be written: {error}") from None


def _drawn(panels: dict[str, list[Mark]], labels: Labels) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise NoMatplotlib("pictures need matplotlib: pip install 'nearcast[pictures]'") from None
    across = min(len(panels), _MOST_IN_A_ROW)
    down = math.ceil(len(panels) / across)
    size = (_PANEL_INCHES[0] * across, _PANEL_INCHES[1] * down + 0.6)
    figure = Figure(figsize=size, layout="constrained")
    methods = list(dict.fromkeys(mark.method for marks in panels.values() for mark in marks))
    grid = figure.subplots(down, across, squeeze=False, sharey=True).ravel()
    for axes, (title, marks) in zip(grid, panels.items(), strict=False):
        _draw_panel(axes, marks, methods, labels)
        axes.set_title(title, fontsize=10)
    for axes in grid[len(panels) :]:
        axes.set_visible(False)
    handles, names = grid[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=min(6, len(methods)), frameon=False)
    figure.suptitle(labels.title, fontsize=11)
    return figure


def _draw_panel(axes: Any, marks: list[Mark], methods: list[str], labels: Labels) -> None:
    places = dict.fromkeys((mark.key, mark.label) for mark in marks)
    spots = {place: k for k, place in enumerate(places)}
    as_lines = len(spots) >= _FEWEST_FOR_LINES
    width = 0.8 / len(methods)
    for number, method in enumerate(methods):
        own = [mark for mark in marks if mark.method == method]
        heights = [mark.height for mark in own]
        at: list[float] = [spots[mark.key, mark.label] for mark in own]
        color = f"C{number}"
        if as_lines:
            axes.plot(at, heights, marker="o", markersize=4, label=method, color=color)
        else:
            at = [spot + (number - (len(methods) - 1) / 2) * width for spot in at]
            axes.bar(at, heights, width, label=method, color=color)
        if any(mark.low is not None and mark.high is not None and mark.low < mark.high for mark in own):
            below = [mark.height - (mark.height if mark.low is None else mark.low) for mark in own]
            above = [(mark.height if mark.high is None else mark.high) - mark.height for mark in own]
            ink = color if as_lines else "black"
            axes.errorbar(at, heights, [below, above], fmt="none", ecolor=ink, elinewidth=0.8, capsize=2)
    axes.set_yscale("log")
    axes.set_ylabel(labels.height)
    axes.set_xticks(range(len(spots)), [label for _, label in spots], fontsize=8)
    axes.set_xlabel(labels.along)
    axes.grid(axis="y", which="major", alpha=0.3)

"""Pictures of results: panels of lines or bars on a logarithmic axis, one colour for each method."""

from __future__ import annotations

import math
import os
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

from nearcast.bench.reports.figures import figures
from nearcast.bench.reports.tables import format_value
from nearcast.bench.runs.results import Result
from nearcast.errors import InvalidInput, NearcastError


class NoMatplotlib(NearcastError):
    """Matplotlib, which pictures need, is not installed."""


_PANEL_INCHES = (4.6, 3.4)
_LEAST_WIDTH = 6.4
_LETTER, _HANDLE, _LINE = 0.09, 0.7, 0.25  # inches of a letter, of a legend's line and gap, and of a line of text
_FEWEST_FOR_LINES = 3
_DODGE = 0.04  # between methods on the same place, so that equal values stay visible
_MOST_IN_A_ROW = 4
_MARKERS = "osD^vPX"
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
    methods = list(dict.fromkeys(mark.method for marks in panels.values() for mark in marks))
    width = max(_LEAST_WIDTH, _PANEL_INCHES[0] * across)
    columns = max(1, min(len(methods), int(width / (_LETTER * max(map(len, methods)) + _HANDLE))))
    legend = _LINE * math.ceil(len(methods) / columns)
    figure = Figure(figsize=(width, _PANEL_INCHES[1] * down + legend + 0.4), layout="constrained")
    grid = figure.subplots(down, across, squeeze=False, sharey=True).ravel()
    for axes, (title, marks) in zip(grid, panels.items(), strict=False):
        _draw_panel(axes, marks, methods, labels)
        axes.set_title(title, fontsize=10)
    for axes in grid[len(panels) :]:
        axes.set_visible(False)
    handles, names = grid[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=columns, frameon=False, fontsize=9)
    figure.suptitle("\n".join(textwrap.wrap(labels.title, int(width / _LETTER))), fontsize=11)
    return figure


def _draw_panel(axes: Any, marks: list[Mark], methods: list[str], labels: Labels) -> None:
    places = dict.fromkeys((mark.key, mark.label) for mark in marks)
    spots = {place: k for k, place in enumerate(places)}
    as_lines = len(spots) >= _FEWEST_FOR_LINES and all(label[:1].isdigit() for _, label in spots)
    width = 0.8 / len(methods)
    for number, method in enumerate(methods):
        own = [mark for mark in marks if mark.method == method]
        heights = [mark.height for mark in own]
        at: list[float] = [spots[mark.key, mark.label] for mark in own]
        color = f"C{number}"
        at = [spot + (number - (len(methods) - 1) / 2) * (_DODGE if as_lines else width) for spot in at]
        if as_lines:
            axes.plot(at, heights, marker=_MARKERS[number % len(_MARKERS)], markersize=4, label=method, color=color)
        else:
            axes.bar(at, heights, width, label=method, color=color)
        if any(mark.low is not None and mark.high is not None and mark.low < mark.high for mark in own):
            below = [mark.height - (mark.height if mark.low is None else mark.low) for mark in own]
            above = [(mark.height if mark.high is None else mark.high) - mark.height for mark in own]
            ink = color if as_lines else "black"
            axes.errorbar(at, heights, [below, above], fmt="none", ecolor=ink, elinewidth=0.8, capsize=2)
    axes.set_yscale("log")
    _label_heights(axes)
    axes.set_ylabel(labels.height)
    axes.set_xticks(range(len(spots)), [label for _, label in spots], fontsize=8)
    axes.set_xlabel(labels.along)
    axes.grid(axis="y", which="major", alpha=0.3)


def _label_heights(axes: Any) -> None:
    """Plain numbers at 1, 2 and 5 of every power of ten; at powers of ten alone where there are many."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axes.get_ylim()
    is_wide = low > 0 and high / low > 1_000
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0,) if is_wide else (1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.tick_params(axis="y", labelsize=8)

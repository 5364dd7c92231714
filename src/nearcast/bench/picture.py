"""Results as a picture: µs per message on a log axis, a panel for each group of messages."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

from nearcast.bench.figures import Figures, figures
from nearcast.bench.report import label_of
from nearcast.bench.results import Result
from nearcast.errors import InvalidInput, NearcastError


class NoMatplotlib(NearcastError):
    """Pictures need an optional package that is not installed."""


_PANEL_INCHES = (4.6, 3.4)
_FEWEST_FOR_LINES = 3
_MOST_IN_A_ROW = 4
_ENDINGS = (".png", ".svg", ".pdf")


def save_picture(result: Result, path: str | os.PathLike[str]) -> None:
    """Draw the result to a .png, .svg or .pdf file."""
    target = Path(path)
    if target.suffix.lower() not in _ENDINGS:
        raise InvalidInput(f"{target} has no known ending; pictures go to {', '.join(_ENDINGS)}")
    lines = [line for line in figures(result) if line.batch_us]
    if not lines:
        raise InvalidInput("nothing was measured, so there is nothing to draw")
    figure = _drawn(result, lines)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(target, dpi=120)
    except OSError as error:
        raise InvalidInput(f"{target} cannot be written: {error}") from None


def _figure_class() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise NoMatplotlib("pictures need matplotlib: pip install 'nearcast[pictures]'") from None
    return Figure


def _drawn(result: Result, lines: list[Figures]) -> Any:
    varied = result.sweep["varied"]
    along = varied[-1] if varied else None  # the last one varies along the axis, the one before it makes panels
    apart = varied[0] if len(varied) > 1 else None
    panels = _panels(lines, apart)
    across = min(len(panels), _MOST_IN_A_ROW)
    down = math.ceil(len(panels) / across)
    size = (_PANEL_INCHES[0] * across, _PANEL_INCHES[1] * down + 0.6)
    figure = _figure_class()(figsize=size, layout="constrained")
    methods = list(dict.fromkeys(line.method for line in lines))
    grid = figure.subplots(down, across, squeeze=False, sharey=True).ravel()
    for axes, (title, members) in zip(grid, panels.items(), strict=False):
        _draw_panel(axes, members, methods, along)
        axes.set_title(title, fontsize=10)
    for axes in grid[len(panels) :]:
        axes.set_visible(False)
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(6, len(methods)), frameon=False)
    figure.suptitle(f"{result.sweep['name']}: CPU time per message", fontsize=11)
    return figure


def _panels(lines: list[Figures], apart: str | None) -> dict[str, list[Figures]]:
    panels: dict[str, list[Figures]] = {}
    for line in lines:
        name = line.group if apart is None else f"{line.group}, {apart} {label_of(line.varied[apart])}"
        panels.setdefault(name, []).append(line)
    return panels


def _draw_panel(axes: Any, lines: list[Figures], methods: list[str], along: str | None) -> None:
    values = list(dict.fromkeys(_key(line, along) for line in lines))
    spots = {value: k for k, value in enumerate(values)}
    as_lines = len(values) >= _FEWEST_FOR_LINES
    width = 0.8 / len(methods)
    for number, method in enumerate(methods):
        own = [line for line in lines if line.method == method]
        heights = [line.batch_us for line in own]
        places = [spots[_key(line, along)] for line in own]
        color = f"C{number}"
        if as_lines:
            axes.plot(places, heights, marker="o", label=method, color=color)
        else:
            offset = (number - (len(methods) - 1) / 2) * width
            axes.bar([place + offset for place in places], heights, width, label=method, color=color)
    axes.set_yscale("log")
    axes.set_ylabel("µs per message")
    axes.set_xticks(range(len(values)), [label for _, label in values], fontsize=8)
    axes.set_xlabel(along or "")
    axes.grid(axis="y", which="major", alpha=0.3)


def _key(line: Figures, along: str | None) -> tuple[str, str]:
    """What tells one place on the axis from another, and its label."""
    value = line.workload if along is None else line.varied[along]
    return str(value), label_of(value)

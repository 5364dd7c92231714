"""A figure of a paper as a picture, with one panel for each group of messages."""

from __future__ import annotations

import os

from nearcast.bench.papers.paper import Figure
from nearcast.bench.papers.points import UNITS, points_of
from nearcast.bench.papers.result import PaperResult
from nearcast.bench.reports.picture import Labels, Mark, save_panels


def save_figure(figure: Figure, result: PaperResult, path: str | os.PathLike[str]) -> bool:
    """Draw the figure; return False if nothing of it was measured."""
    panels: dict[str, list[Mark]] = {}
    for point in points_of(figure, result.parts[figure.id], result.runs):
        if point.value:  # a logarithmic axis has no 0
            panels.setdefault(point.panel, []).append(Mark(point.label, point.label, point.method, point.value))
    if panels:
        title = f"{figure.name}: {figure.title}"
        save_panels(panels, Labels(title, figure.along, UNITS[figure.measure]), path)
    return bool(panels)

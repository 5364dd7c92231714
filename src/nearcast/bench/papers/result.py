"""The raw measurements of a paper's experiments: running them, and storing them as a JSON file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nearcast.bench.papers.paper import Figure, Paper
from nearcast.bench.papers.schedule import Part, Schedule
from nearcast.bench.runs.case import OnStep
from nearcast.bench.runs.environment import describe_environment
from nearcast.bench.runs.results import Format, load_document
from nearcast.bench.runs.run_case import run_case

PAPER_FORMAT = Format("nearcast-bench-paper", 1, "a paper's result", "nearcast bench paper NAME --out DIR")


@dataclass(frozen=True)
class PaperResult:
    paper: str
    scale: float
    surroundings: dict[str, Any]
    parts: Mapping[str, Sequence[Part]]  # by figure
    missing: Mapping[str, Mapping[str, str]]  # by figure: the methods that could not run, and why
    runs: list[dict[str, Any]]

    def document(self) -> dict[str, Any]:
        figures = {
            name: {"parts": [part._asdict() for part in parts], "missing": dict(self.missing.get(name, {}))}
            for name, parts in self.parts.items()
        }
        head = PAPER_FORMAT.head() | {"paper": self.paper, "scale": self.scale}
        return head | {"surroundings": self.surroundings, "figures": figures, "runs": self.runs}

    def figures(self, paper: Paper) -> list[Figure]:
        """The figures of the paper that were measured."""
        return [figure for figure in paper.figures if figure.id in self.parts]


def run_paper(paper: Paper, schedule: Schedule, scale: float, on_step: OnStep | None = None) -> PaperResult:
    """The measurements of every run. Raises Disagreement if two methods find different pairs."""
    runs = [run_case(run.methods, run.workload, run.settings, on_step=on_step) for run in schedule.runs]
    peaks = [run["memory"]["peak_bytes"] for run in runs]
    return PaperResult(paper.name, scale, describe_environment(peaks), schedule.parts, schedule.missing, runs)


def load_paper_result(path: str | os.PathLike[str]) -> PaperResult:
    document = load_document(path, PAPER_FORMAT)
    figures = document["figures"]
    return PaperResult(
        document["paper"],
        document["scale"],
        document["surroundings"],
        {name: [Part(**part) for part in each["parts"]] for name, each in figures.items()},
        {name: each["missing"] for name, each in figures.items()},
        document["runs"],
    )

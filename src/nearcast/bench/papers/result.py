"""A paper's experiments run, and kept as a file: raw, so that pages and pictures can be made again from it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nearcast.bench.papers.paper import Figure, Paper
from nearcast.bench.papers.plan import Part, Plan
from nearcast.bench.reports.results import surroundings
from nearcast.bench.runs.runner import Tell, run_case
from nearcast.errors import InvalidInput

FORMAT, FORMAT_VERSION = "nearcast-bench-paper", 1


@dataclass(frozen=True)
class PaperResult:
    paper: str
    scale: float
    surroundings: dict[str, Any]
    parts: Mapping[str, Sequence[Part]]  # by figure
    missing: Mapping[str, Mapping[str, str]]  # by figure: methods that could not run, and why
    runs: list[dict[str, Any]]

    def document(self) -> dict[str, Any]:
        figures = {
            name: {"parts": [part._asdict() for part in parts], "missing": dict(self.missing.get(name, {}))}
            for name, parts in self.parts.items()
        }
        head = {"format": FORMAT, "version": FORMAT_VERSION, "paper": self.paper, "scale": self.scale}
        return head | {"surroundings": self.surroundings, "figures": figures, "runs": self.runs}

    def figures(self, paper: Paper) -> list[Figure]:
        """Those of the paper that it holds."""
        return [figure for figure in paper.figures if figure.id in self.parts]


def run_paper(paper: Paper, plan: Plan, scale: float, tell: Tell | None = None) -> PaperResult:
    """Every run of the plan. Raises Disagreement where two methods differ."""
    runs = [run_case(run.methods, run.workload, run.settings, tell=tell) for run in plan.runs]
    peaks = [run["memory"]["peak_bytes"] for run in runs]
    return PaperResult(paper.name, scale, surroundings(peaks), plan.parts, plan.missing, runs)


def load_paper_result(path: str | os.PathLike[str]) -> PaperResult:
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} cannot be read as a paper's result: {error}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InvalidInput(f"{path} is no paper's result; `nearcast bench paper NAME --out DIR` writes result.json")
    if document.get("version") != FORMAT_VERSION:
        raise InvalidInput(f"{path} is of version {document.get('version')}; this version reads {FORMAT_VERSION}")
    figures = document["figures"]
    return PaperResult(
        document["paper"],
        document["scale"],
        document["surroundings"],
        {name: [Part(**part) for part in each["parts"]] for name, each in figures.items()},
        {name: each["missing"] for name, each in figures.items()},
        document["runs"],
    )

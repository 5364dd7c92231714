"""What `nearcast bench words` does. This module is slow to import, so the command imports it when it runs."""

from __future__ import annotations

import json
from pathlib import Path

from nearcast.bench.runs.environment import describe_environment
from nearcast.bench.runs.phrases import run_phrases
from nearcast.bench.workloads.corpus import SyntheticCorpus
from nearcast.bench.workloads.workload import Workload
from nearcast.cli.console import counted_steps, show, text_table
from nearcast.errors import InvalidInput


def run(workload: Workload, shares: tuple[float, float], rounds: int, out: Path | None, as_json: bool) -> None:
    """Measure, print, and write."""
    if sum(shares) > 1 or min(shares) < 0:
        raise InvalidInput("--phrases and --prefixes are shares of the subscriptions, at most 1 together")
    if workload.texts != "none":
        raise InvalidInput("bench words draws words of its own; take a workload without the sample's texts, such as A")
    with counted_steps(3 + rounds, as_json) as step:
        result = run_phrases(SyntheticCorpus(workload), workload, shares, rounds, step)
    result |= {"workload": workload.parameters(), "shares": shares, "environment": describe_environment()}
    if out is not None:
        out.write_text(json.dumps(result, indent=1) + "\n")
    rows = [
        (kind, f"{result[f'plain_{kind}_us']:.2f}", f"{result[f'derived_{kind}_us']:.2f}", f"{ratio:.2f}")
        for kind, ratio in result["ratios"].items()
    ]
    show(result, as_json, text_table(("messages", "µs, plain words", "µs, phrases and prefixes", "ratio"), rows))

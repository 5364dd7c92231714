"""What `nearcast bench moving` does. This module is slow to import, so the command imports it when it runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Group

from nearcast.bench.moving_runs.measure import STATIONARY, MovingBenchmark
from nearcast.bench.moving_runs.workload import MovingWorkload
from nearcast.bench.runs.environment import describe_environment
from nearcast.bench.streams.run_stream import known_stream_methods
from nearcast.bench.workloads.workload import Workload
from nearcast.cli.bench.top_action import shown
from nearcast.cli.console import counted_steps, show, text_table

_STEPS = (
    "method",
    "steps",
    "move",
    "arrival",
    f"times {STATIONARY}",
    "expiry",
    "changes a move",
    "MB",
    "stored / live",
)
_MOVES = ("method", "shift", "re-filed", "jump", "re-filed", "message copies")


def run(
    workload: MovingWorkload, methods: Sequence[str], steps: int, budget: float, out: Path | None, as_json: bool
) -> None:
    """Measure, print, and write. Unknown methods and options raise before anything runs."""
    known_stream_methods(methods, "moving")
    with counted_steps(1 + 2 * len(methods), as_json) as step:
        result = MovingBenchmark(workload, steps, budget, step).run(methods)
    result |= {"environment": describe_environment()}
    if out is not None:
        out.write_text(json.dumps(result, indent=1) + "\n")
    figures = result["methods"]
    at_rest = result["stationary"]["arrival_us"]
    steps_table = text_table(_STEPS, [_of_steps(name, each, at_rest) for name, each in figures.items()])
    moves_table = text_table(_MOVES, [_of_moves(name, each, result["window"]) for name, each in figures.items()])
    show(result, as_json, Group(steps_table, moves_table))


def workload_of(base: Workload, subscriptions: int, window: int, seed: int) -> MovingWorkload:
    """The base workload in these sizes."""
    return MovingWorkload(base.but(seed=seed), subscriptions, window)


def _of_steps(name: str, each: dict[str, Any], at_rest: float) -> tuple[str, ...]:
    ratio = each["arrival_us"] / at_rest
    times = shown(each["move_us"], each["arrival_us"], ratio, each["expiry_us"], each["changes_a_move"])
    size = f"{sum(each['bytes'].values()) / 1e6:,.0f}"
    return name, str(each["steps"]), *times, size, f"{each['most_messages_stored']:.2f}"


def _of_moves(name: str, each: dict[str, Any], window: int) -> tuple[str, ...]:
    copies = each["report"]["at the end"].get("copies of messages")
    in_lists = "-" if copies is None else f"{copies / window:.1f}"
    shift, jump = shown(each["shift_us"], each["jump_us"])
    return name, shift, f"{each['refiled_shifts']:.1%}", jump, f"{each['refiled_jumps']:.1%}", in_lists

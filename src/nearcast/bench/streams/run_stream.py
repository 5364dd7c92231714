"""Runs the methods of a stream side by side, round by round, and compares their changes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from nearcast.arrays.jit.mode import compile_now
from nearcast.bench.runs.agreement import Disagreement
from nearcast.bench.runs.case import OnStep, Record, Settings
from nearcast.bench.runs.environment import peak_bytes, reset_peak
from nearcast.bench.streams.moving_stream import moving_stream
from nearcast.bench.streams.run_moving import MovingRun
from nearcast.bench.streams.run_top import TopRun
from nearcast.bench.streams.sources import source_of
from nearcast.bench.streams.stream_workload import StreamWorkload
from nearcast.bench.streams.top_stream import top_stream
from nearcast.bench.streams.tuning import split_tuning, tuned
from nearcast.matching.variant import Variant, variant_of
from nearcast.moving.moving import Moving
from nearcast.topk.topk import TopK

Folder = str | os.PathLike[str] | None
_TOY = {"subscriptions": 200, "messages": 20, "window": 200, "vocabulary": 2_000}
_warmed: set[tuple[str, ...]] = set()


def known_stream_methods(methods: Sequence[str], kind: str) -> list[Variant]:
    """The named methods of kind `top` or `moving`. Unknown names and options raise."""
    variants = [variant_of(text) for text in methods]
    for variant in variants:
        if kind == "top":
            options, tuning = split_tuning(variant)
            with tuned(tuning):
                TopK(window=1, method=variant.name, **options)
        else:
            Moving(None, variant.name, **variant.options)
    return variants


def stream_steps(methods: Sequence[str], settings: Settings) -> int:
    """The number of steps that `run_stream` will report."""
    return 2 + len(methods) + settings.rounds


def run_stream(
    methods: Sequence[str],
    workload: StreamWorkload,
    settings: Settings,
    on_step: OnStep | None = None,
    folder: Folder = None,
) -> Record:
    """The raw measurements of one stream. Raises Disagreement if two methods give different changes."""
    compile_now()
    on_step = on_step or (lambda step: None)
    variants = known_stream_methods(methods, workload.kind)
    on_step("compiling")
    _warm_up(variants, workload, folder)
    reset_peak()
    return _measured(variants, workload, settings, on_step, folder) | {"memory": {"peak_bytes": peak_bytes()}}


def _warm_up(variants: list[Variant], workload: StreamWorkload, folder: Folder) -> None:
    """Run every method once on a toy stream, so that nothing is compiled while it is timed."""
    for variant in variants:
        key = (variant.label, str(workload.space is None))
        if key not in _warmed:
            toy = workload.but(**_TOY, messages_file="", tracks_file="")
            _measured([variant], toy, Settings(rounds=2), lambda step: None, folder)
            _warmed.add(key)


def _measured(
    variants: list[Variant], workload: StreamWorkload, settings: Settings, on_step: OnStep, folder: Folder
) -> Record:
    run = _run_top if workload.kind == "top" else _run_moving
    source, records = run(variants, workload, settings, on_step, folder)
    return {"workload": workload.parameters(), "source": source, "rounds": settings.rounds, "streams": records}


def _run_top(
    variants: list[Variant], workload: StreamWorkload, settings: Settings, on_step: OnStep, folder: Folder
) -> tuple[str, list[Record]]:
    on_step(f"{workload.name}: drawing {workload.subscriptions:,} subscriptions")
    source = source_of(workload, folder, None)
    stream = top_stream(workload, source, settings.rounds)
    runs = []
    for variant in variants:
        on_step(f"{workload.name}: subscribing to {variant.label}")
        runs.append(TopRun(variant, stream))
    n = len(stream.bursts) - 1
    for k in range(settings.rounds):
        on_step(f"{workload.name}: round {k + 1} of {settings.rounds}")
        first, stop = k * n // settings.rounds, (k + 1) * n // settings.rounds
        _require_same({run.label: run.measure(first, stop) for run in _rotated(runs, k)}, f"{workload.name}, round {k}")
    return source.name, [run.record() for run in runs]


def _run_moving(
    variants: list[Variant], workload: StreamWorkload, settings: Settings, on_step: OnStep, folder: Folder
) -> tuple[str, list[Record]]:
    on_step(f"{workload.name}: drawing {workload.subscriptions:,} subscriptions")
    stream = moving_stream(workload, folder, 1 + settings.rounds * workload.steps)
    runs = []
    for variant in variants:
        on_step(f"{workload.name}: subscribing to {variant.label}")
        runs.append(MovingRun(variant, stream))
    _require_same({run.label: run.warm_up() for run in runs}, f"{workload.name}, the first step")
    for k in range(settings.rounds):
        on_step(f"{workload.name}: round {k + 1} of {settings.rounds}")
        first, stop = 1 + k * workload.steps, 1 + (k + 1) * workload.steps
        _require_same({run.label: run.measure(first, stop) for run in _rotated(runs, k)}, f"{workload.name}, round {k}")
    return stream.source, [run.record() for run in runs]


def _rotated(runs: list[Any], k: int) -> list[Any]:
    """The runs, each round beginning with another one."""
    k %= max(1, len(runs))
    return runs[k:] + runs[:k]


def _require_same(digests: dict[str, str], where: str) -> None:
    """Raise Disagreement if two methods gave different changes."""
    first = next(iter(digests), None)
    for label, digest in digests.items():
        if first is not None and digest != digests[first]:
            what = f"'{label}' gave {digest}, '{first}' gave {digests[first]}"
            raise Disagreement(f"two methods disagree on {where}: {what}")

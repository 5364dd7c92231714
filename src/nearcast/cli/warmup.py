"""`nearcast warmup`: compile everything now, so that nothing waits later."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import chain
from typing import Annotated

import typer
from rich.table import Table

from nearcast.cli.console import progress, show


def warmup(
    methods: Annotated[str | None, typer.Option(metavar="NAME,...", help="Only these. [default: all]")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compile every kernel, in one process, into the cache on disk.

    Run it before many processes start at once: each of them would compile the same. NUMBA_CACHE_DIR says
    where the cache is.

    \b
    Example:
      nearcast warmup
      nearcast warmup --methods keyword-first,brute
    """
    names = [name.strip() for name in methods.split(",")] if methods is not None else None
    seconds = warmed(names, as_json)
    table = Table("part", "seconds")
    for name, taken in seconds.items():
        table.add_row(name, f"{taken:.1f}")
    table.add_row("together", f"{sum(seconds.values()):.1f}")
    show(seconds, as_json, table)


def warmed(names: list[str] | None, quiet: bool) -> dict[str, float]:
    """Warm up with a progress bar: seconds by part."""
    from nearcast.arrays.kernel_cache import cache_folder, forget_old_states
    from nearcast.engine.warm_up import parts_of, warm_up
    from nearcast.spark.warm_up import is_installed

    with_pipeline = names is None and is_installed()
    seconds: dict[str, float] = {}
    with progress(quiet) as shown:
        task = shown.add_task("compiling (only the first time)", total=len(parts_of(names)) + with_pipeline)
        for name, taken in chain(warm_up(names), _pipeline() if with_pipeline else ()):
            seconds[name] = taken
            shown.advance(task)
    forget_old_states(cache_folder())
    return seconds


def _pipeline() -> Iterator[tuple[str, float]]:
    from nearcast.spark.warm_up import PART, warm_up_pipeline

    start = time.perf_counter()
    warm_up_pipeline()
    yield PART, time.perf_counter() - start

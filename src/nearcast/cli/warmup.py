"""`nearcast warmup`: compile all kernels in advance."""

from __future__ import annotations

import time
from typing import Annotated

import typer
from rich.table import Table

from nearcast.cli.console import progress, show
from nearcast.cli.options import Json


def warmup(
    methods: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="Compile only these methods. [default: all]")
    ] = None,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Processes that compile in parallel. [default: one per core]")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compile every kernel into the cache on disk.

    Without it, small work is interpreted until a background process has compiled what it needs, and large work waits.
    NEARCAST_COMPILE (now, background, never) sets this, and NUMBA_CACHE_DIR the folder of the cache.

    \b
    Example:
      nearcast warmup
      nearcast warmup --methods keyword-first,brute --processes 1
    """
    names = [name.strip() for name in methods.split(",")] if methods is not None else None
    start = time.perf_counter()
    seconds = warm_kernels(names, as_json, processes, pipeline=names is None)
    table = Table("part", "seconds")
    for name, taken in seconds.items():
        table.add_row(name, f"{taken:.1f}")
    table.add_row("elapsed", f"{time.perf_counter() - start:.1f}")
    show(seconds, as_json, table)


def warm_kernels(
    names: list[str] | None, quiet: bool, processes: int | None = None, *, pipeline: bool = True
) -> dict[str, float]:
    """Compile the kernels of the named methods, or all, with a progress bar; return the seconds by part.

    Args:
        pipeline: also compile the kernels of the pipeline, where PySpark is installed.
    """
    from nearcast.arrays.jit.cache_folder import cache_folder, forget_old_states
    from nearcast.arrays.jit.mode import compile_now
    from nearcast.cli.warm_workers import compile_parts, longest_first, number_of_processes
    from nearcast.engine.warm_up import parts_of
    from nearcast.spark.batch.one_process import PART, is_installed

    parts = list(dict.fromkeys(parts_of(names))) + ([PART] if pipeline and is_installed() else [])
    seconds = dict.fromkeys(parts, 0.0)
    with progress(quiet) as display:
        task = display.add_task("compiling (only the first time)", total=None)
        for step in compile_parts(longest_first(parts), number_of_processes(processes)):
            seconds[step.part] += step.seconds
            display.update(task, completed=step.done, total=step.known)
    forget_old_states(cache_folder())
    compile_now()  # what is still missing, this process waits for
    return seconds

"""The process from which Spark forks its Python workers. It imports everything once, for all of them."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable
from typing import Any

_MANY_OBJECTS = 10_000


def main() -> None:
    import pyspark.daemon
    import pyspark.worker

    import nearcast.engine.index
    import nearcast.ingest.match_task  # noqa: F401
    from nearcast.arrays.jit.mode import compile_now

    compile_now()  # a task has thousands of rows: no worker should interpret kernels, or start a process to compile
    freeze()  # forked workers then share these pages instead of copying them at the first collection
    pyspark.daemon.worker = frozen_after(pyspark.daemon.worker)
    pyspark.daemon.manager()


def frozen_after(work_on_task: Callable[..., int]) -> Callable[..., int]:
    """The same function, which then excludes the objects that the task left from later collections.

    Spark's daemon collects garbage after each task and visits all modules and kernels for it. An empty task took 69 ms
    of a core; without these objects it takes 26.
    """

    @functools.wraps(work_on_task)
    def run(*args: Any) -> int:
        exit_code = work_on_task(*args)
        if len(gc.get_objects()) > _MANY_OBJECTS:
            freeze()
        return exit_code

    return run


def freeze() -> None:
    """Collect garbage, and exclude all remaining objects from later collections."""
    gc.collect()
    gc.freeze()


def prepare_worker() -> None:
    """Compile at the first call from now on, as this daemon does: workers of other daemons call this in each task."""
    from nearcast.arrays.jit.mode import compile_now

    compile_now()


def freeze_once() -> None:
    """`freeze` at the end of the first task of a worker that Spark's own daemon forked.

    Spark collects garbage after each task: an empty one took 118 ms of a core, and takes 30 after this.
    """
    if not _frozen:
        _frozen.append(True)
        freeze()


_frozen: list[bool] = []


if __name__ == "__main__":
    main()

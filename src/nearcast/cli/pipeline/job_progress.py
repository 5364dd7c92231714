"""The progress of Spark's jobs, by Spark's own count of tasks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from nearcast.spark.runtime.session import SparkSession

EVERY_S = 0.2


class Tasks(NamedTuple):
    """The tasks of all stages since the watch began."""

    done: int
    known: int  # grows when Spark adds stages
    failed: int


@contextmanager
def watched(session: SparkSession, report: Callable[[Tasks], None], every_s: float = EVERY_S) -> Iterator[None]:
    """While the block runs, call `report` with the progress: from another thread, and once at the end."""
    watch = _Watch(session.sparkContext.statusTracker())
    over = threading.Event()

    def poll() -> None:
        while not over.wait(every_s):
            report(watch.look())

    thread = threading.Thread(target=poll, name="nearcast-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        report(watch.look())


class _Watch:
    """The counts of all stages seen so far: Spark forgets finished jobs after a while."""

    def __init__(self, tracker: Any) -> None:
        self._tracker = tracker
        self._stages: dict[int, tuple[int, int, int]] = {}
        self._last = Tasks(0, 0, 0)

    def look(self) -> Tasks:
        try:
            self._note_stages()
        except Exception:  # no session: progress that stands still does no harm
            return self._last
        done, known, failed = (sum(column) for column in zip((0, 0, 0), *self._stages.values(), strict=True))
        self._last = Tasks(done, known, failed)
        return self._last

    def _note_stages(self) -> None:
        active: set[int] = set()
        for job in self._tracker.getActiveJobsIds():
            info = self._tracker.getJobInfo(job)
            active.update(info.stageIds if info is not None else ())
        unfinished = {stage for stage, (done, known, _) in self._stages.items() if done < known}
        for stage in active | unfinished:
            info = self._tracker.getStageInfo(stage)
            if info is not None:
                self._stages[stage] = (info.numCompletedTasks, info.numTasks, info.numFailedTasks)
        for stage in unfinished - active:  # its job is over, and Spark skipped the rest of it
            done, _, failed = self._stages[stage]
            self._stages[stage] = (done, done, failed)

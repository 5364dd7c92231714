"""Runs the steps of a pipeline that are not up to date."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearcast.spark.pipeline.replay import replay_stage
from nearcast.spark.pipeline.stages import Pipeline, Stage, stages
from nearcast.spark.pipeline.steps import require_inputs, run_step

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Working = Callable[[str], AbstractContextManager[None]]
"""Gives a context for a named step, for example one that shows a progress bar while the step runs."""


def run_pipeline(session: SparkSession, pipeline: Pipeline, force: bool, working: Working) -> dict[str, dict[str, Any]]:
    """The result of each step, by the name of the step. `seconds` are those of the run that did the work."""
    require_inputs([*pipeline.messages.sources, *pipeline.subscriptions.sources])
    results = {stage.step.name: _run_stage(session, stage, force, working) for stage in stages(pipeline)}
    if pipeline.stream_files:
        results["stream"] = _run_stage(session, replay_stage(pipeline), force, working)
    return results


def _run_stage(session: SparkSession, stage: Stage, force: bool, working: Working) -> dict[str, Any]:
    def work() -> dict[str, Any]:
        start = time.perf_counter()
        result = stage.work(session)
        # A stage may report its own seconds: the stream leaves out its check.
        return {"seconds": time.perf_counter() - start, **result}

    with working(stage.step.name):
        done = run_step(stage.step, work, force)
    return {**done.result, "up_to_date": done.was_done}


def read_statistics(pipeline: Pipeline) -> dict[str, Any]:
    """The output of the step `statistics`."""
    statistics: dict[str, Any] = json.loads(Path(pipeline.path("statistics.json")).read_bytes())
    return statistics

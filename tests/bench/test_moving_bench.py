"""`nearcast bench moving`: the same steps for every method, figures by part of a step, and disagreement is found."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from nearcast.bench.moving_runs.measure import MethodRun, MovingBenchmark
from nearcast.bench.moving_runs.workload import MovingWorkload
from nearcast.bench.runs.agreement import Disagreement
from nearcast.bench.workloads.workload import PRESETS
from nearcast.cli.main import app
from nearcast.matching.variant import variant_of
from nearcast.moving.moving_set import MovingSet

BASE = PRESETS["A"].but(vocabulary=300, topics=5, words_per_topic=30)


def workload() -> MovingWorkload:
    return MovingWorkload(BASE, 200, 100)


def test_steps_are_drawn_from_the_seed_and_stay_in_the_space() -> None:
    for one, two in zip(islice(workload().steps(), 3), islice(workload().steps(), 3), strict=True):
        for k in range(2):
            assert all(np.array_equal(a, b) for a, b in zip(one.shifts, two.shifts, strict=True))
            assert (one.shifts[1][:, k] >= 0).all() and (one.shifts[1][:, 2 + k] <= 1).all()
        assert len(one.shifts[0]) + len(one.jumps[0]) == 40 and one.arrivals.batch.size == 10
        assert not np.isin(one.shifts[0], one.jumps[0]).any()


def test_methods_agree_and_every_part_of_a_step_is_measured() -> None:
    names = ["brute", "term-cells", "ap+-tree", "ss-index"]
    result = MovingBenchmark(workload(), 12, 60.0, lambda text: None).run(names)["methods"]
    assert list(result) == names
    for figures in result.values():
        assert figures["steps"] == 12 and figures["live_messages"] == 1.0
        assert all(figures[f"{part}_us"] > 0 for part in ("expiry", "arrival", "shift", "jump", "move"))
        assert figures["changes_a_move"] == result["brute"]["changes_a_move"] > 0
    assert 0 < result["ss-index"]["refiled"] <= 1


@pytest.mark.parametrize("method", ["term-cells", "ap+-tree", "iq+-tree", "ss-index", "term-cells dead_share=0.05"])
def test_after_100_steps_few_dead_messages_are_stored(method: str) -> None:
    """At most 1.1 times rate x lifetime, with the default share of dead messages as well."""
    run = MethodRun(variant_of(method), MovingWorkload(BASE, 50, 200))
    run.take_steps(100, 60.0)
    figures = run.figures()
    assert figures["live_messages"] == 1.0 and figures["most_messages_stored"] <= 1.1


def test_a_method_that_differs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    step = MovingSet.step

    def forgetful(self: MovingSet, *arguments: object, **named: object) -> object:
        changes = step(self, *arguments, **named)
        if self.method.name == "ss-index" and named.get("moved") is not None and changes.size:
            return changes._replace(message_ids=changes.message_ids + 1)
        return changes

    monkeypatch.setattr(MovingSet, "step", forgetful)
    with pytest.raises(Disagreement, match="'ss-index'"):
        MovingBenchmark(workload(), 3, 60.0, lambda text: None).run(["term-cells", "ss-index"])


def test_the_command_writes_its_figures(tmp_path: Path) -> None:
    out = tmp_path / "moving.json"
    sizes = ["-n", "100", "-m", "50", "--steps", "2", "--methods", "term-cells,brute", "--out", str(out), "-w", "B"]
    result = CliRunner().invoke(app, ["bench", "moving", *sizes])
    assert result.exit_code == 0, result.output
    written = json.loads(out.read_text())
    assert set(written["methods"]) == {"term-cells", "brute"} and written["window"] == 50
    assert "re-filed" in result.output


def test_an_unknown_method_is_refused_before_anything_runs() -> None:
    result = CliRunner().invoke(app, ["bench", "moving", "--methods", "no-such"])
    assert result.exit_code != 0 and "no-such" in result.output

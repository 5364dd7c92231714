"""`nearcast bench top`: buffers that are filled once for all policies, and times by part."""

from __future__ import annotations

import numpy as np
import pytest

from nearcast.bench.top_runs.filled import FilledWindows
from nearcast.bench.top_runs.measure import TopBenchmark
from nearcast.bench.top_runs.parts import PARTS, timing_parts
from nearcast.bench.top_runs.workload import TopSizes, make_workload
from nearcast.errors import InvalidInput
from nearcast.matching.variant import variant_of
from nearcast.topk.score import THETA
from nearcast.topk.topk import TopK

SIZES = TopSizes(subscriptions=60, window=120, messages=600, k=2, seed=1)


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    return FilledWindows(tmp_path_factory.mktemp("filled"), make_workload(SIZES, None), SIZES, None)


@pytest.mark.parametrize("refill", ["raising", "kmax", "skyband", "cskyband"])
def test_buffers_are_those_that_the_policy_would_have_fetched(filled, refill):
    opened, work = filled.open(variant_of(f"norm-lists refill={refill}")), filled.workload
    own = TopK(None, SIZES.window, "norm-lists", work.weights, work.space, refill=refill)
    own.publish(work.messages.slice(0, SIZES.window))
    own.subscribe(work.subscriptions)
    for one, other in zip(_buffers(opened), _buffers(own), strict=True):
        np.testing.assert_array_equal(one, other)


def _buffers(top):
    arrays, _ = top.method.state()
    return (*arrays.values(), top.rows.arrays.numbers[top.rows.live_rows(), THETA])


def test_a_folder_of_another_workload_is_refused(filled):
    with pytest.raises(InvalidInput, match="was filled for .* so name another folder"):
        FilledWindows(filled.folder, filled.workload, SIZES._replace(k=3), None)


def test_methods_without_buffers_are_refused(filled):
    with pytest.raises(InvalidInput, match="method 'brute' has no buffers"):
        filled.open(variant_of("brute"))


def test_the_figures_of_all_methods(filled):
    steps = list[str]()
    methods = ["norm-lists", "skype leaf=8", "ciq"]
    result = TopBenchmark(filled, 10.0, steps.append).run(methods)
    assert list(result["arrivals"]) == list(result["streams"]) == methods
    for figures in result["streams"].values():
        assert figures["messages"] > 300 and set(figures["parts_us"]) <= set(PARTS)
        assert figures["batch_us_least"] <= figures["batch_us"] <= figures["batch_us_most"]
    concerned = {each["concerned"] for each in result["arrivals"].values()}
    assert len(concerned) == 1 and concerned.pop() > 0
    assert len(steps) == 3 * len(methods)


def test_parts_add_up_to_the_time_of_the_calls(filled, monkeypatch):
    """A part that calls another one stops meanwhile: with a clock that ticks at each reading, every tick is in one."""
    ticks = iter(range(10**6))
    monkeypatch.setattr("nearcast.bench.top_runs.parts.time.thread_time", lambda: float(next(ticks)))
    top = filled.open(variant_of("ciq"))
    coming = top.read_messages(filled.workload.messages.slice(SIZES.window))
    with timing_parts(top.method) as timer:
        top.publish_read(coming.part(0, 20))
    assert sum(timer.seconds.values()) == next(ticks) - 1
    assert timer.seconds["search"] == 20 and timer.seconds["inserts"] > 20
    assert "publish" not in vars(top.method) and "find" not in vars(top.method.dissemination)

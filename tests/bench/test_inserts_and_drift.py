"""Subscriptions that come after the build, and subscriptions whose places wander."""

from __future__ import annotations

import numpy as np
import pytest

from nearcast.arrays.jit import JIT_DISABLED
from nearcast.bench.reports.figures import figures
from nearcast.bench.runs.agreement import Disagreement
from nearcast.bench.runs.case import Settings, filled_store
from nearcast.bench.runs.results import Result
from nearcast.bench.runs.run_case import run_case, steps_of
from nearcast.bench.workloads.corpus import SyntheticCorpus
from nearcast.bench.workloads.subscriptions import draw_subscriptions, source_numbers
from nearcast.bench.workloads.workload import Workload
from nearcast.errors import InvalidInput
from nearcast.indexes.keyword_first import KeywordFirst

N = 120 if JIT_DISABLED else 2_500
TOY = Workload(
    name="toy",
    subscriptions=N,
    messages=6,
    vocabulary=200,
    topics=5,
    words_per_topic=20,
    clusters=3,
    long=(20, 40),
    box_share=(0.001, 0.1),
    built_share=0.2,
)
QUICK = Settings(rounds=1, budget_s=0.5, singles=0, updates=0)
METHODS = ["brute", "ap-tree f=4 theta_p=3", "keyword-first"]


def places(workload: Workload) -> np.ndarray:
    return draw_subscriptions(SyntheticCorpus(workload), workload, 0, workload.subscriptions).boxes


def test_what_is_not_built_is_inserted_in_batches_and_all_agree_afterwards():
    steps = []
    case = run_case(METHODS, TOY, QUICK, on_step=steps.append)
    assert len(steps) == steps_of(METHODS, TOY, QUICK)
    assert [record["method"] for record in case["arrivals"]] == METHODS
    for record in case["arrivals"]:
        assert sum(record["rows"]) == N - round(0.2 * N) and len(record["insert_cpu_s"]) == len(record["rows"])
    at_once = run_case(METHODS, TOY.but(built_share=1.0), QUICK)
    assert "arrivals" not in at_once
    for group in TOY.groups:
        assert case["groups"][group][0]["digest"] == at_once["groups"][group][0]["digest"]
    lines = figures(Result({}, {}, [{"varied": {}} | case]))
    assert all(line.insert_us > 0 and line.remove_us is None for line in lines)


def test_a_method_is_built_without_what_comes_later():
    store = filled_store(SyntheticCorpus(TOY), TOY)
    assert store.live == TOY.n_built == round(0.2 * N)
    assert store.frequencies.sum() < draw_subscriptions(SyntheticCorpus(TOY), TOY, 0, N).starts[-1] * 0.3
    assert TOY.but(built_share=0.0).n_built == 1 and TOY.but(subscriptions=0).n_built == 0


def test_a_method_that_loses_what_arrives_ends_the_run(monkeypatch):
    monkeypatch.setattr(KeywordFirst, "insert", lambda self, rows: None)
    with pytest.raises(Disagreement, match="'keyword-first'"):
        run_case(["brute", "keyword-first"], TOY.but(groups=("long-range",)), QUICK)


def test_wandering_subscriptions_come_from_the_west_first():
    middles = places(TOY.but(drift_share=1.0)).reshape(-1, 2, 2).mean(axis=1)[:, 0]
    third = N // 3
    west, middle, east = middles[:third].mean(), middles[third : 2 * third].mean(), middles[2 * third :].mean()
    assert west < middle - 0.1 < east - 0.2
    still = places(TOY).reshape(-1, 2, 2).mean(axis=1)[:, 0]
    assert abs(still[:third].mean() - still[2 * third :].mean()) < 0.1


def test_only_the_share_that_wanders_is_drawn_anew_and_copies_stay_copies():
    same = (places(TOY.but(drift_share=0.3)) == places(TOY)).all(axis=1).mean()
    assert abs(same - 0.7) < 0.12
    workload = TOY.but(drift_share=1.0, identical_share=0.3)
    boxes = places(workload)
    assert len(np.unique(boxes[source_numbers(workload, 0, N) == 0], axis=0)) == 1
    one_by_one = [draw_subscriptions(SyntheticCorpus(workload), workload, k, k + 1).boxes[0] for k in range(20)]
    assert np.array_equal(boxes[:20], one_by_one)


@pytest.mark.parametrize("changes", [{"built_share": 1.5}, {"drift_share": -0.1}, {"kind": "rank"}])
def test_shares_that_cannot_be_are_refused(changes):
    with pytest.raises(InvalidInput, match=r"built_share|drift_share"):
        TOY.but(**changes)

"""The whole match of a set, building from a table, and the engine: measured, and checked against the methods."""

from __future__ import annotations

import pytest

from nearcast.bench.reports.figures import figures
from nearcast.bench.runs.agreement import Disagreement
from nearcast.bench.runs.case import Settings
from nearcast.bench.runs.results import Result
from nearcast.bench.runs.run_case import run_case, steps_of
from nearcast.bench.workloads.calls import publish_calls, subscribe_calls
from nearcast.bench.workloads.subscriptions import draw_subscriptions
from nearcast.bench.workloads.text_corpus import corpus_for
from nearcast.bench.workloads.workload import PRESETS
from nearcast.engine.engine import Engine
from nearcast.errors import InvalidInput
from nearcast.matching.subscription_set import SubscriptionSet

MIXED = PRESETS["mixed"].but(subscriptions=300, messages=12, clusters=1)
PLAIN = PRESETS["B"].but(subscriptions=200, messages=6, vocabulary=300, topics=5, words_per_topic=20, long=(20, 30))
ALL = Settings(rounds=2, budget_s=0.5, singles=3, updates=0, tables=True, whole=True, engine=4)


@pytest.mark.parametrize("workload", [MIXED, PLAIN], ids=lambda workload: workload.name)
def test_sets_tables_and_the_engine_are_measured(workload):
    methods, steps = ["keyword-first", "pyramid", "pyramid crowded=32"], []
    case = run_case(methods, workload, ALL, on_step=steps.append)
    assert len(steps) == steps_of(methods, workload, ALL)
    lines = figures(Result({}, {}, [{"varied": {}} | case]))
    for line in lines:
        assert line.whole["ratio"] == pytest.approx(line.whole["whole"] / line.whole["kernel"])
        assert line.table_build["index"] == pytest.approx(line.table_build["whole"] - line.table_build["read"])
        measured = line.group == "short-point" and line.method != "pyramid crowded=32"  # an engine takes no options
        assert (line.engine is not None) == measured
        if measured:
            assert line.engine["publish_p99"] >= line.engine["publish"] > 0 and line.engine["both"] > 0
            assert line.engine["table_one_per_s"] > 0 and line.engine["table_ratio"] > 0
            assert line.engine["ratio"] == pytest.approx(line.engine["two_per_s"] / line.engine["one_per_s"])


def test_a_set_that_finds_other_pairs_ends_the_run(monkeypatch):
    right = SubscriptionSet.match

    def wrong(self, messages, threads=1):
        found = right(self, messages, threads)
        return found._replace(ids=found.ids + 1)

    monkeypatch.setattr(SubscriptionSet, "match", wrong)
    with pytest.raises(Disagreement, match="the set with 'keyword-first' on mixed"):
        run_case(["keyword-first"], MIXED, Settings(rounds=1, singles=0, updates=0, whole=True))


def test_an_engine_that_finds_others_ends_the_run(monkeypatch):
    right = Engine.publish
    monkeypatch.setattr(Engine, "publish", lambda self, *args, **named: right(self, *args, **named)[1:])
    with pytest.raises(Disagreement, match="the engine with 'keyword-first' finds others"):
        run_case(["keyword-first"], MIXED, Settings(rounds=1, singles=0, updates=0, engine=6))


def test_calls_describe_the_drawn_subscriptions():
    corpus = corpus_for(MIXED)
    calls = subscribe_calls(corpus, MIXED, 5, 205)
    assert [call["id"] for call in calls] == list(range(5, 205))
    drawn = draw_subscriptions(corpus, MIXED, 5, 205)
    given = [("near" in call) + 2 * ("region" in call) + 4 * ("box" in call) for call in calls]
    assert set(given) <= {0, 1, 2, 4} and {1, 2, 4} <= set(given)
    assert all(call["box"] == tuple(drawn.boxes[k]) for k, call in enumerate(calls) if "box" in call)
    assert any("expires" in call for call in calls)
    messages = publish_calls(corpus, MIXED, "short-point", 12)
    assert len(messages) > 6 and all(text for _, text, _ in messages)


def test_what_rank_cannot_be_measured_with_is_refused():
    with pytest.raises(InvalidInput, match="the whole match and the engine are measured on kind match"):
        run_case(["brute"], PLAIN.but(kind="rank"), Settings(engine=1))

"""The method `auto`: what it chooses, when it plans again, and that nobody notices."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nearcast as nc
from nearcast.arrays.jit import JIT_DISABLED
from nearcast.indexes.auto import Auto, costs, trial
from nearcast.indexes.auto import drift as watch
from nearcast.matching.checks.cases import (
    EVERYWHERE,
    Message,
    Subscription,
    answers,
    batch_of,
    built,
    empty,
    expect_equal,
    insert,
    point,
    remove,
)
from nearcast.matching.method import find_method
from nearcast.matching.subscription_set import SubscriptionSet

N = 150 if JIT_DISABLED else 600
WORDS = 400


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "PATIENCE", 0.0)
    monkeypatch.setattr(watch, "EVERY", 8)


def tiny(n: int, seed: int = 1, first: int = 0) -> list[Subscription]:
    """Boxes of a thousandth of the space, one or two of many words."""
    rng = np.random.default_rng(seed)
    places = rng.random((n, 2)).tolist()
    terms = rng.integers(0, WORDS, (n, 2)).tolist()
    return [
        Subscription(first + i, sorted(set(terms[i][: 1 + i % 2])), (x, y, x + 1e-3, y + 1e-3))
        for i, (x, y) in enumerate(places)
    ]


def messages(n_terms: int, n: int = 64, seed: int = 2) -> list[Message]:
    rng = np.random.default_rng(seed)
    return [Message(rng.choice(WORDS, n_terms, replace=False).tolist(), point(*rng.random(2))) for _ in range(n)]


LONG, SHORT = messages(300), messages(6, seed=3)
RANGES = [m._replace(box=(m.box[0], m.box[1], m.box[0] + 0.3, m.box[1] + 0.3)) for m in SHORT]
"""Short, and over many cells."""


def told(sample: list[Message], subscriptions: list[Subscription]) -> SubscriptionSet:
    matcher = empty("auto")
    matcher.expect(batch_of(sample))
    insert(matcher, subscriptions)
    return matcher


def auto_of(matcher: SubscriptionSet) -> Auto:
    assert isinstance(matcher.method, Auto)
    return matcher.method


def chosen(matcher: SubscriptionSet) -> str:
    return auto_of(matcher).chosen.name


def match_often(matcher: SubscriptionSet, load: list[Message]) -> None:
    """Often enough for the messages kept to be all of this load."""
    batch = batch_of(load)
    for _ in range(2 * trial.MOST_MESSAGES // watch.BLOCK):
        matcher.match(batch)


def switched() -> SubscriptionSet:
    """Planned for short messages, and switched by long ones."""
    matcher = told(SHORT, tiny(N))
    assert chosen(matcher) == "pyramid"
    match_often(matcher, LONG)
    assert chosen(matcher) == "spatial-first"
    return matcher


def test_the_sample_decides() -> None:
    matcher = told(LONG, tiny(N))
    assert auto_of(matcher).plans == 1 and auto_of(matcher).switches == 0, "the first choice is no switch"
    assert chosen(matcher) == "spatial-first", "a few cells are read sooner than 300 terms are asked"
    assert chosen(told(SHORT, tiny(N))) == "pyramid"
    assert chosen(built("auto", tiny(N))) == "pyramid", "without a sample, messages are made up, and short"


def test_without_the_default_the_others_are_chosen_among(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find_method("match", "pyramid"), "cost_ns", None)
    monkeypatch.setattr(trial, "LEAST_ROWS", 600)  # all rows, also in plain Python
    wide = [s._replace(box=(0.0, 0.0, 1.0, 1.0)) for s in tiny(N)]
    assert chosen(told(SHORT, wide)) == "keyword-first", "words divide, places do not"
    few_words = [s._replace(terms=[s.id % 2]) for s in tiny(600)]
    both = [Message([0, 1], m.box) for m in SHORT]
    assert chosen(told(both, few_words)) == "spatial-first", "places divide, words do not"


def test_a_small_gain_is_no_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    only_messages = {"pyramid": 1.4e6, "spatial-first": 1.0e6, "keyword-first": 2.0e6}  # verification hardly counts
    for name, cost in only_messages.items():
        monkeypatch.setitem(costs.FITTED, name, costs.Costs(cost, 0, 0, 0, 0))
    assert chosen(built("auto", tiny(N))) == "pyramid", "1.4 times cheaper may be the estimate's fault"
    monkeypatch.setitem(costs.FITTED, "pyramid", costs.Costs(1.6e6, 0, 0, 0, 0))
    assert chosen(built("auto", tiny(N))) == "spatial-first"


def test_the_same_rows_and_messages_always_make_the_same_plan() -> None:
    assert len({told(LONG, tiny(N)).method.plan for _ in range(3)}) == 1


def test_a_method_that_was_not_fitted_counts_by_what_it_says_of_itself() -> None:
    brute = find_method("match", "brute")
    assert costs.nanoseconds(brute, 5, 50, (2, 3, 4)) == 5.0, "a node and a candidate weigh alike"
    assert costs.nanoseconds(find_method("match", "pyramid"), 1, 0, (0, 0, 0)) == costs.FITTED["pyramid"].message


def test_few_rows_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "count", lambda *tried: pytest.fail("tried"))
    matcher = told(LONG, tiny(trial.FEW - 1))
    assert chosen(matcher) == "pyramid" and "too few" in matcher.method.plan


def test_an_empty_sample_is_none() -> None:
    assert "made up" in told([], tiny(N)).method.plan


def test_messages_without_terms_may_be_expected() -> None:
    nothing = [Message([], point(0.5, 0.5))] * 3
    matcher = told(nothing, tiny(N))
    expect_equal(matcher, built("brute", tiny(N)), SHORT)


def test_terms_unknown_to_all_rows_may_be_expected() -> None:
    odd = [Message([*m.terms, 10_000_000], m.box) for m in LONG]
    assert chosen(told(odd, tiny(N))) == "spatial-first"


def test_work_over_all_rows_follows_two_samples() -> None:
    assert trial.sample_sizes(100) == [100], "all of a few"
    small, large = trial.sample_sizes(10**9)
    assert large == trial.MOST_ROWS and small * trial.SMALLER == large
    assert trial.extrapolated([100], [3.0], 100) == 3.0
    assert trial.extrapolated([100, 400], [1.0, 2.0], 1600) == pytest.approx(4.0), "twice for each fourfold"
    assert trial.extrapolated([100, 400], [0.0, 0.0], 1600) == 0.0
    assert trial.extrapolated([100, 400], [2.0, 1.0], 1600) == 1.0, "more rows are never less work"
    assert trial.extrapolated([100, 400], [1.0, 9.0], 800) == pytest.approx(18.0), "nor more than in proportion"


@pytest.mark.usefixtures("impatient")
def test_long_messages_bring_a_new_plan_and_short_ranges_bring_the_old_back() -> None:
    matcher = switched()
    assert auto_of(matcher).switches == 1
    match_often(matcher, RANGES)
    assert chosen(matcher) == "pyramid" and auto_of(matcher).switches == 2
    assert "(seen)" in matcher.method.plan


@pytest.mark.usefixtures("impatient")
def test_messages_one_at_a_time_bring_a_new_plan_too() -> None:
    matcher = told(SHORT, tiny(N))
    batches = [np.array(sorted(m.terms), np.int32) for m in LONG]
    for turn in range(2 * watch.EVERY * trial.MOST_MESSAGES // watch.BLOCK):
        matcher.match_one(batches[turn % len(LONG)], *LONG[turn % len(LONG)].box[:2])
    assert chosen(matcher) == "spatial-first"


@pytest.mark.usefixtures("impatient")
def test_the_same_load_never_brings_a_new_plan() -> None:
    matcher = told(LONG + SHORT, tiny(N))
    before = auto_of(matcher).plans
    match_often(matcher, LONG + SHORT)
    assert auto_of(matcher).plans == before


def test_planning_takes_a_small_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "PATIENCE", 1e12)
    matcher = told(SHORT, tiny(N))
    match_often(matcher, LONG)
    assert auto_of(matcher).plans == 1, "the time matching took does not pay for a plan yet"


def test_fourfold_rows_bring_a_new_plan() -> None:
    matcher = told(SHORT, tiny(N))
    insert(matcher, tiny(2 * N, seed=5, first=N))
    assert auto_of(matcher).plans == 1
    insert(matcher, tiny(2 * N, seed=6, first=3 * N))
    assert auto_of(matcher).plans == 2 and f"{5 * N:,} rows" in matcher.method.plan


def test_compaction_hands_the_sample_on() -> None:
    n = 1500
    matcher = told(LONG, tiny(n))
    remove(matcher, range(n - 200))
    assert auto_of(matcher).plans == 1 and "given" in matcher.method.plan and chosen(matcher) == "spatial-first"
    expect_equal(matcher, built("brute", tiny(n)[n - 200 :]), LONG[:5] + SHORT)


@pytest.mark.usefixtures("impatient")
def test_answers_stay_right_across_switches_and_changes() -> None:
    live = {s.id: s for s in tiny(N)}
    matcher = told(SHORT, list(live.values()))
    for step, load in enumerate([LONG, RANGES, LONG]):
        remove(matcher, range(step * 20, step * 20 + 10))
        fresh = tiny(15, seed=20 + step, first=1000 + 100 * step)
        insert(matcher, fresh)
        live = {k: s for k, s in live.items() if not step * 20 <= k < step * 20 + 10} | {s.id: s for s in fresh}
        near = [Message(s.terms, point(*s.box[:2])) for s in list(live.values())[-30:]]
        match_often(matcher, load)
        expect_equal(matcher, built("brute", list(live.values())), near + load[:10])
    assert auto_of(matcher).switches >= 2


@pytest.mark.usefixtures("impatient")
def test_rows_removed_from_the_method_alone_stay_away_after_a_switch() -> None:
    matcher = told(SHORT, tiny(N))
    gone = matcher.store.live_rows()[:50]
    matcher.method.remove(gone)  # as the benchmark does: the store still has them
    match_often(matcher, LONG)
    assert chosen(matcher) == "spatial-first"
    everywhere = batch_of([Message(list(range(matcher.store.n_terms)), (0.0, 0.0, 2.0, 2.0))])
    assert len(matcher.method.match(everywhere)[0].rows) == N - 50
    matcher.method.insert(gone)
    assert len(matcher.method.match(everywhere)[0].rows) == N


@pytest.mark.usefixtures("impatient")
def test_saved_after_a_switch_and_opened_it_is_the_same() -> None:
    matcher = switched()
    opened = SubscriptionSet.restored(*matcher.state())
    assert chosen(opened) == "spatial-first" and opened.method.plan == matcher.method.plan
    expect_equal(opened, built("brute", tiny(N)), LONG[:10] + SHORT)


@pytest.mark.usefixtures("impatient")
def test_an_opened_index_switches_only_after_a_change() -> None:
    opened = SubscriptionSet.restored(*told(SHORT, tiny(N)).state())
    match_often(opened, LONG)
    assert chosen(opened) == "pyramid", "its arrays are shared; another method's would be this process's own"
    insert(opened, tiny(5, seed=9, first=5000))
    answers(opened, LONG)
    assert chosen(opened) == "spatial-first"
    expect_equal(opened, built("brute", tiny(N) + tiny(5, seed=9, first=5000)), LONG[:10] + SHORT)


@pytest.mark.usefixtures("impatient")
def test_two_threads_match_during_a_switch() -> None:
    matcher = told(SHORT, tiny(N))
    wanted = answers(built("brute", tiny(N)), LONG)
    wrong: list[object] = []

    def run() -> None:
        for _ in range(40):
            got = answers(matcher, LONG)
            if got != wanted:
                wrong.append(got)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and chosen(matcher) == "spatial-first" and auto_of(matcher).switches == 1


@pytest.mark.usefixtures("impatient")
def test_while_one_thread_plans_another_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = told(SHORT, tiny(N))
    planning, go_on = threading.Event(), threading.Event()
    plain: Callable[..., trial.Counts] = trial.count

    def slow(*tried: Any) -> trial.Counts:
        planning.set()
        assert go_on.wait(30)
        return plain(*tried)

    monkeypatch.setattr(trial, "count", slow)
    planner = threading.Thread(target=match_often, args=(matcher, LONG))
    planner.start()
    assert planning.wait(30)
    assert answers(matcher, LONG) == answers(built("brute", tiny(N)), LONG), "matched by the old method meanwhile"
    go_on.set()
    planner.join()
    assert chosen(matcher) == "spatial-first"


def table(subscriptions: list[Subscription]) -> dict[str, object]:
    sides = np.array([s.box for s in subscriptions]).T
    tokens = [[f"w{term}" for term in s.terms] for s in subscriptions]
    return {"id": [s.id for s in subscriptions], "tokens": tokens} | dict(
        zip(("xmin", "ymin", "xmax", "ymax"), sides, strict=True)
    )


def message_table(listed: list[Message]) -> dict[str, object]:
    return {
        "id": np.arange(len(listed)),
        "tokens": [[f"w{term}" for term in m.terms] for m in listed],
        "x": [m.box[0] for m in listed],
        "y": [m.box[1] for m in listed],
    }


def test_an_index_is_planned_for_the_messages_given(tmp_path: Path) -> None:
    space = (0.0, 0.0, 1.0, 1.0)
    index = nc.build_index(table(tiny(N)), space=space, messages=message_table(LONG))
    assert index.method == "auto" and index.plan.startswith(f"spatial-first: planned for {N:,} rows and messages of ")
    assert "(given)" in index.plan and "pyramid" in index.plan
    index.save(tmp_path / "saved")
    assert nc.open_index(tmp_path / "saved").plan == index.plan


def test_other_methods_take_the_sample_and_ignore_it() -> None:
    space = (0.0, 0.0, 1.0, 1.0)
    for method in ("brute", "pyramid", "keyword-first"):
        index = nc.build_index(table(tiny(30)), method, space=space, messages=message_table(LONG))
        assert index.plan == method and len(index) == 30


def test_a_bad_sample_is_refused_or_skipped_like_any_table() -> None:
    bad = {"id": [1, 2], "tokens": [["w1"], ["w2"]], "x": [0.5, float("nan")], "y": [0.5, 0.5]}
    space = (0.0, 0.0, 1.0, 1.0)
    with pytest.raises(nc.InvalidInput):
        nc.build_index(table(tiny(30)), space=space, messages=bad)
    index = nc.build_index(table(tiny(30)), space=space, messages=bad, on_bad="skip")
    assert len(index) == 30 and index.rejects is not None and index.rejects.num_rows == 0, "rejects are subscriptions'"


def test_the_expected_cost_includes_verification() -> None:
    sure = [Subscription(i, [0], EVERYWHERE) for i in range(200)]
    unsure = [each._replace(not_terms=[1]) for each in sure]
    messages = batch_of([Message([0], point(0.5, 0.5))])
    costs_ns = []
    for subscriptions in (sure, unsure):
        live = built("pyramid", subscriptions)
        costs_ns.append(trial.estimates(live.store, live.space, live.store.live_rows(), messages, "pyramid")["pyramid"])
    assert costs_ns[1] - costs_ns[0] > 20.0 * len(sure), "the NOT terms of all hits are tested"

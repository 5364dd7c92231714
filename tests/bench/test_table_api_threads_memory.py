"""Beyond the methods alone: the table API and where its time goes, match_one, threads, memory."""

from __future__ import annotations

import io
import tracemalloc
import weakref

import numpy as np
import pytest
from rich.console import Console

from nearcast.arrays.jit import JIT_DISABLED
from nearcast.bench.reports.figures import figures
from nearcast.bench.reports.tables import markdown_report, screen_report
from nearcast.bench.runs import environment as memory
from nearcast.bench.runs import run_case as runner
from nearcast.bench.runs import table_api
from nearcast.bench.runs.agreement import Disagreement
from nearcast.bench.runs.case import Settings, filled_store
from nearcast.bench.runs.environment import describe_environment
from nearcast.bench.runs.groups import TIMES_THE_MESSAGES
from nearcast.bench.runs.results import Result
from nearcast.bench.runs.run_case import run_case, steps_of
from nearcast.bench.runs.sweep import find_sweep, run_sweep, single_case
from nearcast.bench.workloads.corpus import SyntheticCorpus
from nearcast.bench.workloads.workload import Workload
from nearcast.engine.index import Index
from nearcast.matching.subscription_set import SubscriptionSet
from nearcast.model import Found

TOY = Workload(
    name="toy",
    subscriptions=200,
    messages=5,
    vocabulary=200,
    topics=5,
    words_per_topic=20,
    clusters=3,
    long=(20, 40),
    box_share=(0.05, 0.5),
    groups=("short-point", "long-range"),
)
WHOLE = Settings(rounds=2, budget_s=0.5, singles=3, updates=0, tables=True)
BY_THREADS = Settings(rounds=2, budget_s=60.0, singles=0, updates=0, threads=(1, 2))


def lines_of(case):
    return figures(Result({}, {}, [{"varied": {}} | case]))


# -- tables


def test_the_table_api_is_measured_whole_and_by_its_parts():
    case = run_case(["keyword-first", "spatial-first"], TOY, WHOLE)
    assert "updates" not in case and "threads" not in case
    for record in case["tables"]:
        for group in TOY.groups:
            measured = record["groups"][group]
            assert {len(measured[f"{part}_cpu_s"]) for part in ("whole", *table_api.PARTS)} == {2}
    for line in lines_of(case):
        times = line.tables
        assert times["messages"] == TOY.messages and times["whole"] > times["kernel"] * 0.1 > 0
        assert times["ratio"] == pytest.approx(times["whole"] / times["kernel"])
        assert line.whole_per_subscription > line.bytes_per_subscription + line.stored_per_subscription


def record_of(**rounds):
    return {"messages": 10} | {f"{name}_cpu_s": values for name, values in rounds.items()}


def test_parts_are_medians_a_message_and_the_rest_is_what_they_leave():
    rounds = {"whole": [9, 9, 20], "read": [3, 3, 3], "lookup": [2, 2, 2], "kernel": [1, 2, 9], "order": [1, 1, 1]}
    rounds["write"] = [1, 1, 1]
    group = {"messages": 10} | {f"{name}_cpu_s": [us * 1e-5 for us in each] for name, each in rounds.items()}
    case = run_case(["brute"], TOY.but(groups=["short-point"]), Settings(rounds=1, singles=0, updates=0))
    case["tables"] = [{"method": "brute", "build_cpu_s": 1.0, "bytes": 400, "groups": {"short-point": group}}]
    (line,) = lines_of(case)
    parts = {"whole": 9, "read": 3, "lookup": 2, "kernel": 2, "order": 1, "write": 1, "rest": 3}
    assert line.tables == pytest.approx({"messages": 10, "ratio": 4.5} | parts)
    assert line.match_one is None and line.whole_per_subscription == 2.0


def test_a_table_with_other_pairs_ends_the_run(monkeypatch):
    right = Index.match
    monkeypatch.setattr(Index, "match", lambda self, messages: right(self, messages).slice(1))
    with pytest.raises(Disagreement, match="the table API over 'keyword-first' finds"):
        run_case(["keyword-first"], TOY, WHOLE)


def test_parts_that_make_another_table_end_the_run(monkeypatch):
    right = table_api.matches_table  # the run itself makes one table that is right: the wanted one
    made = []

    def wrong_later(ids, subscriptions, *rest):
        made.append(len(made))
        return right(ids, subscriptions * (len(made) == 1), *rest)

    monkeypatch.setattr(table_api, "matches_table", wrong_later)
    with pytest.raises(Disagreement, match="the table API over 'keyword-first', part by part, finds"):
        run_case(["keyword-first"], TOY, WHOLE)


# -- match_one


def test_match_one_is_measured_where_messages_are_points():
    case = run_case(["keyword-first"], TOY, WHOLE)
    point, ranged = lines_of(case)
    assert point.match_one["messages"] == 3 and ranged.match_one is None
    for clock in ("cpu", "wall"):
        assert 0 < point.match_one[f"{clock}_us"] <= point.match_one[f"{clock}_p99_us"]
    assert len(case["tables"][0]["groups"]["short-point"]["ones_wall_us"]) == 3


def test_a_wrong_match_one_ends_the_run(monkeypatch):
    right = Index.match_one
    monkeypatch.setattr(Index, "match_one", lambda self, tokens, x, y: np.append(right(self, tokens, x, y), -1))
    with pytest.raises(Disagreement, match="match_one over 'keyword-first' finds others for message 0"):
        run_case(["keyword-first"], TOY, WHOLE)


# -- threads


def test_throughput_is_measured_for_each_number_of_threads():
    steps = []
    case = run_case(["brute", "keyword-first"], TOY, BY_THREADS, on_step=steps.append)
    assert len(steps) == steps_of(["brute", "keyword-first"], TOY, BY_THREADS)
    for line in lines_of(case):
        assert list(line.threads) == ["1", "2"]
        one, two = line.threads["1"], line.threads["2"]
        assert one["ratio"] == 1 and two["ratio"] == pytest.approx(two["per_s"] / one["per_s"])
        assert one["messages"] == two["messages"] == TIMES_THE_MESSAGES * TOY.messages
    assert len(case["threads"]["long-range"][0]["wall_s"]["2"]) == BY_THREADS.rounds


def test_threads_get_the_batch_cut_and_the_first_messages_are_the_groups_own(monkeypatch):
    seen = []
    right = SubscriptionSet.match

    def noted(self, messages, threads=1):
        seen.append((messages, threads, len(self.store.live_rows())))
        return right(self, messages, threads)

    monkeypatch.setattr(SubscriptionSet, "match", noted)
    run_case(["keyword-first"], TOY.but(groups=["short-point"]), BY_THREADS)
    own = runner.message_batch(runner.message_group(SyntheticCorpus(TOY), TOY, "short-point"))
    batch = next(messages for messages, threads, _ in seen if threads == 2)
    assert np.array_equal(batch.terms[: len(own.terms)], own.terms) and batch.size > own.size
    assert {rows for _, _, rows in seen} == {TOY.subscriptions}


def test_threads_that_change_what_is_found_end_the_run(monkeypatch):
    right = SubscriptionSet.match

    def forgetful(self, messages, threads=1):
        found = right(self, messages, threads)
        return found if threads == 1 else Found(found.ids, np.zeros_like(found.starts))

    monkeypatch.setattr(SubscriptionSet, "match", forgetful)
    with pytest.raises(Disagreement, match="'brute' on toy, short-point finds other subscriptions with 2 threads"):
        run_case(["brute"], TOY, BY_THREADS)


@pytest.mark.parametrize("empty", ["subscriptions", "messages"])
def test_an_empty_side_does_no_harm_to_tables_and_threads(empty):
    settings = Settings(rounds=1, budget_s=0.2, singles=2, updates=0, tables=True, threads=(1, 2))
    result = run_sweep(single_case(TOY.but(**{empty: 0}), ["brute", "keyword-first"], settings))
    assert "| brute |" in markdown_report(result)
    Console(quiet=True).print(screen_report(result))


# -- memory


def test_memory_is_measured_and_shown():
    result = run_sweep(single_case(TOY, ["keyword-first"], WHOLE))
    used = result.runs[0]["memory"]
    assert 0 < used["start_bytes"] <= used["peak_bytes"] <= result.surroundings["peak_memory_bytes"]
    assert used["built_bytes"] <= used["peak_bytes"]
    assert result.surroundings["peak_memory_bytes"] >= used["earlier_peak_bytes"]
    line = figures(result)[0]
    assert line.stored_per_subscription * TOY.subscriptions == pytest.approx(result.runs[0]["stored_bytes"])
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(screen_report(result))
    shown = console.export_text()
    assert "Peak resident memory of the process: " in " ".join(shown.split()) and "…" not in shown
    for title in ("stored", "whole", "peak MB"):
        assert title in shown and f" {title} |" in markdown_report(result)


def test_the_peak_is_that_of_the_case_and_the_sweeps_is_the_largest():
    memory.reset_peak()
    before = memory.peak_bytes()
    large = np.ones(8_000_000)
    assert memory.peak_bytes() >= before + 50_000_000 or memory.resident_bytes() is None
    assert describe_environment([2**50, None])["peak_memory_bytes"] == 2**50
    del large


def test_a_system_that_does_not_report_memory_is_no_error(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "_STATUS", tmp_path / "absent")
    monkeypatch.setattr(memory, "_CLEAR", tmp_path)
    memory.reset_peak()
    assert memory.resident_bytes() is None and memory.peak_bytes() > 1_000_000


def test_subscriptions_are_never_held_twice_while_they_are_drawn():
    n = 1_000 if JIT_DISABLED else 20_000
    corpus = SyntheticCorpus(TOY)
    filled_store(corpus, TOY)
    tracemalloc.start()
    try:
        store = filled_store(corpus, TOY.but(subscriptions=n), n // 50)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # 1.3 measured: the arrays' spare room, and the old copy of the one that grows. All chunks at once gave 3.2.
    assert peak < 1.8 * store.nbytes


def test_rows_and_methods_are_gone_before_tables_are_made(monkeypatch):
    alive = []
    fill, tables = runner.filled_store, runner.run_tables

    def noted(corpus, workload, *rest):
        store = fill(corpus, workload, *rest)
        alive.append(weakref.ref(store))
        return store

    def checked(*arguments):
        assert alive and all(store() is None for store in alive[1:]), "the first is the toy of the warm-up"
        return tables(*arguments)

    monkeypatch.setattr(runner, "filled_store", noted)
    monkeypatch.setattr(runner, "run_tables", checked)
    case = run_case(["keyword-first"], TOY, WHOLE)
    assert len(alive) == 2 and len(case["tables"]) == 1


def test_twenty_million_run_one_method_on_one_group_without_tables():
    sweep = find_sweep("twenty")
    (case,) = sweep.cases()
    assert case.workload.subscriptions == 20_000_000 and case.workload.groups == ("short-point",)
    assert sweep.methods == ("pyramid",) and not sweep.settings.tables and not sweep.settings.updates


def test_one_index_is_alive_at_a_time(monkeypatch):
    alive = []
    right = table_api.build_index

    def noted(*arguments, **options):
        assert not [index for index in alive if index() is not None]
        index = right(*arguments, **options)
        alive.append(weakref.ref(index))
        return index

    monkeypatch.setattr(table_api, "build_index", noted)
    case = run_case(["brute", "keyword-first"], TOY, WHOLE)
    assert len(alive) == 2 and len(case["tables"]) == 2

"""What papers' experiments need of the runner: groups by number of tokens, updates among messages, kind rank."""

from __future__ import annotations

import numpy as np
import pytest

from nearcast.bench.runs.agreement import Disagreement
from nearcast.bench.runs.case import Case, Settings, filled_store, known_methods, method_names, rank_params
from nearcast.bench.runs.run_case import run_case, steps_of
from nearcast.bench.runs.updates import INSERT, MESSAGE, REMOVE, draw_operations, run_mixed
from nearcast.bench.workloads.corpus import SyntheticCorpus, message_group
from nearcast.bench.workloads.subscriptions import message_batch
from nearcast.bench.workloads.workload import Workload, group_name, group_of
from nearcast.errors import InvalidInput, UnsupportedKind
from nearcast.indexes.keyword_first import KeywordFirst
from nearcast.matching.intake import checked_messages
from nearcast.matching.method import REGISTRY

TOY = Workload(
    name="toy",
    subscriptions=200,
    messages=6,
    vocabulary=100,
    topics=5,
    words_per_topic=20,
    clusters=3,
    short=(3, 8),
    long=(20, 40),
    box_share=(0.05, 0.5),
)
QUICK = Settings(rounds=2, budget_s=0.2, singles=0, updates=0)
METHODS = ["keyword-first", "spatial-first", "pyramid"]


def batch_of(group, store, workload=TOY):
    return checked_messages(message_batch(message_group(SyntheticCorpus(workload), workload, group)), store.n_terms)


def test_a_group_may_say_how_many_tokens():
    assert group_of("short-6-point") == ("short-point", 6) and group_of("long-range") == ("long-range", None)
    assert group_name("long-range", 100) == "long-100-range"
    few, many = (message_group(SyntheticCorpus(TOY), TOY, f"short-{n}-range") for n in (3, 7))
    assert (np.diff(few.starts) == 3).all() and (np.diff(many.starts) == 7).all()
    assert np.array_equal(few.boxes, many.boxes)
    assert np.array_equal(few.terms.reshape(-1, 3), many.terms.reshape(-1, 7)[:, :3])


@pytest.mark.parametrize(
    "name", ["short", "tall-point", "short-0-point", "short-6", "short-6-6-point", "short--point", 3]
)
def test_other_names_are_no_groups(name):
    with pytest.raises(InvalidInput, match="groups"):
        TOY.but(groups=(name,))


def test_a_group_named_twice_is_refused():
    with pytest.raises(InvalidInput, match="groups"):
        TOY.but(groups=("short-point", "short-point"))


def test_operations_are_as_many_as_asked_and_rows_occur_once():
    store = filled_store(SyntheticCorpus(TOY), TOY)
    messages = batch_of("short-point", store)
    operations = draw_operations(store.live_rows(), messages, 100, seed=1)
    assert np.bincount(operations.kinds).tolist() == [80, 10, 10]
    assert len({*operations.inserted.tolist(), *operations.removed.tolist()}) == 20
    few = draw_operations(store.live_rows()[:4], messages, 100, seed=1)
    assert np.bincount(few.kinds).tolist() == [96, 2, 2]
    none = draw_operations(store.live_rows()[:0], messages.part(0, 0), 100, seed=1)
    assert len(none.kinds) == 0
    assert (MESSAGE, INSERT, REMOVE) == (0, 1, 2)


def test_throughput_is_measured_and_every_row_is_back_afterwards():
    store = filled_store(SyntheticCorpus(TOY), TOY)
    methods = {variant.label: variant.make(store, TOY.geometry) for variant in known_methods(METHODS)}
    for method in methods.values():
        method.build(store.live_rows())
    messages = batch_of("long-range", store)
    before = {name: sorted(method.match(messages)[0].rows.tolist()) for name, method in methods.items()}
    case = Case(TOY, SyntheticCorpus(TOY), Settings(rounds=2, budget_s=5.0, mixed=60), print)
    records = run_mixed(methods, store.live_rows(), messages, case, "toy")
    assert [(record["method"], record["operations"], len(record["rounds_cpu_s"])) for record in records] == [
        (name, 60, 2) for name in METHODS
    ]
    assert before == {name: sorted(method.match(messages)[0].rows.tolist()) for name, method in methods.items()}


def test_a_method_that_loses_an_insert_among_messages_is_found():
    class Lossy(KeywordFirst):
        """Loses the rows that come one at a time, and ignores their removal."""

        name = "lossy"

        def build(self, rows):
            self.lost = []
            super().build(rows)

        def insert(self, rows):
            if len(rows) == 1:
                self.lost += rows.tolist()
            else:
                super().insert(rows)

        def remove(self, rows):
            super().remove(rows[~np.isin(rows, self.lost)])

    workload = TOY.but(messages=40, groups=("long-range",), box_share=(0.9, 1.0), tokens=(1, 1), vocabulary=60)
    try:
        with pytest.raises(Disagreement, match="long-range, among updates"):
            run_case(
                ["keyword-first", "lossy"], workload, Settings(rounds=1, budget_s=5.0, singles=0, updates=0, mixed=200)
            )
    finally:
        del REGISTRY["match", "lossy"]


def test_a_run_measures_updates_among_messages_of_every_group_but_not_for_brute():
    settings = Settings(rounds=1, budget_s=0.2, singles=0, updates=0, mixed=40)
    steps = []
    case = run_case(["brute", *METHODS], TOY, settings, on_step=steps.append)
    assert len(steps) == steps_of(["brute", *METHODS], TOY, settings)
    assert set(case["mixed"]) == set(TOY.groups)
    assert [record["method"] for record in case["mixed"]["short-point"]] == METHODS
    with pytest.raises(InvalidInput, match="mixed"):
        Settings(mixed=-1)


def test_rows_of_kind_rank_ask_for_what_the_workload_says():
    workload = TOY.but(kind="rank", alpha=(0.2, 0.4), threshold=(0.9, 0.9))
    store = filled_store(SyntheticCorpus(workload), workload)
    arrays = rank_params(store, workload).arrays
    assert arrays.alphas.min() >= 0.2 and arrays.alphas.max() <= 0.4 and len(np.unique(arrays.alphas)) > 50
    assert (arrays.thresholds == 0.9).all() and (arrays.own_weights > 0).all()
    term = int(store.frequencies.argmax())
    assert arrays.weights[term] == pytest.approx(np.log(1 + store.live / store.frequencies[term]))


def test_kind_rank_is_run_by_the_methods_that_have_it():
    workload = TOY.but(kind="rank", threshold=(0.6, 0.6))
    case = run_case([], workload, QUICK)
    assert [build["method"] for build in case["builds"]] == method_names("rank")
    assert sum(record["work"]["matches"] for records in case["groups"].values() for record in records) > 0
    loose, strict = (
        run_case(["brute"], workload.but(threshold=(least, least)), QUICK)["groups"]["long-range"][0]["work"]["matches"]
        for least in (0.3, 0.95)
    )
    assert loose > strict
    with pytest.raises(UnsupportedKind):
        run_case(["keyword-first"], workload, QUICK)
    with pytest.raises(InvalidInput, match="kind match alone"):
        run_case(["brute"], workload, Settings(tables=True))


@pytest.mark.parametrize("changes", [{"kind": "top"}, {"alpha": (0.5, 0.2)}, {"threshold": (0.5, 1.5)}, {"alpha": 0.5}])
def test_a_ranking_that_cannot_be_is_refused_by_name(changes):
    with pytest.raises(InvalidInput, match=next(iter(changes))):
        TOY.but(**changes)

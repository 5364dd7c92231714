"""Methods with options, spell_words as one text, in the benchmark as in the checks."""

from __future__ import annotations

import pytest

from nearcast.bench.reports.figures import figures
from nearcast.bench.runs.case import Settings, known_methods
from nearcast.bench.runs.results import Result
from nearcast.bench.runs.run_case import run_case
from nearcast.bench.runs.sweep import sweep_of
from nearcast.bench.workloads.workload import Workload
from nearcast.errors import InvalidInput, UnknownMethod
from nearcast.indexes.brute import Brute
from nearcast.matching.checks.cases import empty
from nearcast.matching.method import REGISTRY
from nearcast.matching.variant import variant_of

TOY = Workload(
    subscriptions=60, messages=4, vocabulary=100, topics=3, words_per_topic=10, long=(10, 20), groups=("short-point",)
)
QUICK = Settings(rounds=1, budget_s=0.2, singles=1, updates=10)


@pytest.fixture
def picky():
    """Brute force with one option, and a note of the values that it was made with."""

    class Picky(Brute):
        name = "picky"
        made_with = []

        def __init__(self, store, space, level=3):
            super().__init__(store, space)
            self.made_with.append(level)

    yield Picky
    del REGISTRY["match", "picky"]


def test_a_text_is_a_name_and_values_of_their_types():
    variant = variant_of("  pyramid   crowded=2 share=0.5 on=true none=null word=abc ")
    assert variant.label == "pyramid crowded=2 share=0.5 on=true none=null word=abc" and variant.name == "pyramid"
    assert variant.options == {"crowded": 2, "share": 0.5, "on": True, "none": None, "word": "abc"}
    assert variant_of("brute") == ("brute", "brute", {})


@pytest.mark.parametrize("text", ["pyramid crowded", "pyramid =2", "pyramid 2=2", "pyramid a=1 a=2"])
def test_a_text_that_is_no_method_is_refused(text):
    with pytest.raises(InvalidInput, match="pyramid"):
        variant_of(text)


def test_checks_take_the_same_spelling(picky):
    assert empty("picky level=7").options == {"level": 7} and picky.made_with == [7]


def test_the_benchmark_makes_each_method_with_its_options_and_shows_the_label(picky):
    settings = Settings(rounds=1, budget_s=0.2, singles=1, updates=10, tables=True, threads=(1,))
    case = run_case(["picky", "picky  level=5", "keyword-first"], TOY, settings)
    lines = figures(Result({}, {}, [{"varied": {}} | case]))
    assert [line.method for line in lines] == ["picky", "picky level=5", "keyword-first"]
    assert all(line.insert_us and line.tables and line.match_one and line.threads for line in lines)
    # Asked for, warmed up, built, and built from tables.
    assert picky.made_with.count(5) == 4 and set(picky.made_with) == {3, 5}


def test_unknown_names_options_and_values_are_refused_before_anything_runs(picky):
    with pytest.raises(UnknownMethod):
        known_methods([""])
    with pytest.raises(InvalidInput, match="method 'picky' has no option 'colour'; it takes level"):
        known_methods(["brute", "picky colour=1"])
    with pytest.raises(InvalidInput, match="crowded is 1 to"):
        known_methods(["pyramid crowded=0"])
    with pytest.raises(InvalidInput, match="'pyramid crowded=many' has an option of the wrong type"):
        known_methods(["pyramid crowded=many"])
    with pytest.raises(InvalidInput, match="it takes none"):
        sweep_of({"name": "mine", "methods": ["brute level=1"]})


def test_brute_is_left_out_beyond_its_limit_whatever_the_label(monkeypatch):
    monkeypatch.setattr(
        Brute, "__init__", lambda self, store, space, block=1: super(Brute, self).__init__(store, space)
    )
    settings = Settings(rounds=1, budget_s=0.2, singles=0, updates=0, brute_limit=10)
    case = run_case(["brute block=2", "keyword-first"], TOY, settings)
    assert list(case["left_out"]) == ["brute block=2"] and len(case["builds"]) == 1

"""Methods side by side: agreement, figures, sweeps, reports and pictures, at toy scale."""

from __future__ import annotations

import io
import json
import sys

import numpy as np
import pytest
from rich.console import Console

from nearcast.bench.reports.figures import figures
from nearcast.bench.reports.picture import NoMatplotlib, save_picture
from nearcast.bench.reports.tables import format_number, format_value, markdown_report, screen_report
from nearcast.bench.runs.agreement import Disagreement, digest, require_agreement, sorted_hits
from nearcast.bench.runs.case import Settings, known_methods, method_names
from nearcast.bench.runs.results import Result, load_result, save_result
from nearcast.bench.runs.run_case import run_case, steps_of
from nearcast.bench.runs.sweep import find_sweep, run_sweep, shipped_sweeps, single_case, steps_of_sweep, sweep_of
from nearcast.bench.runs.timing import median, messages_within, percentile, timed
from nearcast.bench.workloads.workload import Workload
from nearcast.errors import InvalidInput, NearcastError, UnknownMethod
from nearcast.indexes.brute import Brute
from nearcast.matching.method import REGISTRY
from nearcast.model import Hits, Work

TOY = Workload(
    name="toy",
    subscriptions=300,
    messages=6,
    vocabulary=200,
    topics=5,
    words_per_topic=20,
    clusters=3,
    long=(20, 40),
    box_share=(0.05, 0.5),
)
QUICK = Settings(rounds=2, budget_s=0.5, singles=3, updates=50)
METHODS = ["brute", "keyword-first", "spatial-first"]


@pytest.fixture
def wrong_method():
    """Brute force that forgets the last row it finds."""

    class Forgetful(Brute):
        name = "forgetful"

        def match(self, messages):
            hits, work = super().match(messages)
            starts = np.minimum(hits.starts, max(0, len(hits.rows) - 1))
            return Hits(hits.rows[:-1], starts), work

    yield Forgetful.name
    del REGISTRY["match", Forgetful.name]


def test_a_run_measures_every_method_on_every_group():
    steps = []
    case = run_case(METHODS, TOY, QUICK, on_step=steps.append)
    assert len(steps) == steps_of(METHODS, TOY, QUICK)
    lines = figures(Result({}, {}, [{"varied": {}} | case]))
    assert [(line.group, line.method) for line in lines] == [(g, m) for g in TOY.groups for m in METHODS]
    assert all(line.batch_us > 0 and line.single_us > 0 and line.single_p99_us >= line.single_us for line in lines)
    assert all(line.candidates >= line.matches for line in lines)
    assert sum(line.matches for line in lines) > 0
    by_method = {line.method: line for line in lines}
    assert by_method["brute"].candidates == TOY.subscriptions and by_method["brute"].bytes_per_subscription == 0
    assert by_method["keyword-first"].bytes_per_subscription > 10
    assert by_method["keyword-first"].insert_us > 0 and by_method["keyword-first"].remove_us > 0
    assert {record["digest"] for record in case["groups"]["long-range"]}.__len__() == 1


def test_a_wrong_method_ends_the_run_with_the_first_difference(wrong_method):
    with pytest.raises(Disagreement, match=r"'forgetful' and 'brute' disagree on toy, short-point, message \d+"):
        run_case(["brute", wrong_method], TOY, QUICK)


def test_a_method_that_is_wrong_only_after_updates_is_found_too():
    class Leaky(Brute):
        name = "leaky"
        lost = False

        def remove(self, rows):
            self.lost = len(self.store.live_rows()) == TOY.subscriptions and len(rows) == 50

        def match(self, messages):
            hits, work = super().match(messages)
            return (Hits(hits.rows[:0], np.zeros_like(hits.starts)), Work()) if self.lost else (hits, work)

    try:
        with pytest.raises(Disagreement, match="after 50 updates"):
            run_case(["brute", "leaky"], TOY, QUICK)
    finally:
        del REGISTRY["match", "leaky"]


def test_the_difference_names_what_is_missing_extra_and_repeated():
    right = Hits(np.array([1, 2, 5, 9], np.int32), np.array([0, 2, 4]))
    wrong = Hits(np.array([2, 1, 5, 5], np.int32), np.array([0, 2, 4]))
    with pytest.raises(Disagreement, match=r"message 1.*'brute' has \[9\].*'mine' has \[\].*repeats \[5\]"):
        require_agreement({"brute": right, "mine": sorted_hits(wrong)}, "a case")
    fewer = Hits(right.rows[:2], right.starts[:2])
    require_agreement({"mine": fewer, "brute": right}, "a case")
    assert digest(right) != digest(sorted_hits(wrong)) and wrong.rows.tolist() == [2, 1, 5, 5]


def test_brute_is_left_out_beyond_its_limit_and_that_is_said():
    settings = Settings(rounds=1, budget_s=0.2, singles=0, updates=0, brute_limit=10)
    sweep = single_case(TOY, METHODS, settings)
    result = run_sweep(sweep)
    assert {line.method for line in figures(result)} == {"keyword-first", "spatial-first"}
    assert "Left out: brute (more than 10 subscriptions)" in markdown_report(result)


def test_all_methods_but_auto_run_unless_some_are_named():
    assert "auto" not in method_names() and set(METHODS) <= {variant.label for variant in known_methods([])}
    assert [variant.label for variant in known_methods(["brute", " brute"])] == ["brute"]
    with pytest.raises(UnknownMethod):
        known_methods(["no-such"])


@pytest.mark.parametrize("empty", ["subscriptions", "messages"])
def test_an_empty_side_is_measured_without_harm(empty, tmp_path):
    result = run_sweep(single_case(TOY.but(**{empty: 0}), METHODS, QUICK))
    assert all(line.matches == 0 for line in figures(result))
    Console(quiet=True).print(screen_report(result))
    if empty == "messages":
        with pytest.raises(InvalidInput, match="nothing"):
            save_picture(result, tmp_path / "picture.png")


@pytest.mark.parametrize("name", [sweep.name for sweep in shipped_sweeps()])
def test_every_shipped_sweep_runs_through_to_the_picture(name, tmp_path):
    sweep = find_sweep(name)
    settings = {"rounds": 1, "budget_s": 0.05, "singles": 2, "updates": 20, "tables": sweep.settings.tables}
    plain = all(case.workload.is_plain for case in sweep.cases())
    settings["threads"] = [1, 2] if sweep.settings.tables and plain else []
    small = {"methods": ["keyword-first", "spatial-first"]}

    def part(given, more):
        run = settings | {"whole": given.settings.whole, "engine": min(2, given.settings.engine)} | more
        return small | {"run": run, "workload": dict(given.workload) | {"long": [20, 30]}, "vary": dict(given.vary)}

    also = [part(each, {"threads": []}) for each in sweep.also]
    made = sweep_of(part(sweep, {}) | {"name": name, "about": sweep.about, "also": also})
    steps = []
    scale = 1e-3 if settings["tables"] and sweep.settings.engine else 1e-4
    result = run_sweep(made, scale=scale, on_step=steps.append)
    assert len(steps) == steps_of_sweep(made, scale=scale)
    save_result(result, tmp_path / "result.json")
    loaded = load_result(tmp_path / "result.json")
    assert loaded == Result(**json.loads(json.dumps(vars(result))))
    save_picture(loaded, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    cases = made.cases()
    assert len(figures(loaded)) == sum(2 * len(case.workload.groups) for case in cases)
    assert markdown_report(loaded).count("| keyword-first |") == sum(map(shown_rows, cases))


def shown_rows(case):
    """Rows of one method in a report: the messages, each further section of them, the index, and from a table."""
    settings = case.settings
    sections = 1 + 2 * settings.tables + bool(settings.threads) + settings.whole + bool(settings.engine)
    points = [group for group in case.workload.groups if group.endswith("point")]
    assert points == list(case.workload.groups) or sections == 1
    return sections * len(case.workload.groups) - (len(points) - 1) * bool(settings.engine) + 1 + settings.tables


def toy_result(times: dict[str, list[float]]) -> Result:
    records = [
        {
            "method": name,
            "messages": 10,
            "work": {"nodes": 10, "candidates": 20, "matches": 5},
            "digest": "",
            "rounds_cpu_s": {"10": rounds},
            "singles_cpu_us": [1.0, 9.0, 2.0],
        }
        for name, rounds in times.items()
    ]
    builds = [{"method": name, "cpu_s": 1.5, "wall_s": 2.0, "bytes": 4_000} for name in times]
    run = {
        "varied": {"base": "A", "tokens": [2, 2]},
        "workload": {"name": "A", "subscriptions": 100},
        "stored_bytes": 6_000,
        "memory": {"peak_bytes": 250_000_000},
        "left_out": {},
        "builds": builds,
        "groups": {"short-point": records},
    }
    around = {"cpu": "C", "cores": 2, "python": "3", "versions": {"numpy": "2"}, "commit": "abc"}
    return Result({"name": "made", "varied": ["base", "tokens"], "scale": 1.0}, around, [run])


def test_figures_are_medians_and_ratios_against_the_best_other_or_a_baseline():
    result = toy_result({"fast": [1e-5, 9e-5, 2e-5], "middle": [4e-5], "slow": [8e-5]})
    lines = {line.method: line for line in figures(result)}
    assert lines["fast"].batch_us == pytest.approx(2.0)
    assert [lines[name].ratio for name in ("fast", "middle", "slow")] == pytest.approx([2.0, 0.5, 0.25])
    assert (lines["fast"].single_us, lines["fast"].single_p99_us) == (2.0, 9.0)
    assert (lines["fast"].nodes, lines["fast"].matches) == (1.0, 0.5)
    assert lines["fast"].bytes_per_subscription == 40 and lines["fast"].stored_per_subscription == 60
    against = {line.method: line.ratio for line in figures(result, "slow")}
    assert against == pytest.approx({"fast": 4.0, "middle": 2.0, "slow": 1.0})
    with pytest.raises(InvalidInput, match="baseline"):
        figures(result, "absent")


def test_methods_are_compared_on_the_messages_that_both_had():
    """The slow one had two messages, cheap ones by chance: over all ten, the fast one looks only twice as fast."""
    result = toy_result({"fast": [5e-5], "slow": []})
    fast, slow = result.runs[0]["groups"]["short-point"]
    fast["rounds_cpu_s"]["2"] = [1e-6]
    slow |= {"messages": 2, "rounds_cpu_s": {"2": [2e-5]}}
    lines = figures(result)
    assert [line.batch_us for line in lines] == pytest.approx([5.0, 10.0])
    assert [line.ratio for line in lines] == pytest.approx([20.0, 0.05])


def test_a_slow_method_gets_fewer_messages_and_the_others_are_timed_on_those_too():
    class Slow(Brute):
        name = "slow"

        def match(self, messages):
            for _ in range(20):
                super().match(messages)
            return super().match(messages)

    settings = Settings(rounds=2, budget_s=0.02, singles=0, updates=0)
    workload = TOY.but(messages=40, groups=["short-point"])
    try:
        slow, fast = run_case(["slow", "keyword-first"], workload, settings)["groups"]["short-point"]
    finally:
        del REGISTRY["match", "slow"]
    assert 1 <= slow["messages"] < fast["messages"] <= 40
    assert list(slow["rounds_cpu_s"]) == [str(slow["messages"])]
    assert list(fast["rounds_cpu_s"]) == [str(slow["messages"]), str(fast["messages"])]
    assert all(len(rounds) == 2 for rounds in fast["rounds_cpu_s"].values())


def test_reports_say_where_when_and_what():
    text = markdown_report(toy_result({"fast": [1e-5], "slow": [8e-5]}), "slow")
    assert "commit abc" in text and "'slow'" in text
    assert "| A, 100 subscriptions, tokens 2 | short-point | fast | 10 | 1.00 | 8× | 2.00 | 9.00 |" in text
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(screen_report(toy_result({"keyword-first": [1e-5]})))
    shown = console.export_text()
    assert "keyword-first" in shown and "…" not in shown


def test_numbers_and_labels_are_short():
    assert [format_number(value) for value in (None, 0, 0.01234, 0.5, 12.34, 1234.5)] == [
        "-",
        "0",
        "0.0123",
        "0.50",
        "12.3",
        "1,234",
    ]
    assert [format_value(value) for value in ([1e-4, 1e-2], [3, 3], 1_000, "A", True)] == [
        "0.0001–0.01",
        "3",
        "1,000",
        "A",
        "True",
    ]


def test_a_picture_without_matplotlib_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(NoMatplotlib, match=r"nearcast\[pictures\]"):
        save_picture(toy_result({"fast": [1e-5]}), tmp_path / "picture.png")


def test_a_picture_of_unknown_ending_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match=r"\.png"):
        save_picture(toy_result({"fast": [1e-5]}), tmp_path / "picture.gif")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "nearcast-bench", "version": 99}', "\x00"])
def test_a_file_that_is_no_result_is_refused(text, tmp_path):
    path = tmp_path / "result.json"
    path.write_text(text)
    with pytest.raises(InvalidInput):
        load_result(path)
    with pytest.raises(InvalidInput):
        load_result(tmp_path / "absent.json")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ({"colour": 1}, "colour"),
        ({"vary": {"subscriptions": 3}}, "list"),
        ({"vary": {"subscriptions": []}}, "list"),
        ({"vary": {"seed": [1], "topics": [1], "zipf": [1]}}, "at most 2"),
        ({"vary": {"colour": [1]}}, "colour"),
        ({"vary": {"subscriptions": [-1]}}, "subscriptions"),
        ({"workload": {"base": "X"}}, "X"),
        ({"workload": 3}, "table"),
        ({"methods": "brute"}, "list of names"),
        ({"methods": ["no-such"]}, "no-such"),
        ({"methods": ["pyramid colour=1"]}, "has no option 'colour'"),
        ({"run": {"threads": [0]}}, "threads"),
        ({"run": {"threads": [2, 2]}}, "threads"),
        ({"run": {"threads": 2}}, "threads"),
        ({"run": {"threads": [True]}}, "threads"),
        ({"run": {"colour": 1}}, "colour"),
        ({"run": {"rounds": 0}}, "rounds"),
        ({"also": {}}, "list of tables"),
        ({"also": [{"colour": 1}]}, "colour"),
        ({"also": [{"vary": {"zipf": [1]}}]}, "varies what the sweep varies"),
        ({"run": {"engine": -1}}, "engine"),
        ({"run": {"budget_s": 0}}, "budget"),
    ],
)
def test_a_sweep_that_cannot_run_is_refused_before_it_starts(data, reason):
    with pytest.raises(NearcastError, match=reason):
        sweep_of({"name": "mine"} | data)


def test_sweeps_come_by_name_or_from_a_file(tmp_path):
    assert {"quick", "sizes", "boxes", "groups", "twenty"} <= {sweep.name for sweep in shipped_sweeps()}
    assert all(sweep.about for sweep in shipped_sweeps())
    path = tmp_path / "mine.toml"
    path.write_text('[workload]\nbase = "B"\n[vary]\nsubscriptions = [10, 20]\nzipf = [1.0]\n')
    mine = find_sweep(path)
    assert mine.name == "mine" and [case.workload.subscriptions for case in mine.cases()] == [10, 20]
    assert mine.cases()[0].varied == {"subscriptions": 10, "zipf": 1.0} and mine.cases()[0].workload.name == "B"
    with pytest.raises(InvalidInput, match="quick"):
        find_sweep("absent")


def test_readings_are_summed_up_rightly():
    assert median([3, 1, 2]) == 2 and median([]) is None
    assert percentile(list(range(1, 101)), 0.99) == 99 and percentile([5], 0.99) == 5 and percentile([], 0.5) is None
    assert messages_within(1.0, 10, 0.001, 1_000) == 63
    assert messages_within(1.0, 10, 5.0, 1_000) == 1
    assert messages_within(1.0, 10, 0.0, 1_000) == 1_000
    result, took = timed(sum, range(1_000))
    assert result == 499_500 and took.cpu_s >= 0 and took.wall_s >= 0

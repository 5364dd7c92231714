"""The experiments of papers: what files say, which runs they need, what is read off them, and the command."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from nearcast.bench.papers.page import BEGIN, END
from nearcast.bench.papers.paper import find_paper, paper_of
from nearcast.bench.papers.result import points_of, run_paper
from nearcast.bench.papers.schedule import schedule_runs
from nearcast.bench.toml_files import read_toml, shipped_names
from nearcast.cli.main import app
from nearcast.errors import InvalidInput

TINY = """
title = "A tiny paper"
about = "Made up."
[run]
rounds = 1
budget_s = 0.05
singles = 0
updates = 0
[data.words]
subscriptions = 120
messages = 4
vocabulary = 100
topics = 3
words_per_topic = 10
clusters = 3
box_share = [0.05, 0.5]
short = [2, 6]
long = [10, 20]
[data.plain]
subscriptions = 100
messages = 4
vocabulary = 50
zipf = 0.0
topic_share = 0.0
box_share = [0.05, 0.5]
[[figures]]
id = "1"
title = "time by tokens"
place = "§7"
data = "words"
tokens = { short = [2, 5], long = [12] }
methods = ["keyword-first", "spatial-first", "no-such-tree"]
[[figures.claims]]
says = "Keywords first wins."
place = "§7.1"
order = ["keyword-first", "spatial-first"]
why = "It does not."
[[figures.claims]]
says = "Five tokens:"
values = { "keyword-first" = 4, "spatial-first" = 8, "no-such-tree" = 9 }
unit = "ms"
panels = ["short-range"]
at = 5
[[figures]]
id = "table-2"
title = "sizes"
data = ["words", "plain"]
groups = ["short-point"]
measure = "size"
methods = ["keyword-first", "pyramid"]
[[figures]]
id = "3"
title = "growth"
data = "words"
groups = ["short-point"]
methods = ["pyramid"]
vary = { subscriptions = [60, 120] }
[[figures.claims]]
says = "It grows slowly."
trend = "sublinear"
method = "pyramid"
[[figures]]
id = "4"
title = "updates"
data = "words"
groups = ["short-point", "long-range"]
measure = "throughput"
methods = ["keyword-first", "brute"]
run = { mixed = 30 }
[[figures.claims]]
says = "Short points:"
method = "keyword-first"
values = { "short-point" = [600, 840], "long-range" = [60, 120] }
[[figures]]
id = "5"
title = "ranking"
data = "words"
groups = ["long-range"]
workload = { kind = "rank", threshold = [0.6, 0.6] }
vary = { alpha = [[0.1, 0.1], [0.5, 0.5], [0.9, 0.9]] }
methods = ["brute", "keyword-first"]
[[figures.claims]]
says = "The middle is slow."
trend = "hump"
method = "brute"
[[figures]]
id = "answers"
title = "answers"
data = "words"
measure = "matches"
methods = ["pyramid"]
[[figures.claims]]
says = "Nobody checks this one."
"""


@pytest.fixture
def tiny_file(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path


@pytest.fixture
def tiny(tiny_file):
    return find_paper(tiny_file)


@pytest.fixture
def nearcast():
    def run(*arguments):
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return run


def test_figures_over_the_same_rows_share_a_run(tiny):
    schedule = schedule_runs(tiny, tiny.figures, 1.0)
    # words; plain; 60 and 120 subscriptions; words with updates; three alphas
    assert len(schedule.runs) == 8
    first = schedule.runs[0]
    assert first.methods == ["keyword-first", "spatial-first", "pyramid"]
    assert [schedule.runs[part.run].methods for part in schedule.parts["3"]] == [["pyramid"], ["pyramid"]]
    assert set(first.workload.groups) >= {"short-2-point", "long-12-range", "short-point", "long-range"}
    assert {part.run for name in ("1", "answers") for part in schedule.parts[name]} == {0}
    assert schedule.missing["1"] == {"no-such-tree": "there is no such method"}
    assert schedule.missing["5"] == {"keyword-first": "it has no kind rank"}
    assert [part.value for part in schedule.parts["5"]] == [[0.1, 0.1], [0.5, 0.5], [0.9, 0.9]]
    scaled = schedule_runs(tiny, tiny.chosen("3"), 0.5)
    assert [part.value for part in scaled.parts["3"]] == [30, 60]


def test_every_figure_gets_its_points(tiny):
    schedule = schedule_runs(tiny, tiny.figures, 1.0)
    steps = []
    result = run_paper(tiny, schedule, 1.0, steps.append)
    assert len(steps) == schedule.steps
    points = {figure.id: points_of(figure, result.parts[figure.id], result.runs) for figure in tiny.figures}
    assert {(point.panel, point.x) for point in points["1"]} == {
        *((f"short-{place}", n) for place in ("point", "range") for n in (2, 5)),
        *((f"long-{place}", 12) for place in ("point", "range")),
    }
    assert [(point.x, point.method) for point in points["table-2"]] == [
        (data, method) for data in ("words", "plain") for method in ("keyword-first", "pyramid")
    ]
    assert all(point.panel == "" and point.value > 1 for point in points["table-2"])
    assert [point.x for point in points["3"]] == [60, 120]
    assert {point.method for point in points["4"]} == {"keyword-first"}, "brute cannot take part in updates"
    assert {point.x for point in points["4"]} == {"short-point", "long-range"}
    assert all(point.value > 0 for point in points["4"])
    assert [point.label for point in points["5"]] == ["0.1", "0.5", "0.9"]
    matches = {point.x: point.value for point in points["answers"]}
    assert matches["long-range"] > matches["short-point"]


def test_the_command_writes_result_page_and_pictures_and_makes_them_anew(nearcast, tiny_file, tmp_path):
    out, mine = tmp_path / "out", tmp_path / "docs" / "mine.md"
    mine.parent.mkdir()
    mine.write_text(f"# Mine\n\nBefore.\n{BEGIN}\nwhat was there\n{END}\nAfter.\n")
    ran = nearcast("bench", "paper", tiny_file, "--figures", "1,5,table-2", "--out", out, "--page", mine)
    assert ran.exit_code == 0, ran.output
    assert "Keywords first wins." in ran.stdout and "figure 1 without no-such-tree" in ran.stderr
    assert {path.name for path in out.iterdir()} == {
        *("result.json", "page.md", "fig-1.png", "fig-5.png", "table-2.png"),
    }
    page, put = (out / "page.md").read_text(), mine.read_text()
    for text in ("# A tiny paper", "### Fig. 1: time by tokens", "![Fig. 1](fig-1.png)", "*Why: It does not.*"):
        assert text in page
    assert "| short-range, tokens | 2 | 5 |" in page and "`spatial-first` 8.00 (2×)" in page
    assert "Left out: `no-such-tree` (there is no such method)." in page
    assert put.startswith("# Mine\n\nBefore.\n") and put.endswith("\nAfter.\n") and "what was there" not in put
    assert "](../out/fig-1.png)" in put
    (out / "page.md").unlink()
    again = nearcast("bench", "paper", tiny_file, "--from", out / "result.json", "--out", out, "--page", mine)
    assert again.exit_code == 0, again.output
    assert again.stdout == ran.stdout
    assert (out / "page.md").read_text() == page and mine.read_text() == put


def test_json_holds_raw_results_and_verdicts(nearcast, tiny_file):
    document = json.loads(nearcast("bench", "paper", tiny_file, "--figures", "1", "--json").stdout)
    assert document["format"] == "nearcast-bench-paper" and len(document["runs"]) == 1
    first, second = document["claims"]
    assert len(first["panels"]) == 4 and first["panels"][0]["holds"].split(",")[0] in ("yes", "level", "no")
    assert [panel["panel"] for panel in second["panels"]] == ["short-range"]


def test_every_shipped_paper_can_be_read_and_planned():
    assert "rt-tree" in shipped_names("papers")
    for name in shipped_names("papers"):
        paper = find_paper(name)
        schedule = schedule_runs(paper, paper.figures, 0.01)
        assert schedule.runs and set(schedule.parts) == {figure.id for figure in paper.figures}
    ids = {figure.id for figure in find_paper("rt-tree").figures}
    assert ids >= {"table-1", *map(str, range(7, 15))}


def test_a_shipped_paper_runs_at_a_tiny_scale():
    paper = find_paper("rt-tree")
    schedule = schedule_runs(paper, paper.chosen("9"), 0.0005)
    result = run_paper(paper, schedule, 0.0005)
    figure = result.figures(paper)[0]
    points = points_of(figure, result.parts["9"], result.runs)
    assert {point.panel for point in points} == {"short-point", "short-range", "long-point", "long-range"}
    assert {point.x for point in points if point.panel == "long-range"} == {100, 400, 700, 1000}


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('title = "A tiny paper"', 'titel = "x"', "titel"),
        ('id = "table-2"', 'id = "1"', "id of its own"),
        ('data = ["words", "plain"]', 'data = ["worte"]', "worte"),
        ('measure = "size"', 'measure = "weight"', "weight"),
        ('methods = ["keyword-first", "pyramid"]', "methods = [1]", "methods"),
        ('methods = ["keyword-first", "pyramid"]', 'methods = ["pyramid crowded"]', "crowded"),
        ("tokens = { short = [2, 5], long = [12] }", "tokens = { tall = [2] }", "tall"),
        ("tokens = { short = [2, 5], long = [12] }", "tokens = { short = 2 }", "whole numbers"),
        ("vary = { subscriptions = [60, 120] }", "vary = { subscriptions = [60], zipf = [1] }", "more than one"),
        ("vary = { subscriptions = [60, 120] }", "vary = { subs = [60] }", "subs"),
        ("vary = { subscriptions = [60, 120] }", "vary = { subscriptions = [] }", "list"),
        ("run = { mixed = 30 }", "run = { mixt = 30 }", "mixt"),
        ("run = { mixed = 30 }", "run = 30", "run"),
        ('trend = "sublinear"', 'trend = "up"', "'up'"),
        ('trend = "sublinear"\nmethod = "pyramid"', 'trend = "falls"', "none of its methods"),
        ('order = ["keyword-first", "spatial-first"]', 'order = ["brute"]', "brute"),
        ('order = ["keyword-first", "spatial-first"]', 'trend = "falls"\nvalues = { "keyword-first" = 1 }', "methods"),
        ('panels = ["short-range"]', 'panels = ["tall-range"]', "tall-range"),
        ("[600, 840]", "[0, 840]", "above 0"),
        ('says = "Keywords first wins."', 'say = "x"', "say"),
    ],
)
def test_a_faulty_file_is_refused_by_what_is_wrong(old, new, named, tmp_path):
    assert TINY.count(old) >= 1
    path = tmp_path / "faulty.toml"
    path.write_text(TINY.replace(old, new))
    with pytest.raises(InvalidInput, match=named):
        find_paper(path)


def test_a_paper_needs_figures_and_a_figure_what_it_is_made_of(tiny_file):
    content = {"name": "x"} | read_toml(tiny_file)
    for figures in ([], "1", [3], [content["figures"][0] | {"methods": []}], [{"id": "1"}]):
        with pytest.raises(InvalidInput):
            paper_of(content | {"figures": figures})


@pytest.mark.parametrize(
    "arguments",
    [
        ["no-such"],
        ["absent.toml"],
        ["rt-tree", "--figures", "99"],
        ["rt-tree", "--figures", ","],
        ["rt-tree", "--scale", "0"],
        ["rt-tree", "--page", "page.md"],
        ["rt-tree", "--from", "absent.json"],
        ["rt-tree", "--from", "other.json"],
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(nearcast, arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.json").write_text("{}")
    failed = nearcast("bench", "paper", *arguments)
    assert failed.exit_code == 2, failed.output
    assert failed.stderr.startswith("error: ") and failed.stderr.count("\n") == 1


def test_a_page_without_marks_is_left_as_it_is(nearcast, tiny_file, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Mine\n")
    failed = nearcast("bench", "paper", tiny_file, "--figures", "answers", "--out", tmp_path / "out", "--page", page)
    assert failed.exit_code == 2 and BEGIN in failed.stderr
    assert page.read_text() == "# Mine\n" and (tmp_path / "out" / "result.json").exists()

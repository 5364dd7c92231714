"""The experiments of the AP-tree paper: every figure is there, and what the paper says of it is checked."""

from __future__ import annotations

import pytest

from nearcast.bench.papers.claims import verdicts
from nearcast.bench.papers.paper import find_paper, paper_of
from nearcast.bench.papers.result import points_of, run_paper
from nearcast.bench.papers.schedule import schedule_runs
from nearcast.errors import InvalidInput

SCALE = 0.002
PAPER = find_paper("ap-tree")


def measured(ids):
    figures = PAPER.chosen(ids)
    result = run_paper(PAPER, schedule_runs(PAPER, figures, SCALE), SCALE)
    return {figure.id: (figure, points_of(figure, result.parts[figure.id], result.runs)) for figure in figures}


def test_every_figure_of_the_standing_half_is_there_and_figures_share_runs():
    plan = schedule_runs(PAPER, PAPER.figures, SCALE)
    numbers = {figure.id.split("-")[0] for figure in PAPER.figures}
    assert numbers == {str(number) for number in range(10, 19)}
    tuned, parts = plan.parts["10-f"], plan.parts["17-time"]
    assert [part.run for part in tuned] == [part.run for part in plan.parts["10-size"]], "one run for each data set"
    assert [part.run for part in parts] == [part.run for part in plan.parts["17-insert"]]
    assert len({part.run for part in parts}) == 5


def test_an_option_along_the_axis_is_a_variant_at_each_place():
    found = measured("10-f,10-size,16-time,16-insert")
    figure, points = found["10-f"]
    assert list(figure.variants)[:2] == ["ap-tree f=50", "ap-tree f=100"] and figure.along == "f"
    assert {point.method for point in points} == {"ap-tree"}
    assert [point.x for point in points if point.panel == "gn, short-point"] == [50, 100, 200, 400, 800]
    assert [len(verdicts(figure, claim, points)) for claim in figure.claims] == [4]
    figure, points = found["10-size"]
    assert [point.panel for point in points[:1]] == ["tweets"] and len(points) == 4 * 7
    assert len(verdicts(figure, figure.claims[0], points)) == 4
    for name in ("16-time", "16-insert"):
        figure, points = found[name]
        assert len(points) == 5 and all(point.value > 0 for point in points)
        assert len(verdicts(figure, figure.claims[0], points)) == 1


def test_build_times_insertions_and_expressions_are_measured():
    found = measured("11-build,17-insert,18-tokens")
    figure, points = found["11-build"]
    assert {point.x for point in points} == {"tweets", "gn", "cars", "ais"} and {point.panel for point in points} == {
        ""
    }
    assert len(verdicts(figure, figure.claims[0], points)) == 1
    figure, points = found["17-insert"]
    assert {point.method for point in points} >= {"ap-tree", "ap-tree rebuild=false", "rq-tree"}
    assert sorted({point.x for point in points}) == [0.1, 0.3, 0.5, 0.7, 0.9]
    figure, points = found["18-tokens"]
    assert {point.method for point in points} >= {"brute", "ap-tree", "rt++-tree", "lfilter", "pyramid"}
    assert [point.label for point in points if point.method == "brute"] == ["3", "4", "5", "6", "7"]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"options": {"f": 3}}, "values of the option 'f'"),
        ({"options": {"f": [3]}, "vary": {"seed": [1, 2]}}, "varies more than one thing"),
        ({"options": {"f": [3], "theta_p": [4]}}, "varies more than one thing"),
        ({"measure": "speed"}, "measure"),
    ],
)
def test_options_that_are_no_axis_are_refused(more, says):
    figure = {"id": "1", "title": "t", "data": "A", "methods": ["ap-tree"]} | more
    with pytest.raises(InvalidInput, match=says):
        paper_of({"name": "p", "data": {"A": {"base": "A"}}, "figures": [figure]})

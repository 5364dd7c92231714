"""The experiments of the LFilter paper: every figure is there, and what the paper says of it is checked."""

from __future__ import annotations

from nearcast.bench.papers.claims import verdicts
from nearcast.bench.papers.paper import find_paper
from nearcast.bench.papers.result import points_of, run_paper
from nearcast.bench.papers.schedule import schedule_runs

SCALE = 0.0005
PAPER = find_paper("lfilter")


def test_every_figure_of_the_paper_is_there_and_each_run_serves_several():
    plan = schedule_runs(PAPER, PAPER.figures, SCALE)
    assert {figure.id for figure in PAPER.figures} >= {"table-1", "7", "8", "9", "10", "11"}
    assert set(plan.missing["7"]) == set(), "all three ways to probe can run"
    assert len(plan.runs) == 2 + 5, "one for each data set, and one for each size of Fig. 11"


def test_what_the_paper_says_is_checked_at_a_tiny_scale():
    figures = PAPER.chosen("table-1,7,8,8-lists")
    plan = schedule_runs(PAPER, figures, SCALE)
    result = run_paper(PAPER, plan, SCALE)
    judged = {}
    for figure in result.figures(PAPER):
        points = points_of(figure, result.parts[figure.id], result.runs)
        judged[figure.id] = [len(verdicts(figure, claim, points)) for claim in figure.claims]
    assert judged["7"] == [4, 4, 1] and judged["8-lists"] == [1]
    assert judged["8"][2:4] == [2, 2] and judged["table-1"] == [1, 0]

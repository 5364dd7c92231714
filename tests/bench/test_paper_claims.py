"""What a paper says, checked by points made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nearcast.bench.papers.claims import values_text, verdicts
from nearcast.bench.papers.page import format_point, summarise_verdicts
from nearcast.bench.papers.paper import Claim, Figure
from nearcast.bench.papers.result import Point, mean_factor, points_of
from nearcast.bench.papers.schedule import Part

FIGURE = Figure("1", "by hand", measure="size", data=("d",), methods=("a", "b", "c"))


def points(values, panel=""):
    """By method: values along the axis 1, 2, 4, 8 ..."""
    return [
        Point(panel, 2**k, method, float(value))
        for method, line in values.items()
        for k, value in enumerate(line)
        if value is not None
    ]


def record(method, messages, rounds, candidates=0):
    """As the runner keeps it; `rounds` are seconds by number of messages."""
    taken = {str(n): [took] for n, took in rounds.items()}
    return {"method": method, "messages": messages, "rounds_cpu_s": taken, "work": {"candidates": candidates}}


def test_an_order_holds_where_each_costs_no_less_than_the_one_before():
    claim = Claim("a, b, c", order=("a", "b", "c"))
    (held,) = verdicts(FIGURE, claim, points({"a": [1, 2], "b": [2, 4], "c": [2, 6]}))
    assert held.holds == "yes" and held.seen == "`a` → `b` 2× → `c` 1.22×"
    (failed,) = verdicts(FIGURE, claim, points({"a": [3, 3], "b": [1, 1], "c": [2, 2]}))
    assert failed.holds == "no, by 3×"
    for close in (0.97, 1.0, 1.03):
        (level,) = verdicts(FIGURE, claim, points({"a": [1], "b": [close], "c": [2]}))
        assert level.holds == "level", "what is within 5 % is neither for the paper nor against it"


def test_an_order_skips_who_is_missing_and_says_nothing_without_a_pair():
    claim = Claim("a, b, c", order=("a", "b", "c"))
    (held,) = verdicts(FIGURE, claim, points({"a": [1], "c": [5]}))
    assert held.seen == "`a` → `c` 5×"
    assert verdicts(FIGURE, claim, points({"b": [1]})) == []
    assert verdicts(FIGURE, claim, []) == []
    assert summarise_verdicts(FIGURE, claim, []) == "not measured"
    assert summarise_verdicts(FIGURE, Claim("just so"), []) == "-"


def test_more_is_better_in_throughput():
    figure = Figure("1", "by hand", measure="throughput", data=("d",), methods=("a", "b"))
    claim = Claim("a, b", order=("a", "b"))
    assert verdicts(figure, claim, points({"a": [100], "b": [50]}))[0].holds == "yes"
    assert verdicts(figure, claim, points({"a": [50], "b": [100]}))[0].holds == "no, by 2×"
    values = Claim("both", values={"a": (80, 120), "b": 49}, unit="/s")
    assert verdicts(figure, values, points({"a": [10], "b": [5]}))[0].holds == "yes"
    assert values_text(figure, values) == "`a` 98.0, `b` 49.0 (2×) /s"


def test_values_are_over_the_messages_that_all_methods_of_the_figure_had():
    figure = Figure("1", "by hand", data=("d",), methods=("a", "b"), groups=("short-point",))
    slow = record("b", 10, {10: 0.02}, candidates=500)
    fast = record("a", 1_000, {5: 9.0, 10: 0.01, 1_000: 10.0}, candidates=1_000)  # its later messages are dear
    other = record("c", 5, {5: 1.0})  # of another figure
    runs = [{"groups": {"short-point": [fast, slow, other]}}]
    parts = [Part(0, "d", None)]
    found = points_of(figure, parts, runs)
    assert [(point.method, point.value, point.messages) for point in found] == [("a", 1_000, 10), ("b", 2_000, 10)]
    (held,) = verdicts(figure, Claim("a, b", order=("a", "b")), found)
    assert held.holds == "yes" and held.seen.endswith("2×")
    counted = points_of(replace(figure, measure="candidates"), parts, runs)
    assert [(point.method, point.value) for point in counted] == [("b", 50)], "a's were counted over other messages"


def test_a_trend_over_different_messages_says_so():
    line = [Point("", x, "a", value, messages) for x, value, messages in ((1, 1.0, 8), (2, 3.0, 4))]
    (judged,) = verdicts(FIGURE, Claim("up", trend="rises", method="a"), line)
    assert judged.seen.endswith("(over different messages: 4 to 8)")
    (same,) = verdicts(FIGURE, Claim("up", trend="rises", method="a"), [line[0], line[1]._replace(messages=8)])
    assert "different" not in same.seen


def test_a_value_of_0_is_compared_with_nothing():
    found = points({"a": [0, 0], "b": [1, 1]})
    assert verdicts(FIGURE, Claim("a, b", order=("a", "b")), found) == []
    assert verdicts(FIGURE, Claim("a, b", values={"a": 1, "b": 2}), found) == []
    assert verdicts(FIGURE, Claim("up", trend="rises", method="a"), found) == []


def test_a_claim_looks_only_at_its_panels_and_its_place():
    found = [*points({"a": [1, 9], "b": [2, 3]}, "left"), *points({"a": [5, 5], "b": [1, 1]}, "right")]
    claim = Claim("a, b", order=("a", "b"))
    assert [verdict.panel for verdict in verdicts(FIGURE, claim, found)] == ["left", "right"]
    assert summarise_verdicts(FIGURE, claim, found) == "no in 2 of 2 groups"
    left = Claim("a, b", order=("a", "b"), panels=("left",), at=1)
    assert [verdict.holds for verdict in verdicts(FIGURE, left, found)] == ["yes"]
    assert summarise_verdicts(FIGURE, left, found) == "yes"


def test_the_summary_never_counts_level_as_holding():
    claim = Claim("a, b", order=("a", "b"))
    level, held = points({"a": [1], "b": [1.01]}, "level"), points({"a": [1], "b": [2]}, "held")
    failed, again = points({"a": [2], "b": [1]}, "failed"), points({"a": [1], "b": [0.99]}, "again")
    assert summarise_verdicts(FIGURE, claim, [*level, *again]) == "level"
    assert summarise_verdicts(FIGURE, claim, [*level, *held]) == "yes in 1, level in 1 of 2 groups"
    assert summarise_verdicts(FIGURE, claim, [*level, *held, *failed]) == "yes in 1, level in 1, no in 1 of 3 groups"


def test_values_are_checked_by_their_order_and_ties_are_not():
    claim = Claim("three", values={"c": 9, "a": 4, "b": 9}, unit="ms", at=1)
    for values, holds in (({"a": [1], "b": [3], "c": [2]}, "yes"), ({"a": [4], "b": [2], "c": [8]}, "no, by 2×")):
        assert verdicts(FIGURE, claim, points(values))[0].holds == holds
    assert values_text(FIGURE, claim) == "`a` 4.00, `c` 9.00 (2.25×), `b` 9.00 (2.25×) ms"


def test_one_methods_panels_are_compared_by_the_papers_order():
    found = [*points({"a": [8, 8]}, "short"), *points({"a": [1, 4]}, "long")]
    claim = Claim("short and long", method="a", values={"short": (600, 840), "long": (60, 120)})
    (held,) = verdicts(FIGURE, claim, found)
    assert held.holds == "yes" and held.seen == "short 8.00, long 2.00" and held.factor == pytest.approx(4)
    assert verdicts(FIGURE, claim, points({"b": [1]}, "short")) == []
    assert values_text(FIGURE, claim) == "short 600–840, long 60–120"


@pytest.mark.parametrize(
    ("trend", "line", "holds"),
    [
        ("falls", [4, 9, 2], "yes"),
        ("falls", [2, 1, 4], "no, by 2×"),
        ("rises", [1, 1, 3], "yes"),
        ("rises", [3, 9, 1], "no, by 3×"),
        ("sublinear", [1, 1.5, 3], "yes"),
        ("sublinear", [1, 4, 16], "no, by 4×"),
        ("hump", [1, 3, 2], "yes"),
        ("hump", [4, 2, 1], "no, by 2×"),
        ("dip", [2, 1, 3], "yes"),
        ("dip", [2, 4, 3], "no, by 2×"),
    ],
)
def test_trends(trend, line, holds):
    claim = Claim("so it goes", trend=trend, method="a")
    (judged,) = verdicts(FIGURE, claim, points({"a": line}))
    assert judged.holds == holds


def test_a_trend_needs_enough_points():
    assert verdicts(FIGURE, Claim("up", trend="rises", method="a"), points({"a": [1]})) == []
    assert verdicts(FIGURE, Claim("hump", trend="hump", method="a"), points({"a": [1, 2]})) == []


def test_the_mean_of_factors_is_geometric():
    assert mean_factor([2, 0.5]) == pytest.approx(1) and mean_factor([]) is None


# -- the spread of rounds


def rounded(method, by_round, x=1, panel=""):
    return Point(panel, x, method, sum(by_round) / len(by_round), 10, tuple(by_round))


def test_an_order_holds_only_if_every_round_shows_it():
    claim = Claim("a, b", order=("a", "b"))
    (held,) = verdicts(FIGURE, claim, [rounded("a", [1, 2, 3]), rounded("b", [2, 3, 4])])
    assert held.holds == "yes", "rounds are compared one by one: other messages cost more for both"
    assert held.seen == "`a` → `b` 1.5× (1.33–2)"
    (level,) = verdicts(FIGURE, claim, [rounded("a", [1, 1, 1]), rounded("b", [3, 3, 0.9])])
    assert level.factor > 2 and level.holds == "level"
    (failed,) = verdicts(FIGURE, claim, [rounded("a", [3, 4]), rounded("b", [1, 2])])
    assert failed.holds == "no, by 2.33×"
    (between,) = verdicts(FIGURE, claim, [rounded("a", [3, 1]), rounded("b", [1, 1.1])])
    assert between.factor < 1 and between.holds == "level"


def test_a_factor_that_the_paper_claims_must_be_reached_in_every_round():
    points = [rounded("a", [1, 1]), rounded("b", [3.5, 4.5])]
    assert verdicts(FIGURE, Claim("a, b", order=("a", "b"), at_least=3.0), points)[0].holds == "yes"
    assert verdicts(FIGURE, Claim("a, b", order=("a", "b"), at_least=4.2), points)[0].holds == "level"
    assert verdicts(FIGURE, Claim("a, b", order=("a", "b"), at_least=8.0), points)[0].holds == "no, by 2×"


def test_trends_hold_only_beyond_the_spread_of_both_ends():
    rises = Claim("up", trend="rises", method="a")
    apart = [rounded("a", [1, 1.2], 1), rounded("a", [1.5, 2], 2)]
    assert verdicts(FIGURE, rises, apart)[0].holds == "yes"
    overlapping = [rounded("a", [1, 1.6], 1), rounded("a", [1.5, 2], 2)]
    assert verdicts(FIGURE, rises, overlapping)[0].holds == "level"
    assert verdicts(FIGURE, Claim("down", trend="falls", method="a"), apart)[0].holds == "no, by 1.59×"
    slow = Claim("slowly", trend="sublinear", method="a")
    assert verdicts(FIGURE, slow, apart)[0].holds == "level", "1 could have become 2"
    wide = [rounded("a", [1, 1.2], 1), rounded("a", [1.5, 2], 8)]
    assert verdicts(FIGURE, slow, wide)[0].holds == "yes"
    dip = Claim("down and up", trend="dip", method="a")
    line = [rounded("a", [3, 4], 1), rounded("a", [1, 2], 2), rounded("a", [3, 3], 3)]
    assert verdicts(FIGURE, dip, line)[0].holds == "yes"
    line[2] = rounded("a", [1.9, 3], 3)
    assert verdicts(FIGURE, dip, line)[0].holds == "level"


def test_a_claim_may_be_about_each_place_or_about_the_last():
    points = [rounded("a", [1, 1], 1), rounded("b", [2, 2], 1), rounded("a", [2, 2], 2), rounded("b", [1, 1], 2)]
    found = verdicts(FIGURE, Claim("a, b", order=("a", "b"), each=True), points)
    assert [(verdict.panel, verdict.holds) for verdict in found] == [("1", "yes"), ("2", "no, by 2×")]
    (last,) = verdicts(FIGURE, Claim("a, b", order=("a", "b"), at="last"), points)
    assert last.holds == "no, by 2×"


def test_a_point_shows_its_least_and_greatest_round():
    assert format_point(rounded("a", [10, 30])) == "20.0 (10.0–30.0)"
    assert format_point(rounded("a", [10, 10])) == "10.0" and format_point(Point("", 1, "a", 3.0)) == "3.00"

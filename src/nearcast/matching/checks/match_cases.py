"""Checks of kind `match`: named degenerate cases. Random input misses a shared box or a shared border."""

from __future__ import annotations

from nearcast.geo.circle import CircleRegion
from nearcast.matching.checks.cases import (
    EVERYWHERE,
    Message,
    Subscription,
    answers,
    built,
    expect,
    expect_as_brute,
    insert,
    point,
    remove,
)
from nearcast.matching.checks.random_cases import random_messages, random_subscriptions

_CENTRE = point(0.5, 0.5)
_BOX = (0.25, 0.25, 0.75, 0.75)


def check_equal_boxes_are_different_subscriptions(method: str) -> None:
    live = built(method, [Subscription(i, [i % 3], _BOX) for i in range(9)])
    expect(live, Message([0, 1, 2], _CENTRE), range(9), "nine subscriptions share one box")


def check_identical_subscriptions_are_all_found(method: str) -> None:
    live = built(method, [Subscription(i, [1, 2], _BOX) for i in range(700)])
    expect(live, Message([1, 2], _CENTRE), range(700), "700 identical subscriptions")
    expect(live, Message([1], _CENTRE), [], "one of the two terms is missing")


def check_points_on_the_border_are_inside(method: str) -> None:
    live = built(method, [Subscription(1, [0], _BOX)])
    for x in (0.25, 0.5, 0.75):
        for y in (0.25, 0.75):
            expect(live, Message([0], point(x, y)), [1], "a point on a border or corner is inside")
            expect(live, Message([0], point(y, x)), [1], "a point on a border or corner is inside")


def check_points_just_outside_are_outside(method: str) -> None:
    live = built(method, [Subscription(1, [0], _BOX)])
    for off in (1e-16, 1e-12, 1e-6):
        for x, y in ((0.25 - off, 0.5), (0.75 + 2 * off, 0.5), (0.5, 0.25 - off), (0.5, 0.75 + 2 * off)):
            expect(live, Message([0], point(x, y)), [], "a hair outside is outside")


def check_touching_ranges_overlap(method: str) -> None:
    live = built(method, [Subscription(1, [0], _BOX)])
    for box in ((0.75, 0.0, 1.0, 1.0), (0.0, 0.0, 0.25, 0.25), (0.0, 0.75, 1.0, 0.9), (0.75, 0.75, 0.75, 0.75)):
        expect(live, Message([0], box), [1], "touching is overlapping")


def check_crossing_boxes_overlap(method: str) -> None:
    live = built(method, [Subscription(1, [0], (0.4, 0.0, 0.6, 1.0))])
    expect(live, Message([0], (0.0, 0.4, 1.0, 0.6)), [1], "a cross: no corner of one lies in the other")


def check_zero_size_boxes_match_their_point_alone(method: str) -> None:
    live = built(method, [Subscription(1, [0], _CENTRE), Subscription(2, [0], (0.5, 0.0, 0.5, 1.0))])
    expect(live, Message([0], _CENTRE), [1, 2], "a point subscription at the message's very place")
    expect(live, Message([0], point(0.5, 0.25)), [2], "a line subscription through the message's place")
    expect(live, Message([0], point(0.25, 0.5)), [], "neither point nor line is here")
    expect(live, Message([0], EVERYWHERE), [1, 2], "a range over both")


def check_whole_world_boxes_match_everywhere(method: str) -> None:
    wide = [Subscription(1, [0], EVERYWHERE), Subscription(2, [0], (-1e9, -1e9, 1e9, 1e9))]
    live = built(method, wide + [s._replace(terms=[5]) for s in random_subscriptions(1, 200)])
    for place in (_CENTRE, point(0.0, 0.0), point(1.0, 1.0), EVERYWHERE):
        expect(live, Message([0], place), [1, 2], "whole-world boxes")


def check_places_outside_the_space_work(method: str) -> None:
    live = built(method, [Subscription(1, [0], (-9.0, -9.0, -8.0, -8.0)), Subscription(2, [0], (8.0, 0.1, 9.0, 0.2))])
    expect(live, Message([0], point(-8.5, -8.5)), [1], "left of and below the space")
    expect(live, Message([0], point(8.5, 0.15)), [2], "right of the space")
    expect(live, Message([0], point(-8.5, -7.5)), [], "outside the space and outside the box")


def check_every_token_must_occur(method: str) -> None:
    for n in (1, 2, 3, 4, 5, 6, 12):
        live = built(method, [Subscription(n, list(range(10, 10 + n)), _BOX), Subscription(99, [50], _BOX)])
        terms = set(range(5, 30))
        expect(live, Message(sorted(terms), _CENTRE), [n], f"all {n} tokens occur")
        for missing in range(10, 10 + n):
            rest = sorted(terms - {missing})
            expect(live, Message(rest, _CENTRE), [], f"token {missing - 9} of {n} is missing")


def check_subscriptions_without_tokens_match_by_place_alone(method: str) -> None:
    live = built(method, [Subscription(1, [], _BOX), Subscription(2, [3], _BOX), Subscription(3, [], EVERYWHERE)])
    expect(live, Message([], _CENTRE), [1, 3], "no tokens wanted, none given")
    expect(live, Message([3, 4], _CENTRE), [1, 2, 3], "no tokens wanted, some given")
    expect(live, Message([3], point(0.1, 0.1)), [3], "outside the box")


def check_purely_negative_subscriptions_hold_where_the_token_is_absent(method: str) -> None:
    live = built(method, [Subscription(1, [], _BOX, [7]), Subscription(2, [1], _BOX, [7, 8])])
    expect(live, Message([1], _CENTRE), [1, 2], "no forbidden token")
    expect(live, Message([1, 8], _CENTRE), [1], "one forbidden to the second only")
    expect(live, Message([1, 7], _CENTRE), [], "one forbidden to both")


def check_unknown_tokens_are_ignored(method: str) -> None:
    live = built(method, [Subscription(1, [2], _BOX)])
    expect(live, Message([2, 1000, 2_000_000_000], _CENTRE), [1], "tokens that no subscription has")
    expect(live, Message([1000], _CENTRE), [], "only tokens that no subscription has")
    expect(live, Message([0, 1], _CENTRE), [], "known numbers below a term, held by no subscription")


def check_messages_of_a_thousand_tokens_work(method: str) -> None:
    subscriptions = random_subscriptions(2, 150, vocabulary=1500)
    messages = [Message(list(range(start, 1500, step)), _CENTRE) for start, step in ((0, 1), (1, 2), (500, 1))]
    messages += [message._replace(box=EVERYWHERE) for message in messages]
    expect_as_brute(method, subscriptions, messages)


def check_ranges_over_many_cells_report_a_pair_once(method: str) -> None:
    live = built(method, random_subscriptions(3, 400, vocabulary=5, largest=0.3))
    for box in (EVERYWHERE, (-5.0, -5.0, 5.0, 5.0), (0.1, 0.1, 0.9, 0.9)):
        got = answers(live, [Message(list(range(5)), box)])[0]
        assert len(got) == len(set(got)), f"a pair came twice for range {box}"
    assert len(answers(live, [Message(list(range(5)), (-5.0, -5.0, 5.0, 5.0))])[0]) == 400, "a range over all finds all"


def check_extreme_coordinates_work(method: str) -> None:
    huge = 1.7e308
    boxes = ((-huge, -huge, huge, huge), (huge, huge, huge, huge), (5e-324, 5e-324, 1e-300, 1e-300))
    subscriptions = [Subscription(i, [0], box) for i, box in enumerate(boxes)]
    messages = [Message([0], point(v, v)) for v in (huge, -huge, 0.0, -0.0, 5e-324, 1e-300, 1.1e-300)]
    expect_as_brute(method, subscriptions, messages + [Message([0], (-huge, -huge, huge, huge))])


def check_exact_shapes_decide_after_the_box(method: str) -> None:
    subscriptions = []
    for s in random_subscriptions(11, 120):
        x, y = s.box[:2]
        circle = CircleRegion(x, y, 0.2, planar=True)
        subscriptions.append(Subscription(s.id, s.terms, (x - 0.2, y - 0.2, x + 0.2, y + 0.2), (), circle))
    messages = random_messages(12, 40) + random_messages(13, 20, largest=0.2)
    expect_as_brute(method, subscriptions, messages)


def check_subscriptions_of_many_rows_are_found_once(method: str) -> None:
    subscriptions = [s._replace(id=s.id // 21) for s in sorted(random_subscriptions(14, 300), key=lambda s: s.id)]
    expect_as_brute(method, subscriptions, random_messages(15, 40, largest=0.2))


def check_removing_many_rows_of_one_subscription_removes_them_all(method: str) -> None:
    shared = [Subscription(1, [t], _BOX) for t in range(5)]
    live = built(method, [*shared, Subscription(2, [0], _BOX)])
    remove(live, [1])
    expect(live, Message([0, 1, 2, 3, 4], _CENTRE), [2], "all five rows of 1 are gone")


def check_the_same_id_again_replaces(method: str) -> None:
    live = built(method, [Subscription(1, [0], _BOX), Subscription(2, [0], _BOX)])
    insert(live, [Subscription(1, [3], (0.0, 0.0, 0.1, 0.1))])
    expect(live, Message([0, 3], _CENTRE), [2], "the old terms and box are gone")
    expect(live, Message([0, 3], point(0.05, 0.05)), [1], "the new terms and box hold")
    insert(live, [Subscription(1, [], EVERYWHERE)])
    expect(live, Message([], _CENTRE), [1], "replaced by one without tokens")
    insert(live, [Subscription(1, [0], _BOX)])
    expect(live, Message([], _CENTRE), [], "and back")
    assert len(live) == 2


def check_new_terms_may_arrive_later(method: str) -> None:
    live = built(method, random_subscriptions(10, 100, vocabulary=10))
    insert(live, [Subscription(5000, [77], _BOX), Subscription(5001, [3, 900], _BOX)])
    expect(live, Message([77, 900], _CENTRE), [5000], "a term that the build did not know")

from __future__ import annotations

import numpy as np
import pytest

import nearcast.indexes  # noqa: F401  registers every method
from nearcast.errors import InvalidInput, UnknownMethod
from nearcast.geo.circle import CircleRegion
from nearcast.matching.checks.cases import (
    EVERYWHERE,
    UNIT,
    Message,
    Subscription,
    answers,
    batch_of,
    built,
    expect,
    insert,
    point,
    remove,
    rows_of,
)
from nearcast.matching.subscription_set import SubscriptionSet
from nearcast.model import MAX_TERMS_PER_ROW

CENTRE = point(0.5, 0.5)
BIG = 2**63


def test_an_unknown_method_is_named_with_the_known_ones() -> None:
    with pytest.raises(UnknownMethod, match="no method 'rtree'; there are .*auto, brute"):
        SubscriptionSet("rtree", UNIT)


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(InvalidInput, match="method 'brute' has no option 'fanout'; it takes none"):
        SubscriptionSet("brute", UNIT, {"fanout": 3})


@pytest.mark.parametrize("terms", [[-1], [3, -2_000_000_000]])
def test_negative_terms_are_refused_before_any_change(terms: list[int]) -> None:
    matcher = built("keyword-first", [Subscription(1, [0], EVERYWHERE)])
    with pytest.raises(InvalidInput, match="term that is not within 0"):
        insert(matcher, [Subscription(1, terms, EVERYWHERE)])
    expect(matcher, Message([0], CENTRE), [1], "the refused batch changed something")


@pytest.mark.parametrize("box", [(np.nan, 0, 1, 1), (0, 0, np.inf, 1), (1, 0, 0, 1), (0, 1, 1, 0)])
def test_boxes_that_kernels_cannot_take_are_refused(box: tuple[float, float, float, float]) -> None:
    with pytest.raises(InvalidInput, match="row 2"):
        built("brute", [Subscription(1, [0], EVERYWHERE), Subscription(2, [0], box)])
    with pytest.raises(InvalidInput, match="row 1"):
        answers(built("brute", []), [Message([0], box)])


def test_too_many_terms_in_a_row_are_refused() -> None:
    with pytest.raises(InvalidInput, match="65535 terms at most"):
        built("brute", [Subscription(1, range(MAX_TERMS_PER_ROW + 1), EVERYWHERE)])


def test_an_expired_subscription_misses_later_messages_only() -> None:
    matcher = built("brute", [Subscription(1, [0], EVERYWHERE, expires=1000), Subscription(2, [0], EVERYWHERE)])
    assert answers(matcher, [Message([0], CENTRE, 999), Message([0], CENTRE, 1000), Message([0], CENTRE)]) == [
        [1, 2],
        [2],
        [1, 2],
    ]


def test_a_row_number_used_again_does_not_inherit_anything() -> None:
    circle = CircleRegion(0.5, 0.5, 0.01, planar=True)
    matcher = built("keyword-first", [Subscription(1, [0], EVERYWHERE, [5], circle, 10)])
    remove(matcher, [1])
    insert(matcher, [Subscription(2, [0], EVERYWHERE)])
    expect(matcher, Message([0, 5], point(0.1, 0.1), 99), [2], "an old NOT, shape or expiry is still there")


def test_compaction_keeps_shapes_negatives_expiries_and_chains() -> None:
    circle = CircleRegion(0.5, 0.5, 0.1, planar=True)
    kept = [
        Subscription(1, [0], EVERYWHERE, [5], circle, 10),
        Subscription(2, [0], EVERYWHERE),
        Subscription(2, [1], EVERYWHERE),
    ]
    crowd = [Subscription(10 + i, [0], EVERYWHERE) for i in range(3000)]
    matcher = built("keyword-first", crowd[:1500] + kept + crowd[1500:])
    remove(matcher, [s.id for s in crowd])
    assert matcher.store.high == 3, "not compacted"
    expect(matcher, Message([0, 1], CENTRE, 5), [1, 2], "all hold")
    expect(matcher, Message([0, 5], CENTRE, 5), [2], "NOT was lost")
    expect(matcher, Message([0], CENTRE, 10), [2], "the expiry was lost")
    expect(matcher, Message([0], point(0.9, 0.9), 5), [2], "the shape was lost")


def test_term_frequencies_follow_changes() -> None:
    matcher = built("brute", [Subscription(1, [0, 2], EVERYWHERE), Subscription(2, [2], EVERYWHERE, [4])])
    assert matcher.store.frequencies.tolist() == [1, 0, 2, 0, 0]
    remove(matcher, [1])
    assert matcher.store.frequencies.tolist() == [0, 0, 1, 0, 0]


def test_input_types_do_not_matter() -> None:
    batch, shapes = rows_of([Subscription(1, [0, 1], EVERYWHERE)])
    matcher = SubscriptionSet("keyword-first", UNIT)
    matcher.insert(
        batch._replace(terms=batch.terms.astype(np.int64), owner_ids=batch.owner_ids.astype(np.uint8)),
        shapes,
    )
    messages = batch_of([Message([0, 1], CENTRE)])
    frozen = messages._replace(terms=messages.terms.astype(np.uint16), boxes=messages.boxes.copy())
    frozen.boxes.flags.writeable = False
    assert matcher.match(frozen).ids.tolist() == [1]


@pytest.mark.parametrize("ids", [[5, 6, 7, 8], [5, 6, 8, 9], [-BIG, 1 - BIG], [BIG - 2, BIG - 1], [3, 2, 1, 0]])
def test_ids_given_by_counting_and_any_others_come_back_as_they_were(ids: list[int]) -> None:
    matcher = built("pyramid", [Subscription(number, [0], EVERYWHERE) for number in ids])
    expect(matcher, Message([0], CENTRE), sorted(ids), "as built")
    remove(matcher, ids[1:2])
    insert(matcher, [Subscription(100, [0], EVERYWHERE)])
    expect(matcher, Message([0], CENTRE), sorted([ids[0], *ids[2:], 100]), "a row is used again by another id")
    insert(matcher, [Subscription(ids[1], [0], EVERYWHERE)])
    expect(matcher, Message([0], CENTRE), sorted([*ids, 100]), "an id that comes back has another row")

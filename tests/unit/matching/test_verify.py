"""What follows a method: NOT terms, expiry, exact shapes, and each subscription once."""

from __future__ import annotations

import random

import numpy as np
import pytest
import shapely

import nearcast.indexes  # noqa: F401  registers every method
from nearcast.arrays.jit import kernel
from nearcast.geo.circle import CircleRegion
from nearcast.geo.polygon import PolygonRegion
from nearcast.matching.checks.cases import EVERYWHERE, Message, Subscription, answers, batch_of, built, point, remove
from nearcast.matching.predicate import FLAG_LEAVING
from nearcast.matching.verify import _find_owners, _has_value, _new_lists
from nearcast.model import NEVER


@kernel
def has_value(values, low, high, value):
    return _has_value(values, low, high, value)


@pytest.mark.parametrize("length", [0, 1, 2, 15, 16, 17, 31, 32, 33, 100])
def test_a_value_is_found_only_within_its_part(length: int) -> None:
    values = np.arange(-5, 3 * length + 20, 3, dtype=np.int32)
    for low in (0, 1, 4):
        part = set(values[low : low + length].tolist())
        for value in range(-7, 3 * length + 22):
            assert has_value(values, low, low + length, value) == (value in part)


def drawn_subscriptions(draw: random.Random, n: int) -> list[Subscription]:
    """Boxes, circles and polygons with and without NOT terms and expiry; every fourth subscription has two rows."""
    made = []
    for number in range(n):
        x, y, size = draw.random(), draw.random(), draw.choice((0.1, 0.5))
        ring = [(x - size, y), (x, y - size), (x + size, y), (x, y + size)]
        region = draw.choice((None, CircleRegion(x, y, size, True), PolygonRegion(shapely.Polygon(ring), True)))
        box = EVERYWHERE if region is None else (x - size, y - size, x + size, y + size)
        terms, not_terms = draw.choice(((), (0,))), draw.choice(((), (), (1,), (1, 2, 3)))
        subscription = Subscription(number, terms, box, not_terms, region, draw.choice((NEVER, NEVER, 5)))
        made += [subscription] * (1 + (number % 4 == 0))
    return made


def holds(subscription: Subscription, message: Message) -> bool:
    x, y = message.box[:2]
    if message.time >= subscription.expires or set(subscription.not_terms) & set(message.terms):
        return False
    if not set(subscription.terms) <= set(message.terms):
        return False
    if isinstance(subscription.region, CircleRegion):
        dx, dy = x - subscription.region.x, y - subscription.region.y
        return (dx * dx + dy * dy) ** 0.5 <= subscription.region.radius
    if isinstance(subscription.region, PolygonRegion):
        return bool(subscription.region.geometry.covers(shapely.Point(x, y)))
    return True


@pytest.mark.parametrize("method", ["brute", "pyramid", "ap-tree"])
@pytest.mark.parametrize("n", [1, 31, 32, 33, 300])
def test_many_rows_that_need_a_test_in_one_message(method: str, n: int) -> None:
    draw = random.Random(n)
    wanted = drawn_subscriptions(draw, n)
    terms, times = ([], [0], [0, 1], [0, 2], [0, *range(3, 60)]), (0, 5)
    messages = [Message(draw.choice(terms), point(draw.random(), draw.random()), draw.choice(times)) for _ in range(40)]
    live = built(method, wanted)
    gone = set(range(0, n, 5))
    for left in (wanted, [each for each in wanted if each.id not in gone]):
        expected = [sorted({each.id for each in left if holds(each, message)}) for message in messages]
        assert answers(live, messages) == expected
        remove(live, gone)


@pytest.mark.parametrize("is_hidden", [True, False])
def test_the_shape_of_a_removed_row_is_read_only_where_the_row_is_still_seen(is_hidden: bool) -> None:
    diamond = PolygonRegion(shapely.Polygon([(0, 0.5), (0.5, 0), (1, 0.5), (0.5, 1)]), True)
    live = built("brute", [Subscription(7, (), EVERYWHERE, (), diamond)])
    live.store.flag(np.array([0], np.int32), FLAG_LEAVING)
    view = live.store.view(np.arange(int(is_hidden), dtype=np.int32))
    # Where the row is hidden a writer may free its shape meanwhile: reading one would raise an error here.
    shapes = view.shapes._replace(words=np.zeros(0, np.uint32)) if is_hidden else view.shapes
    for place, is_in in ((point(0.5, 0.5), True), (point(0.1, 0.1), False)):
        messages = batch_of([Message((), place)])
        hits = (np.array([0], np.int32), np.array([0, 1]))
        none = (np.empty(0, np.int32), np.array([0, 0]))
        ids, starts = np.empty(1, np.int64), np.zeros(2, np.int64)
        interpreted = getattr(_find_owners, "plain", _find_owners)
        own = (view.arrays, view.details, shapes)
        assert interpreted(own, messages, (hits, none), _new_lists(1), True, (ids, starts)) == (is_in and not is_hidden)

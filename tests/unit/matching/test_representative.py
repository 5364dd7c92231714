"""Which term stands for a row, by each strategy, told from the rows alone."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from nearcast.matching.checks.cases import UNIT, Subscription, rows_of
from nearcast.matching.checks.random_cases import random_subscriptions
from nearcast.matching.store import RowStore
from nearcast.structures.representative import STRATEGIES, Representatives

MANY = random_subscriptions(1, 300, vocabulary=40)


def stored(subscriptions: list[Subscription]) -> tuple[RowStore, np.ndarray]:
    store = RowStore(UNIT)
    return store, store.add(*rows_of(subscriptions))


def firsts(tokens: str, subscriptions: list[Subscription], cells: int = 16) -> list[int]:
    store, rows = stored(subscriptions)
    chooser = Representatives(store, UNIT, tokens, cells)
    chooser.start(rows)
    return chooser.firsts(rows).tolist()  # type: ignore[no-any-return]


def test_idf_takes_the_rarest_term_and_df_the_most_frequent() -> None:
    frequencies = Counter(term for s in MANY for term in s.terms)
    for s, rare, frequent in zip(MANY, firsts("idf", MANY), firsts("df", MANY), strict=True):
        assert rare == min(s.terms, key=lambda term: (frequencies[term], term))
        assert frequent == min(s.terms, key=lambda term: (-frequencies[term], term))


def cell(s: Subscription, side: int) -> tuple[int, int]:
    middle = (s.box[0] + s.box[2]) / 2, (s.box[1] + s.box[3]) / 2
    return tuple(int(min(max(value * side, 0), side - 1)) for value in middle)  # type: ignore[return-value]


def test_locality_takes_the_rarest_of_the_cell_and_of_all_among_equals() -> None:
    everywhere = Counter(term for s in MANY for term in s.terms)
    here = Counter((cell(s, 4), term) for s in MANY for term in s.terms)
    for s, first in zip(MANY, firsts("locality", MANY), strict=True):
        assert first == min(s.terms, key=lambda term: (here[cell(s, 4), term], everywhere[term], term))


def test_df_covers_greedily_in_a_build() -> None:
    store, rows = stored(MANY)
    cover = Representatives(store, UNIT, "df", 1).cover(rows).tolist()
    left = list(zip(MANY, cover, strict=True))
    while left:
        counts = Counter(term for s, _ in left for term in s.terms)
        most = max(counts.values())
        taken = [t for t, n in counts.items() if n == most and all(c == t for s, c in left if t in s.terms)]
        assert taken, "some term of those that most rows have must stand for all of these"
        left = [(s, c) for s, c in left if c != taken[0]]


def test_the_cover_of_a_known_case() -> None:
    wishes = [[0, 1], [0, 2], [0, 3], [1, 4], [1, 5], [6]]
    store, rows = stored([Subscription(i, terms, (0.0, 0.0, 1.0, 1.0)) for i, terms in enumerate(wishes)])
    assert Representatives(store, UNIT, "df", 1).cover(rows).tolist() == [0, 0, 0, 1, 1, 6]


@pytest.mark.parametrize("tokens", STRATEGIES)
def test_orders_hold_each_term_once_and_start_with_the_first(tokens: str) -> None:
    store, rows = stored(MANY)
    chooser = Representatives(store, UNIT, tokens, 9)
    chooser.start(rows)
    terms, starts = chooser.orders(rows)
    for s, first, start, stop in zip(MANY, chooser.firsts(rows), starts[:-1], starts[1:], strict=True):
        assert sorted(terms[start:stop].tolist()) == list(s.terms)
        assert terms[start] == first


def test_random_takes_every_place_about_as_often() -> None:
    same = [Subscription(i, [3, 5, 9], (0.0, 0.0, 1.0, 1.0)) for i in range(300)]
    counts = Counter(firsts("random", same))
    assert set(counts) == {3, 5, 9} and min(counts.values()) > 60


def test_cells_forget_rows_that_go() -> None:
    store, rows = stored(MANY)
    chooser = Representatives(store, UNIT, "locality", 16)
    chooser.start(rows)
    chooser.forget(rows[::2])
    again = Representatives(store, UNIT, "locality", 16)
    again.start(rows[1::2])
    assert counts_of(chooser) == counts_of(again) and len(counts_of(again)) > 100
    chooser.forget(rows[1::2])
    assert counts_of(chooser) == {}


def counts_of(chooser: Representatives) -> dict[int, int]:
    keys, values = chooser.state().values()
    return {int(key): int(value) for key, value in zip(keys, values, strict=True) if value >= 0}


def test_places_outside_the_space_belong_to_the_nearest_cell() -> None:
    far = [Subscription(i, [i, 50], (x, x, x, x)) for i, x in enumerate((-1.7e308, -5.0, 0.1, 0.9, 7.0, 1.7e308))]
    store, rows = stored(far)
    chooser = Representatives(store, UNIT, "locality", 4)
    chooser.start(rows)
    assert {key >> 32 for key in counts_of(chooser)} == {0, 3}

"""The score formulas by hand, where floats are at their limits; and the intake of ranked rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nearcast.indexes  # noqa: F401  registers every method
from nearcast.errors import InvalidInput
from nearcast.geo.region import HUGE
from nearcast.matching.checks.cases import empty, rows_of
from nearcast.matching.checks.rank_cases import ranked
from nearcast.matching.score import combined, place_share, word_share
from nearcast.matching.snapshot import merged
from nearcast.model import RANK, Found

BOX = (0.0, 0.0, 4.0, 2.0)
TINY = float(np.finfo(np.float64).smallest_subnormal)


def place(own: tuple[float, ...], box: tuple[float, ...]) -> float:
    return float(place_share(np.array(own), np.array(box)))


@pytest.mark.parametrize(
    ("own", "box", "share"),
    [
        (BOX, (1.0, 1.0, 1.0, 1.0), 1.0),  # a point inside
        (BOX, (4.0, 2.0, 4.0, 2.0), 1.0),  # on the corner
        (BOX, (4.1, 2.0, 4.1, 2.0), 0.0),
        (BOX, (2.0, -9.0, 9.0, 9.0), 0.5),
        (BOX, (1.0, 1.0, 2.0, 9.0), 0.125),
        (BOX, (-1.0, -1.0, 9.0, 9.0), 1.0),
        (BOX, (4.0, 0.0, 9.0, 2.0), 0.0),  # only touches
        (BOX, (1.0, 0.0, 1.0, 2.0), 0.0),  # a segment
        ((1.0, 1.0, 1.0, 1.0), BOX, 1.0),  # a row without area
        ((1.0, 0.0, 1.0, 5.0), (0.0, 5.0, 1.0, 6.0), 1.0),  # touched at its end
        ((1.0, 0.0, 1.0, 5.0), (1.0, 2.0, 1.0, 3.0), 1.0),  # a segment along a segment
        ((1.0, 0.0, 1.0, 5.0), (2.0, 0.0, 3.0, 5.0), 0.0),
        ((-HUGE, -HUGE, HUGE, HUGE), (0.0, -HUGE, HUGE, HUGE), 0.5),  # its sides are past the floats
        ((-HUGE, -HUGE, HUGE, HUGE), (-HUGE, -HUGE, HUGE, HUGE), 1.0),
        ((0.0, 0.0, 1e200, 1e200), (0.0, 0.0, 5e199, 5e199), 0.25),  # its area is
        ((0.0, 0.0, 1e-200, 1e-200), (0.0, 0.0, 5e-201, 1.0), 0.5),  # its area is below them
        ((0.0, 0.0, TINY, TINY), (-1.0, -1.0, TINY, TINY), 1.0),  # its sides cannot be halved
    ],
)
def test_place_is_the_overlapped_share(own: tuple[float, ...], box: tuple[float, ...], share: float) -> None:
    assert place(own, box) == share


COORDINATES = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(COORDINATES, min_size=8, max_size=8))
def test_place_is_within_0_and_1_and_1_where_covered(values: list[float]) -> None:
    own = (*np.minimum(values[:2], values[2:4]), *np.maximum(values[:2], values[2:4]))
    box = (*np.minimum(values[4:6], values[6:]), *np.maximum(values[4:6], values[6:]))
    assert 0.0 <= place(own, box) <= 1.0
    whole = (*np.minimum(own[:2], box[:2]), *np.maximum(own[2:], box[2:]))
    assert place(own, whole) == 1.0


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_the_score_is_within_0_and_1(alpha: float, place: float, words: float) -> None:
    assert 0.0 <= combined(alpha, place, words) <= 1.0 == combined(alpha, 1.0, 1.0)
    assert combined(1.0, place, words) == place and combined(0.0, place, words) == words


def test_words_are_a_share_of_weight_and_all_where_nothing_weighs() -> None:
    assert (word_share(1.0, 4.0), word_share(0.0, 4.0), word_share(0.0, 0.0)) == (0.25, 0.0, 1.0)


def test_rows_that_kernels_would_misread_are_refused() -> None:
    live = empty("brute", RANK, np.ones(3))
    good, _ = rows_of([ranked(1, [0], BOX), ranked(2, [1], BOX)])
    wrong = {
        "row 2, column 'alpha'": good._replace(params={**good.params, "alpha": np.array([0.5, np.nan])}),
        "row 1, column 'threshold'": good._replace(params={**good.params, "threshold": np.array([1.5, 0.5])}),
        "column 'threshold'": good._replace(params={**good.params, "threshold": np.array([0.5])}),
        "column 'alpha'": good._replace(params={"threshold": np.array([0.5, 0.5])}),
        "one row": good._replace(owner_ids=np.array([1, 1])),
        "names a shape that is not among the 0 given": good._replace(shapes=np.array([0, -1], np.int32)),
    }
    for words, batch in wrong.items():
        with pytest.raises(InvalidInput, match=words):
            live.insert(batch)
    assert len(live) == 0
    for weights in ([np.nan], [-1.0], [np.inf]):
        with pytest.raises(InvalidInput, match="a weight is a number from 0"):
            empty("brute", RANK, np.array(weights))


def test_what_both_kinds_found_is_merged_in_order() -> None:
    plain = Found(np.array([2, 5, 9]), np.array([0, 2, 2, 3]))
    ranked = Found(np.array([1, 7, 3]), np.array([0, 2, 3, 3]), np.array([0.5, 0.0, 1.0]))
    both = merged(plain, ranked)
    assert both.ids.tolist() == [1, 2, 5, 7, 3, 9] and both.starts.tolist() == [0, 4, 5, 6]
    assert both.scores is not None
    assert np.array_equal(both.scores, [0.5, np.nan, np.nan, 0.0, 1.0, np.nan], equal_nan=True)
    assert merged(plain, Found(ranked.ids, ranked.starts)).scores is None, "no score where neither kind has one"

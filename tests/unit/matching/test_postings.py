from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nearcast.structures.boxes import outward
from nearcast.structures.postings import NO_LIST, Postings

FLOATS = st.one_of(st.floats(-400, 400), st.sampled_from([1.7e308, -1.7e308, 5e-324, 0.1, -0.1, 180.0, 1e-46]))


def entries(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    lists, rows = (np.array([pair[k] for pair in pairs], np.int32) for k in (0, 1))
    return lists, rows, rows * 10


def content(postings: Postings) -> dict[int, list[int]]:
    a = postings.arrays
    held = {}
    for which in range(len(a.counts)):
        span = slice(a.offsets[which], a.offsets[which] + a.counts[which])
        assert (a.pivots[span] == a.rows[span] * 10).all() and (a.boxes[span, 0] == a.rows[span]).all()
        for place, row in enumerate(a.rows[span].tolist()):
            assert a.lists[row] == which and a.places[row] == place, "back pointers are wrong"
        if a.counts[which]:
            held[which] = sorted(a.rows[span].tolist())
    return held


def boxes_of(rows: np.ndarray) -> np.ndarray:
    return np.repeat(rows[:, None], 4, axis=1).astype(np.float64)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 12)), max_size=60), st.integers(0, 30))
def test_lists_stay_right_under_appends_and_removals(steps: list[tuple[int, int]], n_built: int) -> None:
    postings = Postings()
    model: dict[int, int] = {}
    built = list({row: (which, row) for which, row in steps[:n_built]}.values())
    made = entries(built)
    postings.build(made, boxes_of(made[1]), 4, 13)
    model.update({row: which for which, row in built})
    for which, row in steps[n_built:]:
        if row in model:
            postings.remove(np.array([row], np.int32))
            del model[row]
            assert postings.arrays.lists[row] == NO_LIST
        else:
            one = entries([(which, row)])
            postings.append(one, boxes_of(one[1]), 4, 13)
            model[row] = which
        expected: dict[int, list[int]] = {}
        for held, where in sorted(model.items()):
            expected.setdefault(where, []).append(held)
        assert content(postings) == expected


def test_holes_are_packed_so_that_the_arena_stays_small() -> None:
    postings = Postings()
    postings.build(entries([]), np.empty((0, 4)), 50, 20_000)
    for start in range(1, 20_000, 100):
        rows = np.arange(start, min(start + 100, 20_000), dtype=np.int32)
        made = (rows % 50, rows, rows * 10)
        postings.append(made, boxes_of(rows), 50, 20_000)
    assert len(postings.arrays.rows) < 3.5 * 20_000
    assert sum(map(len, content(postings).values())) == 19_999


@given(st.lists(st.tuples(FLOATS, FLOATS, FLOATS, FLOATS), min_size=1, max_size=5))
def test_rounded_boxes_contain_the_exact_ones(boxes: list[tuple[float, float, float, float]]) -> None:
    exact = np.array(boxes)
    rounded = outward(exact).astype(np.float64)
    assert (rounded[:, :2] <= exact[:, :2]).all() and (rounded[:, 2:] >= exact[:, 2:]).all()
    inner = np.abs(exact) < 1e30
    assert np.allclose(rounded[inner], exact[inner], rtol=1e-6, atol=1e-44)

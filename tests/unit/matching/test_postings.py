from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nearcast.structures.boxes import outward
from nearcast.structures.postings import NO_LIST, REMOVED, Postings, list_of

FLOATS = st.one_of(st.floats(-400, 400), st.sampled_from([1.7e308, -1.7e308, 5e-324, 0.1, -0.1, 180.0, 1e-46]))


def entries(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    lists, rows = (np.array([pair[k] for pair in pairs], np.int32) for k in (0, 1))
    return lists, rows, rows * 10


def content(postings: Postings) -> dict[int, list[int]]:
    a = postings.arrays
    found: dict[int, list[int]] = {}
    for which in range(len(a.heads)):
        first, count = list_of(a, which)
        for place in range(count):
            row, at = int(a.rows[first + place]), first + place
            if row == REMOVED:
                assert np.isnan(a.boxes[at]).all(), "a removed entry overlaps nothing"
                continue
            assert a.pivots[at] == row * 10 and a.boxes[at, 0] == row
            assert a.lists[row] == which and a.places[row] == place, "back pointers are wrong"
            found.setdefault(which, []).append(row)
    return {which: sorted(rows) for which, rows in found.items()}


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


def test_removed_entries_are_packed_away() -> None:
    postings, rows = Postings(), np.arange(4_000, dtype=np.int32)
    postings.build((rows % 50, rows, rows * 10), boxes_of(rows), 50, 4_000)
    old = postings.arrays
    before = old.rows.copy(), old.heads.copy()
    postings.remove(rows[:2_500])
    assert len(postings.arrays.rows) == 1_500
    assert sorted(row for own in content(postings).values() for row in own) == list(range(2_500, 4_000))
    assert (old.heads == before[1]).all(), "readers of an older version scan the old lists"
    assert (old.rows[old.rows != REMOVED] == before[0][old.rows != REMOVED]).all()


@given(st.lists(st.tuples(FLOATS, FLOATS, FLOATS, FLOATS), min_size=1, max_size=5))
def test_rounded_boxes_contain_the_exact_ones(boxes: list[tuple[float, float, float, float]]) -> None:
    exact = np.array(boxes)
    rounded = outward(exact).astype(np.float64)
    assert (rounded[:, :2] <= exact[:, :2]).all() and (rounded[:, 2:] >= exact[:, 2:]).all()
    inner = np.abs(exact) < 1e30
    assert np.allclose(rounded[inner], exact[inner], rtol=1e-6, atol=1e-44)

"""The parts of `pyramid`: the map to lanes, runs, merging and dying."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nearcast.indexes  # noqa: F401  registers every method
from nearcast.arrays.jit import JIT_DISABLED
from nearcast.arrays.vector import WIDTH, plain_none_above
from nearcast.errors import InvalidInput
from nearcast.indexes.pyramid import YOUNG, Pyramid
from nearcast.indexes.pyramid.box_codes import (
    BITS,
    DEAD,
    HIGHEST,
    ONES,
    Axes,
    Cell,
    fitted_axes,
    mapped,
    mapped_boxes,
    place_word,
    point_word,
    row_word,
)
from nearcast.indexes.pyramid.run import (
    FINEST,
    RunArrays,
    cells_of,
    coarse_cells,
    counts_of,
    first_of,
    fitting_level,
    grid_of,
    length_of,
    levels_of,
)
from nearcast.matching.checks.cases import (
    Message,
    Subscription,
    answers,
    built,
    empty,
    expect_equal,
    insert,
    point,
    remove,
)
from nearcast.matching.checks.random_cases import random_messages, random_subscriptions

COORDINATES = st.one_of(
    st.floats(-0.2, 1.2), st.sampled_from([0.0, 0.25, 0.5, 1.0, -1e300, 1e300, 5e-324, 0.1, 0.30000000000000004])
)
MANY = 2_000 if JIT_DISABLED else 60_000


def sorted_box(x0: float, y0: float, x1: float, y1: float) -> tuple[float, float, float, float]:
    return (min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1))


BOXES = st.builds(sorted_box, COORDINATES, COORDINATES, COORDINATES, COORDINATES)


@given(st.lists(BOXES, min_size=1, max_size=20), st.lists(COORDINATES, min_size=2, max_size=20))
def test_the_map_is_monotone_and_stays_in_range(boxes: list, values: list[float]) -> None:
    axes = fitted_axes(np.array(boxes), (0.0, 0.0, 1.0, 1.0))
    steps = [int(mapped(axes.x, value)) for value in sorted(values)]
    assert steps == sorted(steps)
    assert steps[0] >= 0 and steps[-1] <= HIGHEST


def steps_of(boxes: np.ndarray, axes: Axes) -> np.ndarray:
    steps = np.empty((len(boxes), 4), np.int32)
    mapped_boxes(axes, boxes, steps)
    return steps


def is_within(word: int, limits: int) -> bool:
    return bool(plain_none_above(np.full(WIDTH, word, np.uint32), 0, limits))


def shared_cells(a: np.ndarray, b: np.ndarray, level: int) -> list[Cell]:
    """The cells of a level that two mapped boxes overlap; of many some at both ends."""
    shift = BITS - level
    spans = [range(int(max(a[k], b[k])) >> shift, (int(min(a[k + 2], b[k + 2])) >> shift) + 1) for k in (0, 1)]
    columns, rows = ([*span[:2], *span[-2:]] for span in spans)
    return [Cell(level, column, row) for column in columns for row in rows]


@given(st.lists(BOXES, min_size=1, max_size=6), BOXES, st.integers(0, FINEST))
def test_bytes_never_miss_and_are_never_sure_wrongly(
    boxes: list, place: tuple[float, float, float, float], level: int
) -> None:
    held = np.array([*boxes, place, (*place[:2], *place[:2])])
    steps = steps_of(held, fitted_axes(held, (0.0, 0.0, 1.0, 1.0)))
    for asked, at in ((place, steps[-2]), ((*place[:2], *place[:2]), steps[-1])):
        for box, own in zip(boxes, steps, strict=False):
            exact = box[0] <= asked[2] and asked[0] <= box[2] and box[1] <= asked[3] and asked[1] <= box[3]
            cells = shared_cells(own, at, level)
            assert cells or not exact, "boxes that overlap share no cell"
            for cell in cells:
                word, limits = int(row_word(own, cell)), int(place_word(at, cell))
                assert is_within(word, limits) or not exact or len(cells) > 1, "an overlap was missed"
                assert exact or not is_within(word, limits - ONES), "a box was called surely overlapping"
            assert not exact or any(is_within(int(row_word(own, c)), int(place_word(at, c))) for c in cells)


@given(st.integers(0, HIGHEST), st.integers(0, HIGHEST), st.integers(0, FINEST))
def test_a_point_is_a_small_place(x: int, y: int, level: int) -> None:
    cell = Cell(level, x >> (BITS - level), y >> (BITS - level))
    assert int(point_word(x, y, level)) == int(place_word(np.array([x, y, x, y]), cell))


@pytest.mark.parametrize("cell", [Cell(0, 0, 0), Cell(1, 1, 0), Cell(FINEST, 511, 511)])
def test_a_dead_entry_overlaps_nothing_not_even_the_whole_world(cell: Cell) -> None:
    world = int(place_word(np.array([0, 0, HIGHEST, HIGHEST]), cell))
    assert not is_within(int(DEAD), world)
    assert is_within(int(row_word(np.array([0, 0, HIGHEST, HIGHEST]), cell)), world)


def test_a_city_is_told_apart_within_the_world() -> None:
    rng = np.random.default_rng(1)
    corners = np.array([-74.0, 40.7]) + rng.normal(0, 0.05, (5000, 2))
    boxes = np.hstack([corners, corners + 0.002])
    steps = steps_of(boxes, fitted_axes(boxes, (-180.0, -90.0, 180.0, 90.0)))
    cells = steps >> (BITS - FINEST)
    assert len(np.unique(cells, axis=0)) > 4900, "equal steps would give a city one cell of them"


def test_the_level_fits_the_size_and_a_box_lies_in_nine_cells_at_most() -> None:
    rng = np.random.default_rng(2)
    low = rng.random((500, 2))
    boxes = np.hstack([low, np.minimum(1.0, low + rng.random((500, 2)) ** 3)])
    for steps in steps_of(boxes, fitted_axes(boxes, (0.0, 0.0, 1.0, 1.0))):
        x0, y0, x1, y1 = steps.tolist()
        shift = BITS - fitting_level(steps)
        assert (x1 >> shift) - (x0 >> shift) <= 2 and (y1 >> shift) - (y0 >> shift) <= 2


EIGHTH = 1 << (BITS - 3)


@pytest.mark.parametrize(
    ("box", "bits"),
    [
        ((1, 1, 1, 1), 1),
        ((0, 0, HIGHEST, HIGHEST), 2**64 - 1),
        ((EIGHTH, 0, 2 * EIGHTH - 1, EIGHTH - 1), 2),
        ((0, EIGHTH, 1, EIGHTH), 256),
    ],
)
def test_the_mask_has_a_bit_for_each_coarse_cell(box: tuple[int, int, int, int], bits: int) -> None:
    assert int(coarse_cells(*box)) == bits


def pyramid(matcher: object) -> Pyramid:
    return matcher.method  # type: ignore[attr-defined,no-any-return]


def blocks_of(run: RunArrays, term: int, steps: np.ndarray) -> list[tuple[int, int, Cell]]:
    """First and last+1 word of each list of a term that a mapped box lies in, and its cell."""
    where = run.nodes[term, 1]
    if levels_of(where) == 0:
        return [(int(first_of(where)), int(first_of(where) + length_of(where)), Cell(0, 0, 0))]
    level, first = grid_of(where, steps)
    left, low, right, high = (int(edge) for edge in cells_of(steps, level))
    cells = [Cell(level, column, row) for row in range(low, high + 1) for column in range(left, right + 1)]
    numbers = [int(first) + (row << level) + column for _, column, row in cells]
    return [(int(run.starts[n]), int(run.starts[n + 1]), cell) for n, cell in zip(numbers, cells, strict=True)]


@pytest.mark.parametrize("crowded", [2, 64])
def test_a_list_has_lone_rows_first_each_kind_ascending_and_dead_ones_where_they_were(crowded: int) -> None:
    subscriptions = random_subscriptions(12, 300)
    matcher = built(f"pyramid crowded={crowded}", subscriptions)
    remove(matcher, [s.id for s in subscriptions[::5]])
    method, store = pyramid(matcher), matcher.store
    (run,) = method._runs.values()
    n_dead = 0
    for row in range(300):
        steps = steps_of(store.arrays.boxes[row : row + 1], Axes(run.x_knots, run.y_knots))[0]
        for start, stop, cell in blocks_of(run, int(method._firsts[row]), steps):
            n_lone, n_paired = (int(n) for n in counts_of(run.words, start, stop))
            n = n_lone + n_paired
            boxes, rows = run.words[start + 1 : start + 1 + n], run.words[start + 1 + n : start + 1 + 2 * n].tolist()
            assert rows[:n_lone] == sorted(rows[:n_lone]) and rows[n_lone:] == sorted(rows[n_lone:])
            assert (rows.index(row) < n_lone) == (store.arrays.n_terms[row] == 1)
            is_dead = boxes[rows.index(row)] == DEAD
            assert is_dead == (method._homes[row] == 0)
            assert is_dead or boxes[rows.index(row)] == row_word(steps, cell)
            n_dead += is_dead
    assert n_dead >= 60


def test_runs_double_from_one_to_the_next_and_rows_know_their_home() -> None:
    matcher = empty("pyramid young=20 crowded=4")
    subscriptions = random_subscriptions(3, 700)
    for start in range(0, 700, 10):
        insert(matcher, subscriptions[start : start + 10])
        method = pyramid(matcher)
        sizes = sorted(int(method._live[number]) for number in method._runs)
        assert all(2 * small <= large + 20 for small, large in zip(sizes, sizes[1:], strict=False)), sizes
        assert sum(sizes) + method._live[YOUNG] == start + 10
        counted = np.bincount(method._homes[: matcher.store.high], minlength=256)
        assert (counted[1:] == method._live[1:]).all()
    assert len(pyramid(matcher)._runs) <= 7
    expect_equal(matcher, built("brute", subscriptions), random_messages(4, 40, largest=0.1))


def test_a_run_half_dead_is_built_anew_and_an_empty_one_dropped() -> None:
    subscriptions = random_subscriptions(5, 400)
    matcher = built("pyramid crowded=4", subscriptions)
    entries = sum(len(run.words) for run in pyramid(matcher)._runs.values())
    remove(matcher, [s.id for s in subscriptions[:150]])
    assert sum(len(run.words) for run in pyramid(matcher)._runs.values()) == entries, "dead entries stay for a while"
    remove(matcher, [s.id for s in subscriptions[150:250]])
    assert sum(len(run.words) for run in pyramid(matcher)._runs.values()) < 0.5 * entries
    expect_equal(matcher, built("brute", subscriptions[250:]), random_messages(6, 40, largest=0.1))
    remove(matcher, [s.id for s in subscriptions])
    assert not pyramid(matcher)._runs


def test_many_identical_subscriptions_are_found_and_removed_in_reasonable_time() -> None:
    crowd = [Subscription(i, [0], (0.2, 0.2, 0.6, 0.6)) for i in range(MANY)]
    matcher = built("pyramid", crowd)
    assert len(answers(matcher, [Message([0], point(0.5, 0.5))])[0]) == MANY
    remove(matcher, range(0, MANY, 3))
    found = answers(matcher, [Message([0], point(0.5, 0.5))])[0]
    assert found == [i for i in range(MANY) if i % 3]


def test_a_point_reads_one_cell_of_each_level_in_use() -> None:
    crowd = [s._replace(terms=[0]) for s in random_subscriptions(7, 3000, largest=0.2)]
    matcher = built("pyramid", crowd)
    (run,) = pyramid(matcher)._runs.values()
    levels = int(levels_of(run.nodes[0, 1])).bit_count()
    assert 1 <= levels <= FINEST
    answers(matcher, [Message([0], point(0.5, 0.5))])
    assert 1 <= matcher.stats.nodes <= levels
    assert matcher.stats.candidates < 6 * matcher.stats.matches + 50


def test_terms_whose_boxes_are_elsewhere_are_skipped_by_their_mask() -> None:
    corner = [Subscription(i, [i], (0.9, 0.9, 0.95, 0.95)) for i in range(50)]
    matcher = built("pyramid", [*corner, Subscription(99, [99], (0.1, 0.1, 0.2, 0.2))])
    answers(matcher, [Message(list(range(100)), point(0.15, 0.15))])
    assert (matcher.stats.nodes, matcher.stats.candidates, matcher.stats.matches) == (1, 1, 1)


def test_a_crowded_limit_out_of_range_is_refused() -> None:
    with pytest.raises(InvalidInput, match="crowded is 1 to 5460, not 0"):
        empty("pyramid crowded=0")


def test_one_at_a_time_works_on_many_threads_between_changes() -> None:
    subscriptions = random_subscriptions(8, 400)
    matcher = built("pyramid", subscriptions)
    messages = random_messages(9, 50)

    def one_by_one(_: int) -> list[list[int]]:
        return [matcher.match_one(np.array(m.terms, np.int32), *m.box[:2]).tolist() for m in messages]

    for step in range(4):
        wanted = answers(matcher, messages)
        with ThreadPoolExecutor(4) as pool:
            assert all(found == wanted for found in pool.map(one_by_one, range(8)))
        remove(matcher, [s.id for s in subscriptions[step * 40 : step * 40 + 40]])
        insert(matcher, [s._replace(id=s.id + 10_000 * (step + 1)) for s in subscriptions[:60]])


def test_points_and_ranges_in_any_order_and_results_that_need_more_room() -> None:
    """A batch stops at each range and wherever room is short, and goes on behind it."""
    crowd = [Subscription(k, [k % 3], (0.0, 0.0, 1.0, 1.0)) for k in range(3_000)]
    few = random_messages(8, 30)
    ranges = random_messages(9, 30, largest=0.5)
    mixed = [message for pair in zip(few, ranges, strict=True) for message in pair]
    for messages in (mixed, ranges + few, few + ranges, ranges[:2] + few[:1], few[:5], ranges[:1]):
        expect_equal(built("pyramid crowded=4", crowd), built("brute", crowd), messages)


def test_a_message_with_more_words_than_are_asked_for_beforehand() -> None:
    crowd = [
        Subscription(k, [k % 40, *([40] if k % 3 == 0 else [])], (0.0, 0.0, 1.0 - k * 5e-5, 1.0)) for k in range(12_000)
    ]
    messages = [Message(list(range(41)), point(x, 0.5)) for x in (0.1, 0.5, 0.9)]
    expect_equal(built("pyramid", crowd), built("brute", crowd), [*messages, *random_messages(13, 5)])


@pytest.mark.skipif(JIT_DISABLED, reason="plain Python counts references by itself")
def test_matching_keeps_no_reference_and_loses_none() -> None:
    matcher = built("pyramid crowded=4", random_subscriptions(10, 3_000))
    pyramid = matcher.method
    assert isinstance(pyramid, Pyramid)
    arrays = [*matcher.store.arrays, *(array for run in pyramid._runs.values() for array in run)]
    before = [sys.getrefcount(array) for array in arrays]
    for largest in (0.0, 0.2):
        answers(matcher, random_messages(11, 50, largest=largest))
    assert [sys.getrefcount(array) for array in arrays] == before

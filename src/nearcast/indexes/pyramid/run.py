"""A run: an immutable pyramid over a set of rows; only its entries can die.

Each row is filed under its rarest term. A term with few rows has one plain list; a crowded term has a grid for each of a few levels,
and a row goes to the level that fits its size, into every cell that it overlaps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import starts_of
from nearcast.indexes.pyramid.lanes import BITS, DEAD, Axes, edges_of, fitted_axes, row_lanes

FINEST = 9  # 512 x 512 cells
COARSE = 3  # the mask has 8 x 8 bits
NO_GRID = -1
LENGTH_BITS = 20  # of a node that is a plain list
LENGTH_MASK = (1 << LENGTH_BITS) - 1
MANY = np.uint64(1 << 63)  # a tag's flag: the row has more than two terms
ROW = np.uint64(0xFFFF_FFFF)


class RunArrays(NamedTuple):
    """`masks` and `nodes` by term, `grids` by crowded term, `starts` by cell, `boxes` and `tags` by entry."""

    masks: np.ndarray  # uint64[n_terms]  the coarse cells that the term's boxes touch; 0 where it has none
    nodes: np.ndarray  # int64[n_terms]   a plain list's start << LENGTH_BITS | its length; or ~(number of the crowded term)
    grids: np.ndarray  # int64[n_crowded, FINEST+1]  where the level's cells begin in `starts`, or NO_GRID
    starts: np.ndarray  # uint32[...]  first entry of each cell; a level has one more than cells
    boxes: np.ndarray  # uint64[n_entries]  lanes, or DEAD
    tags: np.ndarray  # uint64[n_entries]  row | second rarest term << 32 | MANY; ascending rows within a list
    x_knots: np.ndarray  # float64[...]
    y_knots: np.ndarray  # float64[...]


class Filing(NamedTuple):
    """What is filed, while a run is built."""

    firsts: np.ndarray  # int32[n]  rarest term
    boxes: np.ndarray  # uint64[n]  lanes
    tags: np.ndarray  # uint64[n]
    crowds: np.ndarray  # int32[n_terms]  number of the crowded term, or -1


def built_run(
    entries: tuple[np.ndarray, np.ndarray], boxes: np.ndarray, bounds: tuple[float, float, float, float], sizes: tuple[int, int]
) -> RunArrays:
    """A run over `entries` = (rarest terms, tags with ascending rows); `sizes` = (n_terms, most rows of a plain list)."""
    firsts, tags = entries
    n_terms, crowded = sizes
    axes = fitted_axes(boxes, bounds)
    lanes = np.empty(len(firsts), np.uint64)
    row_lanes(axes, boxes, lanes)
    counts = np.bincount(firsts, minlength=n_terms)
    is_crowded = counts > crowded
    crowds = np.where(is_crowded, np.cumsum(is_crowded) - 1, -1).astype(np.int32)
    return _filled(Filing(firsts, lanes, tags, crowds), counts, is_crowded, axes)


def _filled(filing: Filing, counts: np.ndarray, is_crowded: np.ndarray, axes: Axes) -> RunArrays:
    n_plain = np.where(is_crowded, 0, counts)
    plain_starts = starts_of(n_plain)
    grids, n_cells = _laid_out(filing, int(np.count_nonzero(is_crowded)))
    cell_counts = np.zeros(n_cells, np.int64)
    _count_cells(filing, grids, cell_counts)
    cell_starts = plain_starts[-1] + starts_of(cell_counts)
    n_entries = int(cell_starts[-1])
    if n_entries > np.iinfo(np.uint32).max:
        raise OverflowError("a run holds 4,294,967,295 entries at most")
    run = RunArrays(
        np.zeros(len(counts), np.uint64),
        np.where(is_crowded, ~filing.crowds.astype(np.int64), (plain_starts[:-1] << LENGTH_BITS) | n_plain),
        grids,
        cell_starts.astype(np.uint32),
        np.empty(n_entries, np.uint64),
        np.empty(n_entries, np.uint64),
        axes.x,
        axes.y,
    )
    _fill(filing, run, plain_starts, cell_starts)
    return run


def _laid_out(filing: Filing, n_crowded: int) -> tuple[np.ndarray, int]:
    """Where each (crowded term, level in use) has its cells, and how many cells there are, one spare behind each level."""
    wanted = np.zeros((n_crowded, FINEST + 1), np.int64)
    _count_levels(filing, wanted)
    in_use = np.zeros(wanted.shape, np.bool_)
    _choose_levels(wanted, in_use)
    starts = starts_of(np.where(in_use, 4 ** np.arange(FINEST + 1) + 1, 0).ravel())
    return np.where(in_use, starts[:-1].reshape(in_use.shape), NO_GRID), int(starts[-1])


@kernel
def fitting_level(box):  # type: ignore[no-untyped-def]
    """The finest level whose cells are at least half as large as the box: it overlaps 3 x 3 of them at most."""
    x0, y0, x1, y1 = edges_of(box)
    size = max(x1 - x0, y1 - y0) + 1
    level = 0
    while level < FINEST and (1 << (BITS - level)) >= size:
        level += 1
    return level


@kernel
def _count_levels(filing, out):  # type: ignore[no-untyped-def]
    for i in range(len(filing.firsts)):
        crowd = filing.crowds[filing.firsts[i]]
        if crowd >= 0:
            out[crowd, fitting_level(filing.boxes[i])] += 1


@kernel
def _choose_levels(wanted, in_use):  # type: ignore[no-untyped-def]
    """A level needs 2 rows a cell, and 32 at least, to pay for its cache misses; sparser ones join the next coarser."""
    for crowd in range(len(wanted)):
        waiting = 0
        for level in range(FINEST, -1, -1):
            waiting += wanted[crowd, level]
            if waiting >= max(32, 2 << (2 * level)) or (level == 0 and waiting > 0):
                in_use[crowd, level] = True
                waiting = 0


@kernel
def level_used(grids, crowd, box):  # type: ignore[no-untyped-def]
    """The level that holds a box of a crowded term: the one that fits, or the next coarser one in use."""
    level = fitting_level(box)
    while grids[crowd, level] == NO_GRID:
        level -= 1
    return level


@kernel
def cells_of(box, level):  # type: ignore[no-untyped-def]
    """The first and last column and row of the cells of a level that a mapped box overlaps."""
    x0, y0, x1, y1 = edges_of(box)
    shift = BITS - level
    return x0 >> shift, y0 >> shift, x1 >> shift, y1 >> shift


@kernel
def _count_cells(filing, grids, counts):  # type: ignore[no-untyped-def]
    for i in range(len(filing.firsts)):
        crowd = filing.crowds[filing.firsts[i]]
        if crowd >= 0:
            level = level_used(grids, crowd, filing.boxes[i])
            left, low, right, high = cells_of(filing.boxes[i], level)
            for row in range(low, high + 1):
                first = grids[crowd, level] + (row << level)
                for column in range(left, right + 1):
                    counts[first + column] += 1


@kernel
def _fill(filing, run, plain_next, cell_next):  # type: ignore[no-untyped-def]
    """Write the entries. Rows come in ascending order, so each list ends up in that order."""
    for i in range(len(filing.firsts)):
        term, box = filing.firsts[i], filing.boxes[i]
        run.masks[term] |= coarse_mask(box)
        crowd = filing.crowds[term]
        if crowd < 0:
            _put(run, plain_next, term, box, filing.tags[i])
            continue
        level = level_used(run.grids, crowd, box)
        left, low, right, high = cells_of(box, level)
        for row in range(low, high + 1):
            first = run.grids[crowd, level] + (row << level)
            for column in range(left, right + 1):
                _put(run, cell_next, first + column, box, filing.tags[i])


@kernel
def _put(run, cursors, which, box, tag):  # type: ignore[no-untyped-def]
    target = cursors[which]
    run.boxes[target] = box
    run.tags[target] = tag
    cursors[which] = target + 1


@kernel
def coarse_mask(box):  # type: ignore[no-untyped-def]
    """One bit for each of the 8 x 8 coarse cells that a mapped box overlaps."""
    left, low, right, high = cells_of(box, COARSE)
    line = (np.uint64(2) << np.uint64(right)) - (np.uint64(1) << np.uint64(left))
    mask = np.uint64(0)
    for row in range(low, high + 1):
        mask |= line << np.uint64(8 * row)
    return mask


@kernel
def kill(run, firsts, boxes, rows):  # type: ignore[no-untyped-def]
    """Mark all entries of these rows dead; each is found by bisection, also among a million equals."""
    for i in range(len(rows)):
        node = run.nodes[firsts[i]]
        if node >= 0:
            start = node >> LENGTH_BITS
            _kill_one(run, start, start + (node & LENGTH_MASK), rows[i])
            continue
        crowd = ~node
        level = level_used(run.grids, crowd, boxes[i])
        left, low, right, high = cells_of(boxes[i], level)
        for row in range(low, high + 1):
            first = run.grids[crowd, level] + (row << level)
            for column in range(left, right + 1):
                _kill_one(run, run.starts[first + column], run.starts[first + column + 1], rows[i])


@kernel
def _kill_one(run, low, high, row):  # type: ignore[no-untyped-def]
    low, high = np.int64(low), np.int64(high)
    while low < high:
        middle = (low + high) >> 1
        if np.int64(run.tags[middle] & ROW) < row:
            low = middle + 1
        else:
            high = middle
    run.boxes[low] = DEAD

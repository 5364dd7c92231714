"""A run: an immutable pyramid over a set of rows; only its entries can die.

Each row is filed under its rarest term. A term with few rows has one plain list; a crowded term has a grid for each
of a few levels, and a row goes to the level that fits its size, into every cell that it overlaps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import starts_of
from nearcast.indexes.pyramid.lanes import BITS, DEAD, STEPS, Axes, edges_of, fitted_axes, row_lanes

SPARE = 8  # a scan reads boxes in eights

FINEST = 9  # 512 x 512 cells
_MOST = (STEPS >> 2) * 3
COARSE = 3  # the mask has 8 x 8 bits
MANY = np.uint64(1 << 63)  # a tag's flag: the row has more than two terms
ROW = np.uint64(0xFFFF_FFFF)


class RunArrays(NamedTuple):
    """`nodes` by term, `starts` by cell, `boxes` and `tags` by entry."""

    nodes: (
        np.ndarray
    )  # uint64[n_terms,2]  the coarse cells that the term's boxes touch (0: it has none), and where they are
    starts: np.ndarray  # uint32[...]  first entry of each cell; a level has one more than it has cells
    boxes: np.ndarray  # uint64[n_entries + SPARE]  lanes, or DEAD; the spare ones behind let a scan read past the end
    tags: np.ndarray  # uint64[n_entries]  row | second rarest term << 32 | MANY; ascending rows within a list
    x_knots: np.ndarray  # float64[...]
    y_knots: np.ndarray  # float64[...]


# Where a term's entries are, in one word: first | levels in use << 40 | length << 50. A plain list has no level in
# use; its length is at most 2^14 - 1. A crowded term's `first` is that of its coarsest level's cells in `starts`; the
# finer ones follow.
FIRST_BITS, LEVEL_BITS = 40, 10
FIRST_MASK, LEVEL_MASK, LENGTH_MASK = (1 << 40) - 1, (1 << 10) - 1, (1 << 14) - 1


class Filing(NamedTuple):
    """What is filed, while a run is built."""

    firsts: np.ndarray  # int32[n]  rarest term
    boxes: np.ndarray  # uint64[n]  lanes
    tags: np.ndarray  # uint64[n]
    crowds: np.ndarray  # int32[n_terms]  number of the crowded term, or -1


def built_run(
    entries: tuple[np.ndarray, np.ndarray],
    boxes: np.ndarray,
    bounds: tuple[float, float, float, float],
    sizes: tuple[int, int],
) -> RunArrays:
    """A run over `entries` = (rarest terms, tags with ascending rows); `sizes` = (n_terms, most rows of a plain
    list).
    """
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
    nodes, n_cells = _laid_out(filing, counts, is_crowded)
    cell_counts = np.zeros(n_cells, np.int64)
    _count_cells(filing, nodes, cell_counts)
    cell_starts = int(counts[~is_crowded].sum()) + starts_of(cell_counts)
    n_entries = int(cell_starts[-1])
    if n_entries > np.iinfo(np.uint32).max:
        raise OverflowError("a run holds 4,294,967,295 entries at most")
    boxes = np.full(n_entries + SPARE, DEAD)
    tags = np.empty(n_entries, np.uint64)
    run = RunArrays(nodes, cell_starts.astype(np.uint32), boxes, tags, axes.x, axes.y)
    _fill(filing, run, np.zeros(len(counts), np.int64), cell_starts)
    return run


def _laid_out(filing: Filing, counts: np.ndarray, is_crowded: np.ndarray) -> tuple[np.ndarray, int]:
    """The nodes, without masks yet, and how many cells there are, one spare behind each level."""
    wanted = np.zeros((int(np.count_nonzero(is_crowded)), FINEST + 1), np.int64)
    _count_levels(filing, wanted)
    in_use = np.zeros(wanted.shape, np.bool_)
    _choose_levels(wanted, in_use)
    first_cells = starts_of(np.where(in_use, 4 ** np.arange(FINEST + 1) + 1, 0).sum(axis=1))
    levels = (in_use * (1 << np.arange(FINEST + 1))).sum(axis=1)
    plain = np.where(is_crowded, 0, counts)
    wheres = starts_of(plain)[:-1] | (plain << (FIRST_BITS + LEVEL_BITS))
    wheres[is_crowded] = first_cells[:-1] | (levels << FIRST_BITS)
    return np.stack([np.zeros(len(counts), np.uint64), wheres.astype(np.uint64)], axis=1), int(first_cells[-1])


@kernel
def fitting_level(box):  # type: ignore[no-untyped-def]
    """The finest level whose cells are at least half as large as the box: it overlaps 3 x 3 of them at most.

    A box of most of the space has one copy on level 0, instead of four of which a point would read one.
    """
    x0, y0, x1, y1 = edges_of(box)
    size = max(x1 - x0, y1 - y0) + 1
    level = 0
    while size <= _MOST and level < FINEST and (1 << (BITS - level)) >= size:
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
def first_of(where):  # type: ignore[no-untyped-def]
    """The first entry of a plain list, or the first cell of a crowded term."""
    return np.int64(where) & FIRST_MASK


@kernel
def levels_of(where):  # type: ignore[no-untyped-def]
    """Bit l is set where level l is in use; 0 for a plain list."""
    return (np.int64(where) >> FIRST_BITS) & LEVEL_MASK


@kernel
def length_of(where):  # type: ignore[no-untyped-def]
    """The length of a plain list."""
    return np.int64(where) >> (FIRST_BITS + LEVEL_BITS)


@kernel
def grid_of(where, box):  # type: ignore[no-untyped-def]
    """(level, its first cell) for a box of a crowded term: the level that fits, or the next coarser one in use."""
    levels = levels_of(where)
    level = fitting_level(box)
    while (levels >> level) & 1 == 0:
        level -= 1
    first = first_of(where)
    for coarser in range(level):
        if (levels >> coarser) & 1:
            first += (1 << (2 * coarser)) + 1
    return level, first


@kernel
def cells_of(box, level):  # type: ignore[no-untyped-def]
    """The first and last column and row of the cells of a level that a mapped box overlaps."""
    x0, y0, x1, y1 = edges_of(box)
    shift = BITS - level
    return x0 >> shift, y0 >> shift, x1 >> shift, y1 >> shift


@kernel
def _count_cells(filing, nodes, counts):  # type: ignore[no-untyped-def]
    for i in range(len(filing.firsts)):
        if filing.crowds[filing.firsts[i]] >= 0:
            level, first = grid_of(nodes[filing.firsts[i], 1], filing.boxes[i])
            left, low, right, high = cells_of(filing.boxes[i], level)
            for row in range(low, high + 1):
                for column in range(left, right + 1):
                    counts[first + (row << level) + column] += 1


@kernel
def _fill(filing, run, plain_counts, cell_next):  # type: ignore[no-untyped-def]
    """Write the entries. Rows come in ascending order, so each list ends up in that order."""
    for i in range(len(filing.firsts)):
        term, box, tag = filing.firsts[i], filing.boxes[i], filing.tags[i]
        run.nodes[term, 0] |= coarse_mask(box)
        where = run.nodes[term, 1]
        if filing.crowds[term] < 0:
            _put(run, first_of(where) + plain_counts[term], box, tag)
            plain_counts[term] += 1
            continue
        level, first = grid_of(where, box)
        left, low, right, high = cells_of(box, level)
        for row in range(low, high + 1):
            for cell in range(first + (row << level) + left, first + (row << level) + right + 1):
                _put(run, cell_next[cell], box, tag)
                cell_next[cell] += 1


@kernel
def _put(run, entry, box, tag):  # type: ignore[no-untyped-def]
    run.boxes[entry] = box
    run.tags[entry] = tag


@kernel
def coarse_mask(box):  # type: ignore[no-untyped-def]
    """One bit for each of the 8 x 8 coarse cells that a row overlaps."""
    x0, y0, x1, y1 = edges_of(box)
    return coarse_cells(x0, y0, x1, y1)


@kernel
def coarse_cells(x0, y0, x1, y1):  # type: ignore[no-untyped-def]
    """One bit for each of the 8 x 8 coarse cells that a mapped box overlaps."""
    shift = BITS - COARSE
    line = (np.uint64(2) << np.uint64(x1 >> shift)) - (np.uint64(1) << np.uint64(x0 >> shift))
    mask = np.uint64(0)
    for row in range(y0 >> shift, (y1 >> shift) + 1):
        mask |= line << np.uint64(row << COARSE)
    return mask


@kernel
def kill(run, firsts, boxes, rows):  # type: ignore[no-untyped-def]
    """Mark all entries of these rows dead; each is found by bisection, also among a million equals."""
    for i in range(len(rows)):
        where = run.nodes[firsts[i], 1]
        if levels_of(where) == 0:
            start = first_of(where)
            _kill_one(run, start, start + length_of(where), rows[i])
            continue
        level, first = grid_of(where, boxes[i])
        left, low, right, high = cells_of(boxes[i], level)
        for row in range(low, high + 1):
            for cell in range(first + (row << level) + left, first + (row << level) + right + 1):
                _kill_one(run, run.starts[cell], run.starts[cell + 1], rows[i])


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

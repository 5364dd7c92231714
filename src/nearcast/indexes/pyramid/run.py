"""Layout of a run: an immutable pyramid over a set of rows, of which only entries can be marked dead.

Each row is filed under its rarest term. A term with few rows has one plain list. A crowded term has a grid for each of
a few levels; a row goes to the level that fits its size, into every cell that it overlaps.

A list is a block of 32-bit words: the number of its lone rows (rows with one term), the boxes, the rows, and the second
terms of the paired rows (rows with several terms). Lone rows come first; each kind ascends by row. So a list lies in
one stretch of memory, and a scan reads eight bytes of a lone row that matches. Nine of ten matching rows are lone
(workloads A and B).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.indexes.pyramid.box_codes import BITS, DEAD, HIGHEST

SPARE = 8  # a scan reads and writes words in eights

FINEST = 9  # 512 x 512 cells
COARSE = 3  # the mask of a term has 8 x 8 bits
MANY = np.uint32(1 << 31)  # added to a second term: the row has more than two terms
_MOST = ((HIGHEST + 1) >> 2) * 3


class RunArrays(NamedTuple):
    """The arrays of a run; saved by these names."""

    # uint64[n_terms,2]  by term: a bit for each coarse cell that its boxes touch (0: no rows), and where its lists are
    nodes: np.ndarray
    starts: np.ndarray  # uint32[...]  first word of each cell's list; each level has one more than it has cells
    words: np.ndarray  # uint32[... + SPARE]  the lists; the spare words let a scan read past the end
    x_knots: np.ndarray  # float64[...]
    y_knots: np.ndarray  # float64[...]


class Block(NamedTuple):
    """One list of a run."""

    first: int  # its first box in `words`
    n_lone: int  # rows with one term
    n_paired: int  # rows with several terms


# Where the lists of a term are, in one word: first | levels in use << 40 | length << 50. A plain list has no level in
# use; its length, in words, is at most 2^14 - 1. The `first` of a crowded term is the first cell of its coarsest level
# in `starts`; the cells of finer levels follow.
FIRST_BITS, LEVEL_BITS = 40, 10
FIRST_MASK, LEVEL_MASK, LENGTH_MASK = (1 << 40) - 1, (1 << 10) - 1, (1 << 14) - 1
MOST_PLAIN = (LENGTH_MASK - 1) // 3  # rows of a plain list


@kernel
def first_of(where):
    """The first word of a plain list, or the first cell of a crowded term."""
    return np.int64(where) & FIRST_MASK


@kernel
def levels_of(where):
    """Bit l is set if level l is in use; 0 for a plain list."""
    return (np.int64(where) >> FIRST_BITS) & LEVEL_MASK


@kernel
def length_of(where):
    """The length of a plain list, in words."""
    return np.int64(where) >> (FIRST_BITS + LEVEL_BITS)


@kernel
def counts_of(words, start, stop):
    """(n_lone, n_paired) of the list in words[start:stop]."""
    if start == stop:
        return 0, 0
    n_lone = np.int64(words[start])
    return n_lone, (stop - start - 1 - 2 * n_lone) // 3


@kernel
def fitting_level(steps):
    """The finest level whose cells are at least half as large as the box, which then overlaps 3 x 3 of them at most.

    A box of most of the space has one copy on level 0 instead of four copies of which a point would read one.
    """
    size = max(steps[2] - steps[0], steps[3] - steps[1]) + 1
    level = 0
    while size <= _MOST and level < FINEST and (1 << (BITS - level)) >= size:
        level += 1
    return level


@kernel
def grid_of(where, steps):
    """(level, its first cell) for a box of a crowded term: the level that fits, or the next coarser level in use."""
    levels = levels_of(where)
    level = fitting_level(steps)
    while (levels >> level) & 1 == 0:
        level -= 1
    first = first_of(where)
    for coarser in range(level):
        if (levels >> coarser) & 1:
            first += (1 << (2 * coarser)) + 1
    return level, first


@kernel
def cells_of(steps, level):
    """The first column, first row, last column and last row of the cells of a level that a mapped box overlaps."""
    shift = BITS - level
    return steps[0] >> shift, steps[1] >> shift, steps[2] >> shift, steps[3] >> shift


@kernel
def coarse_cells(x0, y0, x1, y1):
    """One bit for each of the 8 x 8 coarse cells that a mapped box overlaps."""
    shift = BITS - COARSE
    line = (np.uint64(2) << np.uint64(x1 >> shift)) - (np.uint64(1) << np.uint64(x0 >> shift))
    mask = np.uint64(0)
    for row in range(y0 >> shift, (y1 >> shift) + 1):
        mask |= line << np.uint64(row << COARSE)
    return mask


@kernel
def mark_dead(run, firsts, steps, rows):
    """Mark all entries of these rows dead. `firsts` are the terms that they are filed under, `steps` their boxes.

    Each entry is found by bisection, which stays fast among a million equal boxes.
    """
    for i in range(len(rows)):
        where = run.nodes[firsts[i], 1]
        if levels_of(where) == 0:
            start = first_of(where)
            _mark_dead_in(run.words, start, start + length_of(where), rows[i])
            continue
        level, first = grid_of(where, steps[i])
        left, low, right, high = cells_of(steps[i], level)
        for row in range(low, high + 1):
            for cell in range(first + (row << level) + left, first + (row << level) + right + 1):
                _mark_dead_in(run.words, np.int64(run.starts[cell]), np.int64(run.starts[cell + 1]), rows[i])


@kernel
def _mark_dead_in(words, start, stop, row):
    n_lone, n_paired = counts_of(words, start, stop)
    n = n_lone + n_paired
    entry = start + 1 + n
    found = _position_of(words, entry, entry + n_lone, row)
    if found == entry + n_lone or words[found] != row:
        found = _position_of(words, entry + n_lone, entry + n, row)
    words[found - n] = DEAD


@kernel
def _position_of(words, low, high, row):
    """The position of a row in words[low:high], which ascends; `high` if all are smaller."""
    while low < high:
        middle = (low + high) >> 1
        if words[middle] < row:
            low = middle + 1
        else:
            high = middle
    return low

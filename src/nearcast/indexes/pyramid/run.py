"""A run: an immutable pyramid over a set of rows; only its entries can die.

Each row is filed under its rarest term. A term with few rows has one plain list; a crowded term has a grid for each
of a few levels, and a row goes to the level that fits its size, into every cell that it overlaps.

A list is a block of 32-bit words: how many of its rows are lone (have one term), the boxes, the rows, and the second
terms of those that are paired; the lone come first, each kind by ascending row. So a message that a lone row's box
meets reads eight bytes of it, and all of a list lies together. Of ten rows that hold, nine are lone (A and B).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import starts_of
from nearcast.indexes.pyramid.box_codes import BITS, DEAD, HIGHEST, Axes, fitted_axes, mapped_boxes, row_word

SPARE = 8  # a scan reads and writes words in eights

FINEST = 9  # 512 x 512 cells
_MOST = ((HIGHEST + 1) >> 2) * 3
COARSE = 3  # the mask has 8 x 8 bits
MANY = np.uint32(1 << 31)  # beside a second term: the row has more than two
LONE = np.uint32(0xFFFF_FFFF)  # in place of a second term, while a run is built
_SIZES = np.array([2, 3])  # words of an entry, lone or paired


class RunArrays(NamedTuple):
    """`nodes` by term, `starts` by cell, `words` by list."""

    nodes: (
        np.ndarray
    )  # uint64[n_terms,2]  the coarse cells that the term's boxes touch (0: it has none), and where they are
    starts: np.ndarray  # uint32[...]  first word of each cell; a level has one more than it has cells
    words: np.ndarray  # uint32[... + SPARE]  the blocks; the spare words let a scan read past the end
    x_knots: np.ndarray  # float64[...]
    y_knots: np.ndarray  # float64[...]


# Where a term's entries are, in one word: first | levels in use << 40 | length << 50. A plain list has no level in
# use; its length, in words, is at most 2^14 - 1. A crowded term's `first` is that of its coarsest level's cells in
# `starts`; the finer ones follow.
FIRST_BITS, LEVEL_BITS = 40, 10
FIRST_MASK, LEVEL_MASK, LENGTH_MASK = (1 << 40) - 1, (1 << 10) - 1, (1 << 14) - 1
MOST_PLAIN = (LENGTH_MASK - 1) // 3  # rows of a plain list


class Filing(NamedTuple):
    """What is filed, while a run is built."""

    firsts: np.ndarray  # int32[n]  rarest term
    seconds: np.ndarray  # uint32[n]  second rarest term, and MANY; or LONE
    rows: np.ndarray  # int32[n]  ascending
    steps: np.ndarray  # int32[n,4]  the box, mapped
    crowds: np.ndarray  # int32[n_terms]  number of the crowded term, or -1


def built_run(
    entries: tuple[np.ndarray, np.ndarray, np.ndarray],
    boxes: np.ndarray,
    bounds: tuple[float, float, float, float],
    sizes: tuple[int, int],
) -> RunArrays:
    """A run over `entries` = (rarest terms, second ones, ascending rows); `sizes` = (n_terms, most rows of a plain
    list).
    """
    firsts, seconds, rows = entries
    n_terms, crowded = sizes
    axes = fitted_axes(boxes, bounds)
    steps = np.empty((len(firsts), 4), np.int32)
    mapped_boxes(axes, boxes, steps)
    is_crowded = np.bincount(firsts, minlength=n_terms) > crowded
    crowds = np.where(is_crowded, np.cumsum(is_crowded) - 1, -1).astype(np.int32)
    return _filled(Filing(firsts, seconds, rows, steps, crowds), axes)


def _filled(filing: Filing, axes: Axes) -> RunArrays:
    plain_counts = np.zeros((len(filing.crowds), 2), np.int32)
    _count_plain(filing, plain_counts)
    plain_starts = starts_of(_sizes(plain_counts))
    nodes, n_cells = _laid_out(filing, plain_starts)
    cell_counts = np.zeros((n_cells, 2), np.int32)
    _count_cells(filing, nodes, cell_counts)
    cell_starts = plain_starts[-1] + starts_of(_sizes(cell_counts))
    n_words = int(cell_starts[-1])
    if n_words > np.iinfo(np.uint32).max:
        raise OverflowError("a run holds 4,294,967,295 words at most, some 1.7 billion entries")
    run = RunArrays(nodes, cell_starts.astype(np.uint32), np.empty(n_words + SPARE, np.uint32), axes.x, axes.y)
    run.words[n_words:] = DEAD
    _write_headers(run, plain_starts, plain_counts)
    _write_headers(run, cell_starts, cell_counts)
    _fill(filing, run, plain_counts, cell_counts)
    return run


def _sizes(counts: np.ndarray) -> np.ndarray:
    """How many words the lists with so many lone and paired rows take; none if they are empty."""
    words: np.ndarray = counts @ _SIZES
    return words + (words > 0)


def _laid_out(filing: Filing, plain_starts: np.ndarray) -> tuple[np.ndarray, int]:
    """The nodes, without masks yet, and how many cells there are, one spare behind each level."""
    is_crowded = filing.crowds >= 0
    wanted = np.zeros((int(np.count_nonzero(is_crowded)), FINEST + 1), np.int64)
    _count_levels(filing, wanted)
    in_use = np.zeros(wanted.shape, np.bool_)
    _choose_levels(wanted, in_use)
    first_cells = starts_of(np.where(in_use, 4 ** np.arange(FINEST + 1) + 1, 0).sum(axis=1))
    levels = (in_use * (1 << np.arange(FINEST + 1))).sum(axis=1)
    wheres = plain_starts[:-1] | (np.diff(plain_starts) << (FIRST_BITS + LEVEL_BITS))
    wheres[is_crowded] = first_cells[:-1] | (levels << FIRST_BITS)
    return np.stack([np.zeros(len(wheres), np.uint64), wheres.astype(np.uint64)], axis=1), int(first_cells[-1])


@kernel
def fitting_level(steps):
    """The finest level whose cells are at least half as large as the box: it overlaps 3 x 3 of them at most.

    A box of most of the space has one copy on level 0, instead of four of which a point would read one.
    """
    size = max(steps[2] - steps[0], steps[3] - steps[1]) + 1
    level = 0
    while size <= _MOST and level < FINEST and (1 << (BITS - level)) >= size:
        level += 1
    return level


@kernel
def _count_levels(filing, out):
    for i in range(len(filing.firsts)):
        crowd = filing.crowds[filing.firsts[i]]
        if crowd >= 0:
            out[crowd, fitting_level(filing.steps[i])] += 1


@kernel
def _choose_levels(wanted, in_use):
    """A level needs 2 rows a cell, and 32 at least, to pay for its cache misses; sparser ones join the next coarser."""
    for crowd in range(len(wanted)):
        waiting = 0
        for level in range(FINEST, -1, -1):
            waiting += wanted[crowd, level]
            if waiting >= max(32, 2 << (2 * level)) or (level == 0 and waiting > 0):
                in_use[crowd, level] = True
                waiting = 0


@kernel
def first_of(where):
    """The first word of a plain list, or the first cell of a crowded term."""
    return np.int64(where) & FIRST_MASK


@kernel
def levels_of(where):
    """Bit l is set where level l is in use; 0 for a plain list."""
    return (np.int64(where) >> FIRST_BITS) & LEVEL_MASK


@kernel
def length_of(where):
    """The length of a plain list, in words."""
    return np.int64(where) >> (FIRST_BITS + LEVEL_BITS)


@kernel
def counts_of(words, start, stop):
    """How many lone and paired rows the list has whose block is words[start:stop]."""
    if start == stop:
        return 0, 0
    n_lone = np.int64(words[start])
    return n_lone, (stop - start - 1 - 2 * n_lone) // 3


@kernel
def grid_of(where, steps):
    """(level, its first cell) for a box of a crowded term: the level that fits, or the next coarser one in use."""
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
    """The first and last column and row of the cells of a level that a mapped box overlaps."""
    shift = BITS - level
    return steps[0] >> shift, steps[1] >> shift, steps[2] >> shift, steps[3] >> shift


@kernel
def _count_plain(filing, counts):
    for i in range(len(filing.firsts)):
        if filing.crowds[filing.firsts[i]] < 0:
            counts[filing.firsts[i], np.int64(filing.seconds[i] != LONE)] += 1


@kernel
def _count_cells(filing, nodes, counts):
    for i in range(len(filing.firsts)):
        if filing.crowds[filing.firsts[i]] >= 0:
            level, first = grid_of(nodes[filing.firsts[i], 1], filing.steps[i])
            left, low, right, high = cells_of(filing.steps[i], level)
            for row in range(low, high + 1):
                for column in range(left, right + 1):
                    counts[first + (row << level) + column, np.int64(filing.seconds[i] != LONE)] += 1


@kernel
def _write_headers(run, starts, counts):
    for k in range(len(counts)):
        if starts[k + 1] > starts[k]:
            run.words[starts[k]] = counts[k, 0]


@kernel
def _fill(filing, run, plain_counts, cell_counts):
    """Write the entries, and count the counts down. Rows come in descending order, each before the last of its list."""
    for i in range(len(filing.firsts) - 1, -1, -1):
        term, steps = filing.firsts[i], filing.steps[i]
        run.nodes[term, 0] |= coarse_cells(steps[0], steps[1], steps[2], steps[3])
        where = run.nodes[term, 1]
        if filing.crowds[term] < 0:
            block = first_of(where), first_of(where) + length_of(where)
            _put(filing, i, run.words, block, (0, 0, 0), plain_counts[term])
            continue
        level, first = grid_of(where, steps)
        left, low, right, high = cells_of(steps, level)
        for row in range(low, high + 1):
            for column in range(left, right + 1):
                cell = first + (row << level) + column
                block = np.int64(run.starts[cell]), np.int64(run.starts[cell + 1])
                _put(filing, i, run.words, block, (level, column, row), cell_counts[cell])


@kernel
def _put(filing, i, words, block, cell, counts):
    """Write one entry of a list in a cell, as the last of `counts` of its kind, and count it down."""
    start, stop = block
    n_lone, n_paired = counts_of(words, start, stop)
    is_paired = np.int64(filing.seconds[i] != LONE)
    counts[is_paired] -= 1
    entry = start + 1 + counts[is_paired] + is_paired * n_lone
    words[entry] = row_word(filing.steps[i], cell)
    words[entry + n_lone + n_paired] = filing.rows[i]
    if is_paired:
        words[entry + n_lone + 2 * n_paired] = filing.seconds[i]


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
def kill(run, firsts, steps, rows):
    """Mark all entries of these rows dead; each is found by bisection, also among a million equals."""
    for i in range(len(rows)):
        where = run.nodes[firsts[i], 1]
        if levels_of(where) == 0:
            start = first_of(where)
            _kill_one(run.words, start, start + length_of(where), rows[i])
            continue
        level, first = grid_of(where, steps[i])
        left, low, right, high = cells_of(steps[i], level)
        for row in range(low, high + 1):
            for cell in range(first + (row << level) + left, first + (row << level) + right + 1):
                _kill_one(run.words, np.int64(run.starts[cell]), np.int64(run.starts[cell + 1]), rows[i])


@kernel
def _kill_one(words, start, stop, row):
    n_lone, n_paired = counts_of(words, start, stop)
    n = n_lone + n_paired
    entry = start + 1 + n
    found = _place_of(words, entry, entry + n_lone, row)
    if found == entry + n_lone or words[found] != row:
        found = _place_of(words, entry + n_lone, entry + n, row)
    words[found - n] = DEAD


@kernel
def _place_of(words, low, high, row):
    """Where in words[low:high], ascending, a row is; `high` if it is beyond."""
    while low < high:
        middle = (low + high) >> 1
        if words[middle] < row:
            low = middle + 1
        else:
            high = middle
    return low

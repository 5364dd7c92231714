"""Building of a run: choose the levels of crowded terms, count the entries of each list, then write them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import starts_of
from nearcast.indexes.pyramid.box_codes import DEAD, Axes, Cell, fitted_axes, mapped_boxes, row_word
from nearcast.indexes.pyramid.run import (
    FINEST,
    FIRST_BITS,
    LEVEL_BITS,
    MANY,
    SPARE,
    RunArrays,
    cells_of,
    coarse_cells,
    counts_of,
    first_of,
    fitting_level,
    grid_of,
    length_of,
)
from nearcast.matching.store import RowStore
from nearcast.structures.term_order import NO_TERM, filing_terms

LONE = np.uint32(0xFFFF_FFFF)  # in place of a second term: the row has one term
_SIZES = np.array([2, 3])  # words of an entry, lone or paired


class _Filing(NamedTuple):
    """The rows of a run, ascending, and the terms that they are filed under."""

    firsts: np.ndarray  # int32[n]  rarest term
    seconds: np.ndarray  # uint32[n]  second rarest term, with MANY if there are more; or LONE
    rows: np.ndarray  # int32[n]
    steps: np.ndarray  # int32[n,4]  the box, mapped
    crowds: np.ndarray  # int32[n_terms]  number of the crowded term, or -1


class _Span(NamedTuple):
    """The words of one list."""

    start: int
    stop: int


def built_run(
    store: RowStore, rows: np.ndarray, bounds: tuple[float, float, float, float], crowded: int
) -> tuple[RunArrays, np.ndarray]:
    """A run over these ascending rows, and the term of each. A term with more than `crowded` rows gets grids."""
    firsts, second = filing_terms(store, rows)
    seconds = second.astype(np.uint32) | np.where(store.arrays.n_terms[rows] > 2, MANY, np.uint32(0))
    seconds[second == NO_TERM] = LONE
    boxes, steps = store.arrays.boxes[rows], np.empty((len(rows), 4), np.int32)
    axes = fitted_axes(boxes, bounds)
    mapped_boxes(axes, boxes, steps)
    is_crowded = np.bincount(firsts) > crowded
    crowds = np.where(is_crowded, np.cumsum(is_crowded) - 1, -1).astype(np.int32)
    return _filled(_Filing(firsts, seconds, rows, steps, crowds), axes), firsts


def _filled(filing: _Filing, axes: Axes) -> RunArrays:
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
    """The words of each list with so many lone and paired rows; an empty list takes none."""
    words: np.ndarray = counts @ _SIZES
    return words + (words > 0)


def _laid_out(filing: _Filing, plain_starts: np.ndarray) -> tuple[np.ndarray, int]:
    """The nodes, still without masks, and the number of cells, with one spare behind each level."""
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
def _count_levels(filing, out):
    for i in range(len(filing.firsts)):
        crowd = filing.crowds[filing.firsts[i]]
        if crowd >= 0:
            out[crowd, fitting_level(filing.steps[i])] += 1


@kernel
def _choose_levels(wanted, in_use):
    """A level needs 2 rows a cell, and 32, to pay for its cache misses; rows of sparser ones join the next coarser."""
    for crowd in range(len(wanted)):
        waiting = 0
        for level in range(FINEST, -1, -1):
            waiting += wanted[crowd, level]
            if waiting >= max(32, 2 << (2 * level)) or (level == 0 and waiting > 0):
                in_use[crowd, level] = True
                waiting = 0


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
    """Write all entries in descending order of rows, each before the one written last in its list. Counts fall to 0."""
    for i in range(len(filing.firsts) - 1, -1, -1):
        term, steps = filing.firsts[i], filing.steps[i]
        run.nodes[term, 0] |= coarse_cells(steps[0], steps[1], steps[2], steps[3])
        where = run.nodes[term, 1]
        if filing.crowds[term] < 0:
            span = _Span(first_of(where), first_of(where) + length_of(where))
            _write_entry(filing, i, run.words, span, Cell(0, 0, 0), plain_counts[term])
            continue
        level, first = grid_of(where, steps)
        left, low, right, high = cells_of(steps, level)
        for row in range(low, high + 1):
            for column in range(left, right + 1):
                cell = first + (row << level) + column
                span = _Span(np.int64(run.starts[cell]), np.int64(run.starts[cell + 1]))
                _write_entry(filing, i, run.words, span, Cell(level, column, row), cell_counts[cell])


@kernel
def _write_entry(filing, i, words, span, cell, counts):
    """Write an entry to the list of a cell, as the last of counts[kind] entries of its kind; count it down."""
    n_lone, n_paired = counts_of(words, span.start, span.stop)
    is_paired = np.int64(filing.seconds[i] != LONE)
    counts[is_paired] -= 1
    entry = span.start + 1 + counts[is_paired] + is_paired * n_lone
    words[entry] = row_word(filing.steps[i], cell)
    words[entry + n_lone + n_paired] = filing.rows[i]
    if is_paired:
        words[entry + n_lone + 2 * n_paired] = filing.seconds[i]

"""Reads the lists of the cells that contain a message, row by row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.intmap import ABSENT as UNKNOWN
from nearcast.arrays.intmap import probe
from nearcast.arrays.jit import kernel, lean_kernel
from nearcast.topk.dissemination.ciq.covers import LEVELS, Grid, cell_number, column_of
from nearcast.topk.dissemination.verify import keep_concerned
from nearcast.topk.rows import RowArrays
from nearcast.topk.score import ALPHA, NORM, SLACK, THETA, Metric, clear_values, set_values

SCANNED, FOUND = range(2)


class CellLists(NamedTuple):
    """Lists by (cell, term). A posting is a row in one of its cells, under one of its terms."""

    list_keys: np.ndarray  # int64[...]  a hash table from (cell, term) to the number of a list
    list_values: np.ndarray  # int32[...]
    starts: np.ndarray  # int64[n_lists+1]
    rows: np.ndarray  # int32[n]  ascending within a list
    nearest: np.ndarray  # float64[n]  the largest spatial similarity of a place in the cell
    limits: np.ndarray  # float64[n]  the least sum of the values of shared terms that can matter in the cell
    own: np.ndarray  # int64[...]  the postings of each row
    own_starts: np.ndarray  # int64[rows+1]


class Merge(NamedTuple):
    """The lists that are read together: one for each term of the message in one cell."""

    positions: np.ndarray  # int64[n]
    stops: np.ndarray  # int64[n]
    values: np.ndarray  # float64[n]  of the terms in the message
    counters: np.ndarray  # int64[2]


class Search(NamedTuple):
    """What a search reads."""

    grid: Grid
    lists: CellLists
    rows: RowArrays
    metric: Metric
    values: np.ndarray  # float64[n_terms]  all ABSENT


@lean_kernel
def limit_of(numbers, row, nearest):
    words = numbers[row, THETA] - numbers[row, ALPHA] * nearest - SLACK
    share = 1.0 - numbers[row, ALPHA]
    if words <= 0.0:
        return 0.0
    if words > share:
        return np.inf
    return words / share * numbers[row, NORM] * (1.0 - SLACK)


@lean_kernel
def set_limits(rows, lists):
    for p in range(len(lists.rows)):
        lists.limits[p] = limit_of(rows.numbers, lists.rows[p], lists.nearest[p])


@lean_kernel
def refit_limits(rows, lists, numbers):
    for row in numbers:
        for k in range(lists.own_starts[row], lists.own_starts[row + 1]):
            p = lists.own[k]
            lists.limits[p] = limit_of(rows.numbers, row, lists.nearest[p])


@kernel
def find_rows(search, ring, arrival, merge, candidates, out_scores):
    """Leave the rows that a message concerns in `candidates`, and their scores; return how many."""
    place, values = ring.places[arrival & (len(ring.ids) - 1)], search.values
    n = search_path(search.grid, search.lists, ring, arrival, merge, candidates)
    set_values(ring, arrival, values)
    n = keep_concerned(search.rows, search.metric, values, place, candidates, n, out_scores)
    clear_values(ring, arrival, values)
    return n


@lean_kernel
def search_path(grid, lists, ring, arrival, merge, out_candidates):
    """Collect the candidates of a message from the cells of every level that contain it; return how many."""
    at, found = arrival & (len(ring.ids) - 1), 0
    for level in range(1, LEVELS + 1):
        column = column_of(grid.xmin, grid.xmax, ring.places[at, 0], level)
        line = column_of(grid.ymin, grid.ymax, ring.places[at, 1], level)
        n = open_lists(lists, ring, at, cell_number(level, column, line), merge)
        found = merge_lists(lists, n, merge, out_candidates, found)
    merge.counters[FOUND] += found
    return found


@lean_kernel
def open_lists(lists, ring, at, cell, merge):
    """Set the merge to the beginnings of the lists of a message's terms in a cell; return how many there are."""
    n, mask = 0, len(ring.terms) - 1
    for k in range(ring.starts[at], ring.starts[at] + ring.counts[at]):
        key = np.int64(cell) << 32 | np.int64(ring.terms[k & mask])
        number = lists.list_values[probe(lists.list_keys, lists.list_values, key)]
        if number != UNKNOWN:
            merge.positions[n] = lists.starts[number]
            merge.stops[n] = lists.starts[number + 1]
            merge.values[n] = ring.values[k & mask]
            n += 1
    return n


@lean_kernel
def merge_lists(lists, n, merge, out_candidates, found):
    """Read the lists in the order of row numbers; add the rows whose cosine reaches their limit."""
    while n > 0:
        row, limit, total, i = lists.rows[merge.positions[0]], 0.0, 0.0, 0
        for k in range(1, n):
            row = min(row, lists.rows[merge.positions[k]])
        while i < n:
            p = merge.positions[i]
            if lists.rows[p] == row:
                total, limit = total + merge.values[i], lists.limits[p]  # one limit for all postings of a row
                merge.positions[i] += 1
                merge.counters[SCANNED] += 1
                if merge.positions[i] == merge.stops[i]:
                    n -= 1
                    merge.positions[i] = merge.positions[n]
                    merge.stops[i] = merge.stops[n]
                    merge.values[i] = merge.values[n]
                    continue
            i += 1
        if total >= limit:
            out_candidates[found] = row
            found += 1
    return found

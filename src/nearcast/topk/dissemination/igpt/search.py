"""Searches the cells and groups for one message. The bounds are numbered as in the paper."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.intmap import ABSENT as UNKNOWN
from nearcast.arrays.intmap import probe
from nearcast.arrays.jit import inline_kernel, lean_kernel
from nearcast.topk.dissemination.igpt.cells import NONE, Cells, distance_to_cell
from nearcast.topk.dissemination.igpt.groups import UP, Directory, Postings
from nearcast.topk.rows import RowArrays
from nearcast.topk.score import ALPHA, NORM, SLACK, THETA, Metric

STAR_SLACK = 1e-6
"""SLACK, divided by 1 - alpha of at least 0.001."""

SUM_UP = 1.01
"""Float32 sums of up to 65,535 weights err by less than a hundredth."""

CELLS, CELLS_PRUNED, GROUPS, GROUPS_PRUNED, ENDED_EARLY, PREFIX_PRUNED, UNSEEN_PRUNED, SCANNED, FOUND = range(9)
"""Positions in `Scratch.counters`."""


class Query(NamedTuple):
    """One message: its terms, heaviest first, and what follows each."""

    terms: np.ndarray  # int32[n]
    weights: np.ndarray  # float64[n]  in the message's vector of length 1
    largest: np.ndarray  # float64[n+1]  the largest weight from each term on
    sums: np.ndarray  # float64[n+1]  the sum of the weights from each term on
    values: np.ndarray  # float64[n_terms]  of all terms; ABSENT where the message has none
    place: np.ndarray  # float64[2]
    arrival: int


class Scratch(NamedTuple):
    """Working memory of a search."""

    seen: np.ndarray  # int32[rows]  the last message for which a row became a candidate or was dropped
    candidates: np.ndarray  # int32[rows]
    waiting: np.ndarray  # int32[cells]
    counters: np.ndarray  # int64[9]


class Index(NamedTuple):
    """What a search reads."""

    rows: RowArrays
    cells: Cells
    postings: Postings
    directory: Directory
    inner: np.ndarray  # float64[rows]  the distance of each row to the border of its cell
    weights: np.ndarray  # float64[n_terms]
    metric: Metric
    prunes_groups: bool


@lean_kernel
def follow_ups(n, query):
    """Set `largest` and `sums` of a message from its weights."""
    query.largest[n] = 0.0
    query.sums[n] = 0.0
    for i in range(n - 1, -1, -1):
        query.largest[i] = max(query.largest[i + 1], query.weights[i])
        query.sums[i] = query.sums[i + 1] + query.weights[i]


@lean_kernel
def search_cells(index, query, n, scratch):
    """Collect the rows that no bound excludes; return how many."""
    n_waiting = 1
    cells, counters = index.cells, scratch.counters
    counters[FOUND] = 0
    scratch.waiting[0] = 0
    while n_waiting > 0:
        n_waiting -= 1
        cell = scratch.waiting[n_waiting]
        counters[CELLS] += 1
        outer = distance_to_cell(cells, cell, index.metric, query.place[0], query.place[1])
        nearest = max(0.0, 1.0 - outer / index.metric.max_dist)
        if index.prunes_groups and cells.least_place[cell] > nearest + STAR_SLACK:  # Lemma 6
            counters[CELLS_PRUNED] += 1
            continue
        if cells.children[cell] != NONE:
            for k in range(4):
                scratch.waiting[n_waiting] = cells.children[cell] + k
                n_waiting += 1
            continue
        for i in range(n):
            number = find_list(index.directory, key_of(cell, query.terms[i]))
            if number != UNKNOWN:
                search_list(index, query, i, number, outer, scratch)
    return counters[FOUND]


@inline_kernel
def key_of(leaf, term):
    """The key of the list of a leaf and a term."""
    return np.int64(leaf) << 32 | np.int64(term)


@inline_kernel
def find_list(directory, key):
    return directory.list_values[probe(directory.list_keys, directory.list_values, key)]


@lean_kernel
def search_list(index, query, i, number, outer, scratch):
    """Collect the rows of one list, group by group."""
    directory, counters = index.directory, scratch.counters
    for group in range(directory.list_starts[number], directory.list_starts[number + 1]):
        start, stop = directory.group_starts[group], directory.group_starts[group + 1]
        counters[GROUPS] += 1
        if index.prunes_groups:
            nearest = max(0.0, 1.0 - outer / index.metric.max_dist)
            end = end_of_group(index.postings, start, stop, query.sums[i], nearest)  # Theorems 3 and 4
            counters[GROUPS_PRUNED] += end == start
            counters[ENDED_EARLY] += stop - end
            stop = end
        for p in range(start, stop):
            row = index.postings.rows[p]
            if row >= 0 and scratch.seen[row] != query.arrival:
                counters[SCANNED] += 1
                test_posting(index, query, i, p, outer, scratch)


@lean_kernel
def end_of_group(postings, start, stop, message_sum, nearest):
    """The first position from which on no row of the group can be reached, by binary search."""
    low, high = start, stop
    while low < high:
        middle = (low + high) >> 1
        most = postings.rest_weights[middle] * UP * message_sum + STAR_SLACK
        if most < postings.theta_stars[middle] - postings.rest_alphas[middle] * nearest:
            high = middle
        else:
            low = middle + 1
    return low


@lean_kernel
def test_posting(index, query, i, p, outer, scratch):
    """Apply the individual bounds to a posting; add its row to the candidates unless one excludes it."""
    row, rank = index.postings.rows[p], index.postings.ranks[p]
    numbers = index.rows.numbers
    norm = numbers[row, NORM]
    far = outer + index.inner[row] if outer > 0.0 else 0.0
    alpha = numbers[row, ALPHA]
    needed = numbers[row, THETA] - alpha * max(0.0, 1.0 - far / index.metric.max_dist) - SLACK
    if (1.0 - alpha) * min(1.0, query.largest[i] * index.postings.sums[p] * SUM_UP) < needed:  # Theorem 1
        scratch.counters[PREFIX_PRUNED] += 1
        return
    per_norm = 1.0 / norm if norm > 0.0 else 0.0
    seen, later, following = seen_and_later(index, query, row, rank)
    rest = min(later * query.largest[i + 1], following * query.sums[i + 1])
    scratch.seen[row] = query.arrival
    if (1.0 - alpha) * min(1.0, (seen + rest) * per_norm) < needed:  # Theorem 2
        scratch.counters[UNSEEN_PRUNED] += 1
        return
    scratch.candidates[scratch.counters[FOUND]] = row
    scratch.counters[FOUND] += 1


@lean_kernel
def seen_and_later(index, query, row, rank):
    """(sum of the message's values for the row's terms up to a rank, sum and largest of the row's later weights)."""
    directory, offset, seen, later, following = index.directory, index.rows.offsets[row], 0.0, 0.0, 0.0
    for k in range(offset, offset + rank + 1):
        seen += max(0.0, query.values[directory.ranked[k]])
    for k in range(offset + rank + 1, offset + index.rows.n_terms[row]):
        weight = index.weights[directory.ranked[k]]
        later += weight
        following = max(following, weight)
    return seen, later, following

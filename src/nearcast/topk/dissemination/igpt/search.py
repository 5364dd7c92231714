"""Searches the cells and groups for one message. The bounds are numbered as in the paper."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel, lean_kernel
from nearcast.topk.dissemination.igpt.cells import NONE, Cells, distance_to_cell
from nearcast.topk.dissemination.igpt.groups import (
    LARGEST_STAR,
    LARGEST_WEIGHT,
    LEAST_THETA,
    UP,
    Directory,
    Postings,
)
from nearcast.topk.dissemination.norm_lists.scan import MessageTerms, read_message
from nearcast.topk.dissemination.verify import keep_concerned
from nearcast.topk.embedding import Embedding, embed
from nearcast.topk.rows import RowArrays
from nearcast.topk.score import ALPHA, NORM, SLACK, THETA, Metric, clear_values, set_values

STAR_SLACK = 1e-6
"""SLACK, divided by 1 - alpha of at least 0.001."""

SUM_UP = 1.01
"""Float32 sums of up to 65,535 weights err by less than a hundredth."""

PRUNED = -1.0

CELLS, CELLS_PRUNED, GROUPS, GROUPS_PRUNED, ENDED_EARLY, PREFIX_PRUNED, UNSEEN_PRUNED, SCANNED, FOUND, SCORED = range(
    10
)
"""Positions in `Scratch.counters`."""


class Query(NamedTuple):
    """One message: its terms, heaviest first, and what follows each."""

    message: MessageTerms
    largest: np.ndarray  # float64[n+1]  the largest weight from each term on
    sums: np.ndarray  # float64[n+1]  the sum of the weights from each term on
    values: np.ndarray  # float64[n_terms]  of all terms; ABSENT where the message has none
    arrival: np.ndarray  # int64[1]


class Scratch(NamedTuple):
    """Working memory of a search."""

    seen: np.ndarray  # int32[rows]  the last message for which a row became a candidate or was dropped
    candidates: np.ndarray  # int32[rows]
    waiting: np.ndarray  # int32[cells]
    outer: np.ndarray  # float64[cells]  at most the distance of the message to each leaf, or PRUNED
    scores: np.ndarray  # float64[rows]
    point: np.ndarray  # float64[3]  the place of the message in the embedding
    counters: np.ndarray  # int64[10]


class Index(NamedTuple):
    """What a search reads."""

    rows: RowArrays
    cells: Cells
    postings: Postings
    directory: Directory
    weights: np.ndarray  # float64[n_terms]
    metric: Metric
    embedding: Embedding
    prunes_groups: bool


@lean_kernel
def follow_ups(n, query):
    """Set `largest` and `sums` of a message from its weights."""
    query.largest[n] = 0.0
    query.sums[n] = 0.0
    weights = query.message.weights
    for i in range(n - 1, -1, -1):
        query.largest[i] = max(query.largest[i + 1], weights[i])
        query.sums[i] = query.sums[i + 1] + weights[i]


@kernel
def find_rows(index, query, ring, arrival, scratch):
    """Leave the rows that a message concerns in scratch.candidates, and their scores; return how many."""
    at = arrival & (len(ring.ids) - 1)
    n = read_message(ring, arrival, index.weights, query.message)
    query.arrival[0] = arrival
    follow_ups(n, query)
    set_values(ring, arrival, query.values)
    scratch.counters[FOUND] = 0
    reach_leaves(index, ring.places[at], scratch)
    for i in range(n):
        search_term(index, query, i, scratch)
    found = scratch.counters[FOUND]
    scratch.counters[SCORED] += found
    values, place = query.values, ring.places[at]
    found = keep_concerned(index.rows, index.metric, values, place, scratch.candidates, found, scratch.scores)
    clear_values(ring, arrival, query.values)
    return found


@lean_kernel
def reach_leaves(index, place, scratch):
    """Set the distances of a message to the leaves that it can reach."""
    cells, counters, point = index.cells, scratch.counters, scratch.point
    point[0], point[1], point[2] = embed(index.embedding, place[0], place[1])
    for cell in range(len(cells.children)):
        scratch.outer[cell] = PRUNED
    scratch.waiting[0] = 0
    n_waiting = 1
    while n_waiting > 0:
        n_waiting -= 1
        cell = scratch.waiting[n_waiting]
        counters[CELLS] += 1
        outer = distance_to_cell(cells, cell, index.embedding, place, point)
        nearest = max(0.0, 1.0 - outer)
        if index.prunes_groups and cells.least_place[cell] > nearest + STAR_SLACK:  # Lemma 6
            counters[CELLS_PRUNED] += 1
        elif cells.children[cell] == NONE:
            scratch.outer[cell] = outer
        else:
            for k in range(4):
                scratch.waiting[n_waiting] = cells.children[cell] + k
                n_waiting += 1


@lean_kernel
def search_term(index, query, i, scratch):
    """Collect the rows under one term of the message, leaf by leaf, that no bound excludes."""
    directory, term = index.directory, query.message.terms[i]
    if term + 1 >= len(directory.term_starts):
        return
    for number in range(directory.term_starts[term], directory.term_starts[term + 1]):
        outer = scratch.outer[directory.list_leaves[number]]
        if outer != PRUNED:
            search_list(index, query, i, number, outer, scratch)


@lean_kernel
def search_list(index, query, i, number, outer, scratch):
    """Collect the rows of one list, group by group."""
    directory, counters, postings = index.directory, scratch.counters, index.postings
    nearest = max(0.0, 1.0 - outer)
    for group in range(directory.list_starts[number], directory.list_starts[number + 1]):
        start, stop = directory.group_starts[group], directory.group_starts[group + 1]
        counters[GROUPS] += 1
        if index.prunes_groups:
            end = start
            if group_can_matter(directory.group_limits, group, query.sums[i], nearest):  # Theorem 3
                end = end_of_group(postings, start + 1, stop, query.sums[i], nearest)  # Theorem 4
            counters[GROUPS_PRUNED] += end == start
            counters[ENDED_EARLY] += stop - end
            stop = end
        counters[SCANNED] += stop - start
        for p in range(start, stop):
            test_posting(index, query, i, p, outer, scratch)


@lean_kernel
def group_can_matter(limits, group, message_sum, nearest):
    """Whether a row of a group can be reached."""
    most = limits[group, LARGEST_WEIGHT] * message_sum + STAR_SLACK
    return most >= limits[group, LEAST_THETA] - limits[group, LARGEST_STAR] * nearest


@lean_kernel
def can_matter(postings, p, message_sum, nearest):
    """Whether a row of a group from position p on can be reached."""
    most = postings.rest_weights[p] * UP * message_sum + STAR_SLACK
    return most >= postings.theta_stars[p] - postings.rest_alphas[p] * nearest


@lean_kernel
def end_of_group(postings, start, stop, message_sum, nearest):
    """The first position from which on no row of the group can be reached, by binary search."""
    low, high = start, stop
    while low < high:
        middle = (low + high) >> 1
        if can_matter(postings, middle, message_sum, nearest):
            low = middle + 1
        else:
            high = middle
    return low


@lean_kernel
def test_posting(index, query, i, p, outer, scratch):
    """Apply the individual bounds to a posting; add its row to the candidates unless one excludes it.

    The first bound reads the columns of postings alone, which are neighbours; most postings end there.
    """
    postings = index.postings
    far = outer + postings.inner[p] if outer > 0.0 else 0.0
    near = max(0.0, 1.0 - far)
    words = min(1.0, query.largest[i] * postings.sums[p] * SUM_UP)
    if words + STAR_SLACK < postings.theta_stars[p] - postings.alpha_stars[p] * near:  # Theorem 1
        scratch.counters[PREFIX_PRUNED] += 1
        return
    row, numbers = postings.rows[p], index.rows.numbers
    if row < 0 or scratch.seen[row] == query.arrival[0]:
        return
    norm, alpha = numbers[row, NORM], numbers[row, ALPHA]
    per_norm = 1.0 / norm if norm > 0.0 else 0.0
    seen, later, following = seen_and_later(index, query, row, postings.ranks[p])
    rest = min(later * query.largest[i + 1], following * query.sums[i + 1])
    scratch.seen[row] = query.arrival[0]
    if (1.0 - alpha) * min(1.0, (seen + rest) * per_norm) < numbers[row, THETA] - alpha * near - SLACK:  # Theorem 2
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

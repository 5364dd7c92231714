"""The best n messages of the window for one row, by a best-first search over blocks of postings.

The terms of a row are ranked, heaviest first. A message is scored where it is met under the first of the row's terms
that it has; there its words are at most (value + gain * sum of w^2 of the row's later terms) / norm of the row.
Postings outside blocks come first, then blocks by falling bound, until no bound reaches the n-th best score so far.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.jit import inline_kernel, lean_kernel
from nearcast.topk.embedding import bent, embed
from nearcast.topk.refill.kd_order import BLOCK
from nearcast.topk.score import ABSENT, ALPHA, NORM, X, Y, combined, is_better

FOUND, SCANNED, SCORED, SEARCHES, LACKS = range(5)
"""Positions in `Search.counters`: messages found so far, postings and headers compared, messages scored, searches, and
the blocks that the last search needed if there were too few.
"""

N_NUMBERS = 8
PX, PY, PZ, WORDS, PLACE, PER_NORM, BEND, FLOOR = range(N_NUMBERS)
"""Positions in `Search.numbers`: the row's point, 1 - alpha, alpha, 1 / norm, the bend, and the least score wanted."""


class Search(NamedTuple):
    """Working memory of a search, and what is known about its row."""

    marks: np.ndarray  # int32[n_terms]  1 + rank of the row's terms, 0 elsewhere
    terms: np.ndarray  # int32[...]   the row's terms by rank
    later: np.ndarray  # float64[...]  the sum of w^2 of the terms after each rank
    numbers: np.ndarray  # float64[8]
    counters: np.ndarray  # int64[5]
    scores: np.ndarray  # float64[n]  a heap of the best so far, the worst first
    arrivals: np.ndarray  # int32[n]
    passing: np.ndarray  # int64[BLOCK]  postings of one block


class Blocks(NamedTuple):
    """The blocks to visit: a heap, the largest bound first."""

    bounds: np.ndarray  # float64[...]
    numbers: np.ndarray  # int64[...]
    ranks: np.ndarray  # int32[...]


def new_search() -> Search:
    whole = (np.empty(0, np.int32), np.empty(0, np.int32))
    return Search(
        *whole,
        np.empty(0),
        np.zeros(N_NUMBERS),
        np.zeros(5, np.int64),
        np.empty(0),
        np.empty(0, np.int32),
        np.empty(BLOCK, np.int64),
    )


def fitted(search: Search, n_terms: int, longest_row: int, n: int) -> Search:
    """The search with room for n results of rows of up to `longest_row` terms."""
    return search._replace(
        marks=grown(search.marks, n_terms, fill=0),
        terms=grown(search.terms, longest_row),
        later=grown(search.later, longest_row),
        scores=grown(search.scores, n),
        arrivals=grown(search.arrivals, n),
    )


def new_blocks(n: int) -> Blocks:
    return Blocks(np.empty(n), np.empty(n, np.int64), np.empty(n, np.int32))


@lean_kernel
def begin_search(search, rows, row, weights, embedding, floor):
    """Set the search up for a row; only messages that score at least `floor` are wanted."""
    n, first = rows.n_terms[row], rows.offsets[row]
    for k in range(n):
        term, i = rows.terms[first + k], k
        while i > 0 and weights[search.terms[i - 1]] < weights[term]:
            search.terms[i] = search.terms[i - 1]
            i -= 1
        search.terms[i] = term
    total = 0.0
    for i in range(n - 1, -1, -1):
        search.later[i] = total
        total += weights[search.terms[i]] ** 2
        search.marks[search.terms[i]] = i + 1
    numbers = search.numbers
    numbers[PX], numbers[PY], numbers[PZ] = embed(embedding, rows.numbers[row, X], rows.numbers[row, Y])
    alpha, norm = rows.numbers[row, ALPHA], rows.numbers[row, NORM]
    numbers[WORDS], numbers[PLACE] = 1.0 - alpha, alpha
    numbers[PER_NORM] = 1.0 / norm if norm > 0.0 else 0.0
    numbers[BEND], numbers[FLOOR] = embedding.bend, floor - embedding.slack
    search.counters[FOUND] = 0
    search.counters[SEARCHES] += 1


@lean_kernel
def end_search(search, rows, row):
    for i in range(rows.n_terms[row]):
        search.marks[search.terms[i]] = 0


@inline_kernel
def least_score(search, n, slack):
    """The least score that can still be among the best n, with slack for rounded bounds."""
    if search.counters[FOUND] < n:
        return search.numbers[FLOOR]
    return max(search.numbers[FLOOR], search.scores[0] - slack)


@inline_kernel
def reaches(numbers, least, words, square):
    """Whether a message with at most these words, and at least this squared distance, can score at least `least`."""
    left = numbers[PLACE] + numbers[WORDS] * min(1.0, words * numbers[PER_NORM]) - least
    return left >= 0.0 and left * left >= numbers[PLACE] * numbers[PLACE] * bent(square, numbers[BEND])


@inline_kernel
def can_reach(search, postings, p, rank, least):
    """Whether the message of a posting of the row's term of this rank can score at least `least`."""
    square = 0.0
    for d in range(3):
        gap = postings.points[p, d] - search.numbers[d]
        square += gap * gap
    return reaches(search.numbers, least, postings.values[p] + postings.gains[p] * search.later[rank], square)


@lean_kernel
def block_bound(search, postings, block, later):
    """The largest score that a message of a block can have."""
    numbers, square = search.numbers, 0.0
    for d in range(3):
        gap = max(postings.lows[block, d] - numbers[d], numbers[d] - postings.highs[block, d], 0.0)
        square += gap * gap
    words = min(1.0, (postings.tops[block, 0] + postings.tops[block, 1] * later) * numbers[PER_NORM])
    place = 1.0 - np.sqrt(bent(square, numbers[BEND]))
    return numbers[PLACE] * place + numbers[WORDS] * words


@lean_kernel
def collect_blocks(search, stretches, postings, n_ranks, out_blocks):
    """Write the blocks of all terms whose bound reaches the floor; return how many, or -1 - how many there are."""
    total = 0
    for i in range(n_ranks):
        total += stretches.ordered[search.terms[i]] // BLOCK
    if total > len(out_blocks.bounds):
        return -1 - total
    n = 0
    for i in range(n_ranks):
        first = stretches.starts[search.terms[i]] // BLOCK
        for block in range(first, first + stretches.ordered[search.terms[i]] // BLOCK):
            bound = block_bound(search, postings, block, search.later[i])
            if bound >= search.numbers[FLOOR]:
                out_blocks.bounds[n] = bound
                out_blocks.numbers[n] = block
                out_blocks.ranks[n] = i
                n += 1
    search.counters[SCANNED] += total
    return n


@lean_kernel
def make_heap(blocks, n):
    """Order the first n blocks as a heap."""
    for k in range((n >> 1) - 1, -1, -1):
        move_down(blocks, k, k, n)


@lean_kernel
def move_down(blocks, source, k, n):
    """Put a block at position k of a heap of n, or below where larger bounds are."""
    bound, number, rank = blocks.bounds[source], blocks.numbers[source], blocks.ranks[source]
    while True:
        child = 2 * k + 1
        if child >= n:
            break
        if child + 1 < n and blocks.bounds[child + 1] > blocks.bounds[child]:
            child += 1
        if blocks.bounds[child] <= bound:
            break
        blocks.bounds[k] = blocks.bounds[child]
        blocks.numbers[k] = blocks.numbers[child]
        blocks.ranks[k] = blocks.ranks[child]
        k = child
    blocks.bounds[k] = bound
    blocks.numbers[k] = number
    blocks.ranks[k] = rank


@lean_kernel
def push(search, n, score, arrival):
    """Add a message to the best n, if it is among them."""
    scores, arrivals, found = search.scores, search.arrivals, search.counters[FOUND]
    if found < n:
        k = found
        search.counters[FOUND] += 1
        while k > 0 and is_better(scores[(k - 1) >> 1], arrivals[(k - 1) >> 1], score, arrival):
            scores[k], arrivals[k] = scores[(k - 1) >> 1], arrivals[(k - 1) >> 1]
            k = (k - 1) >> 1
        scores[k], arrivals[k] = score, arrival
    elif is_better(score, arrival, scores[0], arrivals[0]):
        _sift_down(scores, arrivals, n, score, arrival)


@lean_kernel
def _sift_down(scores, arrivals, n, score, arrival):
    """Replace the worst of n by another message."""
    k = 0
    while True:
        child = 2 * k + 1
        if child >= n:
            break
        right = child + 1
        if right < n and is_better(scores[child], arrivals[child], scores[right], arrivals[right]):
            child = right
        if not is_better(score, arrival, scores[child], arrivals[child]):
            break
        scores[k], arrivals[k] = scores[child], arrivals[child]
        k = child
    scores[k], arrivals[k] = score, arrival


@lean_kernel
def sort_found(search):
    """Sort what was found, best first: the worst goes to the end, again and again."""
    scores, arrivals = search.scores, search.arrivals
    for last in range(search.counters[FOUND] - 1, 0, -1):
        score, arrival = scores[last], arrivals[last]
        scores[last], arrivals[last] = scores[0], arrivals[0]
        _sift_down(scores, arrivals, last, score, arrival)


@lean_kernel
def score_under(ring, arrival, rows, row, metric, marks, rank):
    """The exact score of a message whose first term, by rank, among the row's terms is this one; else ABSENT."""
    at, mask = arrival & (len(ring.ids) - 1), len(ring.terms) - 1
    total = ABSENT
    for k in range(ring.starts[at], ring.starts[at] + ring.counts[at]):
        mark = marks[ring.terms[k & mask]]
        if mark == 0:
            continue
        if mark <= rank:
            return ABSENT
        value = ring.values[k & mask]
        total = value if total < 0.0 else total + value
    return combined(rows.numbers, row, metric, total, ring.places[at, 0], ring.places[at, 1])

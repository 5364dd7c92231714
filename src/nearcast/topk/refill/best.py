"""Runs searches over the message index, and puts what they find into buffers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel, lean_kernel
from nearcast.topk.buffered.buffers import COMPLETE, UNIT, Buffers, drop_dominated, refilled
from nearcast.topk.embedding import Embedding
from nearcast.topk.method import Results
from nearcast.topk.refill.kd_order import BLOCK
from nearcast.topk.refill.policy import Policy
from nearcast.topk.refill.postings import MessageIndex, Postings, Stretches
from nearcast.topk.refill.query import (
    FOUND,
    SCANNED,
    SCORED,
    begin_search,
    collect_blocks,
    end_search,
    fitted,
    least_score,
    new_blocks,
    new_search,
    push,
    reaches,
    score_under,
    sort_found,
)
from nearcast.topk.rows import RowArrays, TopRows
from nearcast.topk.score import THETA, Metric
from nearcast.topk.window import Ring, Window

FIXED_WORK, WORK_OF_A_SCORE = 6000, 50
"""What a refill costs before it scans, and an exact score, in entries of a buffer that are moved. An entry is taken
as 10 ns (an insert into 30 entries takes 0.2 to 0.5 µs); a refill took 100 to 200 µs, of which 60 to 80 are fixed.
"""

BOTTOM = -1.0
"""Below every score: a search without a floor."""


class World(NamedTuple):
    """What a search reads."""

    ring: Ring
    rows: RowArrays
    stretches: Stretches
    postings: Postings
    metric: Metric
    embedding: Embedding
    first: int  # the first live message


class Refiller:
    """Fills the buffers of rows from the window."""

    def __init__(self, rows: TopRows, window: Window, metric: Metric, index: MessageIndex, policy: Policy) -> None:
        self.rows = rows
        self.window = window
        self.metric = metric
        self.index = index
        self.policy = policy
        self._search = new_search()
        self._blocks = new_blocks(1024)
        self.n_refills = 0

    def refill(self, numbers: np.ndarray, buffers: Buffers, weights: np.ndarray) -> None:
        """Give these rows new buffers and thetas, as the policy says."""
        ks = self.rows.arrays.ks
        depths = np.minimum(self.policy.depths(ks[numbers]), len(self.window))
        before = self._work()
        for row, depth in zip(numbers.tolist(), depths.tolist(), strict=True):
            self._fill(row, depth, buffers, weights)
        self.n_refills += len(numbers)
        self.policy.learn(FIXED_WORK * len(numbers) + self._work() - before, len(numbers))

    def _work(self) -> int:
        """Work of all searches so far, in entries of a buffer that are moved."""
        counters = self._search.counters
        return int(counters[SCANNED] + WORK_OF_A_SCORE * counters[SCORED])

    def _fill(self, row: int, depth: int, buffers: Buffers, weights: np.ndarray) -> None:
        share, k = self.policy.share_of_kth, int(self.rows.arrays.ks[row])
        floor = BOTTOM
        n = self.best(row, depth, floor, weights)
        if share > 0.0 and n == k:
            floor = share * float(self._search.scores[n - 1])
            depth = len(self.window)
            n = self.best(row, depth, floor, weights)
        is_cut = n == depth and depth < len(self.window)
        theta = float(self._search.scores[n - 1]) if is_cut else floor if floor > 0.0 else COMPLETE
        self.rows.arrays.numbers[row, THETA] = theta
        buffers.reserve(n + UNIT)
        search = self._search
        put_found(buffers.arrays, buffers.head, self.rows.arrays, row, search.scores, search.arrivals, n)

    def best(self, row: int, n: int, floor: float, weights: np.ndarray) -> int:
        """Search for the best n messages of a row that score at least `floor`; return how many were found."""
        rows = self.rows.arrays
        self._search = search = fitted(self._search, len(weights), int(rows.n_terms[row]), max(n, 1))
        if n == 0:
            return 0
        begin_search(search, rows, row, weights, self.index.embedding, floor)
        world = self._world()
        while True:
            done = run_search(world, search, self._blocks, row, n)
            if done >= 0:
                break
            self._blocks = new_blocks(-done * 3 // 2)
        end_search(search, rows, row)
        sort_found(search)
        return drop_below(search, floor)

    def _world(self) -> World:
        index, first = self.index, self.window.first
        return World(
            self.window.ring, self.rows.arrays, index.stretches, index.postings, self.metric, index.embedding, first
        )

    def results(self, row: int, n: int, weights: np.ndarray) -> Results:
        """The best n messages of a row, from the window alone."""
        found = self.best(row, min(n, len(self.window)), BOTTOM, weights)
        return Results(self._search.arrivals[:found].astype(np.int64), self._search.scores[:found].copy())

    @property
    def stats(self) -> dict[str, int]:
        counters = self._search.counters
        return {
            "refills": self.n_refills,
            "refill_scanned": int(counters[SCANNED]),
            "refill_scored": int(counters[SCORED]),
        }


@kernel
def run_search(world, search, blocks, row, n):
    """Find the best n messages; return 0, or what `collect_blocks` returns if `blocks` is too short."""
    n_ranks = world.rows.n_terms[row]
    n_blocks = collect_blocks(search, world.stretches, world.postings, n_ranks, blocks)
    if n_blocks < 0:
        return n_blocks
    for i in range(n_ranks):
        term = search.terms[i]
        start = world.stretches.starts[term]
        first, stop = start + world.stretches.ordered[term], start + world.stretches.counts[term]
        scan_postings(world, search, row, n, i, first, stop)
    order = np.argsort(-blocks.bounds[:n_blocks])
    for k in order:
        if blocks.bounds[k] < least_score(search, n, world.embedding.slack):
            break
        first = blocks.numbers[k] * BLOCK
        scan_postings(world, search, row, n, blocks.ranks[k], first, first + BLOCK)
    return 0


@lean_kernel
def scan_postings(world, search, row, n, rank, first, stop):
    """Score the live messages of some postings of the row's term of this rank, where their bound allows."""
    postings, numbers, later = world.postings, search.numbers, search.later[rank]
    search.counters[SCANNED] += stop - first
    least = least_score(search, n, world.embedding.slack)
    for p in range(first, stop):
        arrival = postings.arrivals[p]
        if arrival < world.first:
            continue
        square = 0.0
        for d in range(3):
            gap = postings.points[p, d] - numbers[d]
            square += gap * gap
        if not reaches(numbers, least, postings.values[p] + postings.gains[p] * later, square):
            continue
        search.counters[SCORED] += 1
        score = score_under(world.ring, arrival, world.rows, row, world.metric, search.marks, rank)
        if score >= 0.0:
            push(search, n, score, arrival)
            least = least_score(search, n, world.embedding.slack)


@lean_kernel
def drop_below(search, floor):
    """Forget what was found below the floor; return how many are left. They are sorted, best first."""
    n = search.counters[FOUND]
    while n > 0 and search.scores[n - 1] < floor:
        n -= 1
    search.counters[FOUND] = n
    return n


@lean_kernel
def put_found(buffers, head, rows, row, scores, arrivals, n):
    """Fill a buffer with those of the n messages found that it keeps. It has room for them."""
    keep, most = buffers.sizes[row, 1], buffers.sizes[row, 0]
    if len(buffers.dominators) or keep < most:
        n = drop_dominated(scores, arrivals, 0, n, rows.ks[row])
    if n > most and len(buffers.dominators) == 0:
        n = keep
        rows.numbers[row, THETA] = scores[keep - 1]
    refilled(buffers, head, row, scores, arrivals, n)

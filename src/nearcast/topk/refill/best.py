"""Runs searches over the message index, and puts what they find into buffers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel, lean_kernel
from nearcast.arrays.vector import prefetch
from nearcast.topk.buffered.buffers import COMPLETE, END, UNIT, Buffers, drop_dominated, refilled
from nearcast.topk.embedding import Embedding
from nearcast.topk.refill.kd_order import BLOCK
from nearcast.topk.refill.policy import Policy
from nearcast.topk.refill.postings import MessageIndex, Postings, Stretches
from nearcast.topk.refill.query import (
    FOUND,
    LACKS,
    SCANNED,
    SCORED,
    begin_search,
    can_reach,
    collect_blocks,
    end_search,
    fitted,
    least_score,
    make_heap,
    move_down,
    new_blocks,
    new_search,
    push,
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
    stop: int  # after the last one


class Plan(NamedTuple):
    """Which rows are refilled, and how."""

    rows: np.ndarray  # int32[n]
    depths: np.ndarray  # int64[n]  how many messages to fetch
    share_of_kth: float  # as in Policy
    weights: np.ndarray  # float64[n_terms]


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
        live, arrays = len(self.window), self.rows.arrays
        depths = np.minimum(self.policy.depths(arrays.ks[numbers]), live)
        deepest = live if self.policy.share_of_kth > 0.0 else int(depths.max(initial=1))
        self._search = fitted(self._search, len(weights), int(arrays.n_terms[numbers].max(initial=1)), deepest)
        plan = Plan(numbers, depths, self.policy.share_of_kth, weights)
        before, done = self._work(), 0
        while done < len(numbers):
            needs = (plan, self._world(), self._search, self._blocks, buffers.arrays, buffers.head)
            done = int(fill_rows(*needs, done))
            if done < len(numbers):
                self._make_room(buffers)
        self.n_refills += len(numbers)
        self.policy.learn(FIXED_WORK * len(numbers) + self._work() - before, len(numbers))

    def _make_room(self, buffers: Buffers) -> None:
        """Make the room that `fill_rows` lacks: blocks, or entries of buffers."""
        if self._search.counters[LACKS] > 0:
            self._blocks = new_blocks(int(self._search.counters[LACKS]) * 3 // 2)
        else:
            buffers.reserve(len(self._search.scores) + UNIT + len(buffers.arrays.rounded) // 32)

    def _work(self) -> int:
        """Work of all searches so far, in entries of a buffer that are moved."""
        counters = self._search.counters
        return int(counters[SCANNED] + WORK_OF_A_SCORE * counters[SCORED])

    def _world(self) -> World:
        index, window = self.index, self.window
        own = (self.rows.arrays, index.stretches, index.postings, self.metric, index.embedding)
        return World(window.ring, *own, window.first, window.stop)

    @property
    def stats(self) -> dict[str, int]:
        counters = self._search.counters
        return {
            "refills": self.n_refills,
            "refill_scanned": int(counters[SCANNED]),
            "refill_scored": int(counters[SCORED]),
        }


@kernel
def fill_rows(plan, world, search, blocks, buffers, head, done):
    """Give rows new buffers, from row `done` of the plan on; return how many are done.

    It stops where room lacks: `search.counters[LACKS]` says how many blocks, or 0 if the buffers need room.
    """
    for i in range(done, len(plan.rows)):
        search.counters[LACKS] = 0
        if head[END] + len(search.scores) + UNIT > len(buffers.rounded):
            return i
        row, depth, live = plan.rows[i], plan.depths[i], world.stop - world.first
        k, floor = world.rows.ks[row], BOTTOM
        n = find_best(world, search, blocks, row, depth, floor, plan.weights)
        if plan.share_of_kth > 0.0 and n == k:
            floor, depth = plan.share_of_kth * search.scores[n - 1], live
            n = find_best(world, search, blocks, row, depth, floor, plan.weights)
        if n < 0:
            return i
        theta = floor if floor > 0.0 else COMPLETE
        if n == depth and depth < live:
            theta = search.scores[n - 1]
        world.rows.numbers[row, THETA] = theta
        put_found(buffers, head, world.rows, row, search.scores, search.arrivals, n)
    return len(plan.rows)


@kernel
def find_best(world, search, blocks, row, n, floor, weights):
    """Leave the best n messages of a row that score at least `floor` in the search, best first; return how many.

    Negative if `blocks` is too short.
    """
    if n == 0:
        return 0
    begin_search(search, world.rows, row, weights, world.embedding, floor)
    done = run_search(world, search, blocks, row, n)
    end_search(search, world.rows, row)
    if done < 0:
        search.counters[LACKS] = -done
        return -1
    sort_found(search)
    return drop_below(search, floor)


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
    make_heap(blocks, n_blocks)
    while n_blocks > 0 and blocks.bounds[0] >= least_score(search, n, world.embedding.slack):
        first, rank = blocks.numbers[0] * BLOCK, blocks.ranks[0]
        scan_postings(world, search, row, n, rank, first, first + BLOCK)
        n_blocks -= 1
        move_down(blocks, n_blocks, 0, n_blocks)
    return 0


@lean_kernel
def scan_postings(world, search, row, n, rank, first, stop):
    """Score the live messages of some postings of the row's term of this rank, where their bound allows."""
    search.counters[SCANNED] += stop - first
    for base in range(first, stop, BLOCK):
        n_passing = find_passing(world, search, n, rank, base, min(base + BLOCK, stop))
        score_passing(world, search, row, n, rank, n_passing)


@lean_kernel
def find_passing(world, search, n, rank, first, stop):
    """Write the postings whose bound allows them, and prefetch their messages; return how many."""
    ring, postings, passing, found = world.ring, world.postings, search.passing, 0
    mask, term_mask = len(ring.ids) - 1, len(ring.terms) - 1
    least = least_score(search, n, world.embedding.slack)
    for p in range(first, stop):
        if postings.arrivals[p] >= world.first and can_reach(search, postings, p, rank, least):
            at = postings.arrivals[p] & mask
            prefetch(ring.starts, at)
            prefetch(ring.counts, at)
            prefetch(ring.places, 2 * at)
            passing[found] = p
            found += 1
    for i in range(found):
        at = ring.starts[postings.arrivals[passing[i]] & mask] & term_mask
        prefetch(ring.terms, at)
        prefetch(ring.values, at)
    return found


@lean_kernel
def score_passing(world, search, row, n, rank, n_passing):
    """Score the messages of the first n_passing postings, unless the best n have become too good for them."""
    postings = world.postings
    for i in range(n_passing):
        p = search.passing[i]
        if not can_reach(search, postings, p, rank, least_score(search, n, world.embedding.slack)):
            continue
        search.counters[SCORED] += 1
        arrival = postings.arrivals[p]
        score = score_under(world.ring, arrival, world.rows, row, world.metric, search.marks, rank)
        if score >= 0.0:
            push(search, n, score, arrival)


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

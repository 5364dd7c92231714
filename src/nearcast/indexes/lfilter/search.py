"""The search: matches messages in order, each by the strategy that is expected to be the cheapest.

If all messages of a batch take the trie early, the search is that of `mbr-trie`. Otherwise runs of messages that do are
walked in the same way, and the others are matched one by one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel, lean_kernel
from nearcast.indexes.lfilter.choice import (
    BY_CELLS,
    BY_TRIE,
    UNDECIDED,
    choose,
    choose_early,
    choose_for_range,
    cost_if_all_by_trie,
    is_range,
)
from nearcast.indexes.lfilter.costs import CELL, NODE, ROW, TOKEN, chance_of_term, cost_of_entries, cost_of_parts
from nearcast.indexes.lfilter.loads import LENGTHS
from nearcast.indexes.lfilter.prune import Pruned, prune
from nearcast.matching.predicate import mark_terms
from nearcast.structures.quadtree.search import scan_nodes, visited_nodes
from nearcast.structures.trie.probe import BY_COST
from nearcast.structures.trie.search import (
    FOUND,
    NODES,
    READ,
    Walk,
    message_for_trie,
    new_walk,
    search_trie,
    unmark_ranks,
    walk_run,
)

_COUNT, _EXPECTED, _SPENT = range(3)  # columns of a tally: messages, expected and spent nanoseconds


class Scratch(NamedTuple):
    """Working memory of a thread, zero between messages."""

    marks: np.ndarray  # uint8[n_terms]
    positions: np.ndarray  # int32[n_ranks]


class _Plan(NamedTuple):
    """The strategy of each message, and its expected cost."""

    strategies: np.ndarray  # uint8[n]
    costs: np.ndarray  # float64[n]


@kernel
def search_by_trie(trie, messages, model, positions, strategy, starts):
    """Fill starts; return the rows that hold, the nodes reached, the rows read and the expected cost.

    Nothing is searched if the expected cost is UNDECIDED: not all messages take the trie early.
    """
    expected = cost_if_all_by_trie(model, messages.terms, messages.term_starts, strategy)
    if expected == UNDECIDED:
        return np.empty(0, np.int32), 0, 0, expected
    rows, nodes, read = search_trie(trie, messages, BY_COST, positions, starts)
    return rows, nodes, read, expected


@kernel
def search_all(view, messages, model, scratch, strategy, starts, tally):
    """Fill starts and tally; return the rows that hold, the number of nodes reached and the number of entries read.

    The tally, float64[3,3], counts messages, expected and spent nanoseconds by strategy. Tuples are taken apart before
    the loop: passing their parts for each message takes longer than a choice.
    """
    plan = _Plan(np.empty(len(starts) - 1, np.uint8), np.empty(len(starts) - 1))
    strategies, costs = plan.strategies, plan.costs
    choose_early(model, messages.terms, messages.term_starts, strategy, strategies, costs)
    marks, quad, counts = scratch.marks, view.quad, view.quad.lists.counts
    walk = new_walk(BY_COST, scratch.positions)
    out, stack, work, m, nowhere = walk.out, walk.stack, walk.work, 0, np.empty(0, np.int32)
    while m < len(strategies):
        if strategies[m] == BY_TRIE:
            walk = Walk(walk.probe, walk.positions, walk.box, out, stack, work)
            m, out, stack = _walk_run(view.trie, messages, plan, m, walk, starts, tally)
            continue
        box, chosen, cells = messages.boxes[m], (np.int64(BY_CELLS), costs[m]), nowhere
        terms = messages.terms[messages.term_starts[m] : messages.term_starts[m + 1]]
        if is_range(box):
            chosen = choose_for_range(quad, model, terms, box, costs[m], strategy)
        if chosen[0] != BY_TRIE:
            cells = visited_nodes(quad, terms, box)
            chosen = choose(counts, model, terms, box, cells, chosen, strategy)
        strategies[m], costs[m] = chosen
        work[NODES] += len(cells)
        tally[strategies[m], _SPENT] += CELL * len(cells)
        if strategies[m] == BY_TRIE:
            continue
        mark_terms(marks, messages, m, 1)
        if strategies[m] == BY_CELLS:
            out, n, read = scan_nodes(quad, cells, view.rows, marks, box, out, work[FOUND])
            spent = cost_of_entries(read, chance_of_term(model.marked, LENGTHS, len(terms)))
        else:
            message = message_for_trie(view.trie.ranks, messages, m, scratch.positions)
            found = prune(view, message, marks, cells, Pruned(out, work[FOUND], np.int64(0), np.int64(0), np.int64(0)))
            unmark_ranks(message)
            out, n, read = found.out, found.n, found.entries
            work[NODES] += found.nodes
            spent = cost_of_parts(len(terms) * len(cells), found.parts, read)
        mark_terms(marks, messages, m, 0)
        work[READ] += read
        _count(tally[strategies[m]], costs[m : m + 1], spent)
        m += 1
        starts[m] = work[FOUND] = n
    return out[: work[FOUND]].copy(), work[NODES], work[READ]


@kernel
def _walk_run(trie, messages, plan, m, walk, starts, tally):
    """Match the messages from m on that take the trie, in order; return where they end, and the walk's buffers."""
    stop, nodes, read = m, walk.work[NODES], walk.work[READ]
    while stop < len(plan.strategies) and plan.strategies[stop] == BY_TRIE:
        stop += 1
    walk = walk_run(trie, messages, m, stop, walk, starts)
    n_terms = messages.term_starts[stop] - messages.term_starts[m]
    spent = TOKEN * n_terms + NODE * (walk.work[NODES] - nodes) + ROW * (walk.work[READ] - read)
    _count(tally[BY_TRIE], plan.costs[m:stop], spent)
    return stop, walk.out, walk.stack


@lean_kernel
def _count(own, costs, spent):
    """Add messages with these expected costs, which cost `spent` together, to a strategy's line of the tally."""
    own[_COUNT] += len(costs)
    for k in range(len(costs)):
        own[_EXPECTED] += costs[k]
    own[_SPENT] += spent

"""The choice of a strategy for each message, by its expected cost.

BY_TRIE    the trie filters, and only the places of rows in its lists are tested;
BY_CELLS   the quadtree filters, and the lists of its nodes are verified directly;
BY_LISTS   the quadtree filters, and its lists are cut by walking down the trie.

BY_TRIE is taken early if it costs little compared with a point of the quadtree: estimating more precisely would cost
more than it saves. Otherwise a range decides about BY_TRIE by the expected number of the quadtree's entries, and the
lists that the quadtree's filter finds decide between the other two. For a point these lists decide among all three.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import kernel, lean_kernel
from nearcast.indexes.lfilter.costs import (
    CELL,
    OPENING,
    chance_of_term,
    cost_by_trie,
    cost_of_entries,
    cost_of_lists,
    estimate_lists,
    prefetch_loads,
)
from nearcast.indexes.lfilter.loads import LENGTHS

UNDECIDED = -1.0
STRATEGIES = ("trie", "cells", "lists")
BY_TRIE, BY_CELLS, BY_LISTS, CHEAPEST = range(4)
_EARLY = 2.0  # times the quadtree's cost of an average point: a walk that costs less is taken without further estimates
_LEVEL = 6  # of the quadtree, whose nodes estimate how much a range will read: 4,096 cells of the space


@lean_kernel
def cost_if_all_by_trie(model, terms, term_starts, strategy):
    """The expected cost of a batch if all its messages take the trie early, or UNDECIDED.

    The trie is also taken where the quadtree would save less than opening it for a batch costs.
    """
    total = saved = 0.0
    for m in range(len(term_starts) - 1):
        _prefetch_next(model.loads, terms, term_starts, m)
        own = terms[term_starts[m] : term_starts[m + 1]]
        chosen, cost, other = _choose_early(model, own, strategy, OPENING - saved)
        if chosen != BY_TRIE:
            saved += cost - other
            if saved > OPENING:
                return UNDECIDED
        total += cost
    return total


@lean_kernel
def choose_early(model, terms, term_starts, strategy, strategies, costs):
    """For each message that takes the trie early, write BY_TRIE and its expected cost.

    For the others write BY_CELLS, which leaves them open, and a lower bound on the cost of the trie.
    """
    for m in range(len(strategies)):
        _prefetch_next(model.loads, terms, term_starts, m)
        own = terms[term_starts[m] : term_starts[m + 1]]
        strategies[m], costs[m], _ = _choose_early(model, own, strategy, 0.0)


@lean_kernel
def _prefetch_next(loads, terms, term_starts, m):
    """Prefetch the loads of the message after m: a cache miss for each term."""
    if m + 2 < len(term_starts):
        prefetch_loads(loads, terms, term_starts[m + 1], term_starts[m + 2])


@lean_kernel
def _choose_early(model, terms, strategy, further):
    """A message's strategy, its cost by the trie, and the quadtree's cost of a point at an average place.

    The cost by the trie is summed up to `further` beyond the limit of the early choice.
    """
    if strategy == BY_TRIE:
        return BY_TRIE, cost_by_trie(model.loads, LENGTHS, terms, np.inf), np.inf
    if strategy != CHEAPEST:
        return BY_CELLS, np.inf, 0.0
    other = _cheaper(model, len(terms), model.usual[0], model.usual[1], strategy)[1] + CELL * model.usual[0]
    cost = cost_by_trie(model.loads, LENGTHS, terms, _EARLY * other + further)
    return (BY_TRIE if cost < _EARLY * other else BY_CELLS), cost, other


@lean_kernel
def is_range(box):
    return box[0] != box[2] or box[1] != box[3]


@kernel
def choose_for_range(quad, model, terms, box, least, strategy):
    """BY_TRIE or another strategy for a range, and its expected cost. The trie costs at least `least`."""
    leaves, entries = estimate_lists(quad, box, _LEVEL)
    n_lists = leaves + _LEVEL
    chosen, cost = _cheaper(model, len(terms), n_lists, entries, strategy)
    return _or_by_trie(model, terms, least, (chosen, cost + CELL * n_lists), strategy)


@lean_kernel
def choose(counts, model, terms, box, cells, chosen, strategy):
    """The strategy and its cost after the quadtree's filter has found the lists.

    `chosen` is the strategy and cost estimated before, which stays unless the strategy changes. For a point it holds
    only a lower bound on the cost of the trie: its filter is short, and all strategies pay for it.
    """
    entries = np.int64(0)
    for k in range(len(cells)):
        entries += counts[cells[k]]
    better, cost = _cheaper(model, len(terms), len(cells), entries, strategy)
    if not is_range(box):
        better, cost = _or_by_trie(model, terms, chosen[1], (better, cost), strategy)
    elif better == chosen[0]:
        return chosen
    return better, cost + CELL * len(cells)


@lean_kernel
def _or_by_trie(model, terms, least, other, strategy):
    """BY_TRIE and its cost if it is allowed and expected to be cheaper than the other strategy, else the other."""
    if strategy == CHEAPEST and least < other[1]:
        cost = cost_by_trie(model.loads, LENGTHS, terms, other[1])
        if cost < other[1]:
            return BY_TRIE, cost
    return other


@lean_kernel
def _cheaper(model, n_terms, n_lists, entries, strategy):
    """BY_CELLS or BY_LISTS, and its cost without the filter."""
    chance = chance_of_term(model.marked, LENGTHS, n_terms)
    by_cells = cost_of_entries(entries, chance)
    by_lists = cost_of_lists(n_terms, n_lists, entries, chance)
    if strategy == BY_CELLS or (strategy == CHEAPEST and by_cells <= by_lists):
        return BY_CELLS, by_cells
    return BY_LISTS, by_lists

"""The choice of a way for each message, by what it is expected to cost.

BY_TRIE    the trie filters, and its lists are asked for their place alone;
BY_CELLS   the quadtree filters, and the lists of its nodes are verified directly;
BY_LISTS   the quadtree filters, and its lists are taken down the trie.

The first is taken at once where it is expected to cost little beside what the quadtree does for a point in the mean
place: to ask more would cost more than it tells (6 us of a walk of 16). Else for a range it is chosen, or not, before
anything is filtered, by the expected number of the quadtree's entries; between the other two the lists decide that the
quadtree's filter found. For a point they decide between all three.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import kernel, lean_kernel
from nearcast.indexes.lfilter.costs import (
    CELL,
    OPENING,
    ask_for_loads,
    chance_of_term,
    cost_by_trie,
    cost_of_entries,
    cost_of_lists,
)
from nearcast.indexes.lfilter.estimate import expected
from nearcast.indexes.lfilter.loads import LENGTHS

OPEN = -1.0
WAYS = ("trie", "cells", "lists")
BY_TRIE, BY_CELLS, BY_LISTS, CHEAPEST = range(4)
_AT_ONCE = 2.0  # times the quadtree's cost of a point in the mean place: a walk below it is not weighed any further
_LEVEL = 6  # of the quadtree, whose nodes tell how much a range will meet: 4,096 cells of the space


@lean_kernel
def cost_at_once(model, terms, term_starts, way):
    """What all messages of a batch are expected to cost by the trie, where that is taken for all of them at once; else
    OPEN. So it is where the quadtree would save less than it takes to open it for a batch.
    """
    total = saved = 0.0
    for m in range(len(term_starts) - 1):
        _ask_for_next(model.loads, terms, term_starts, m)
        chosen, cost, other = _at_once(model, terms[term_starts[m] : term_starts[m + 1]], way, OPENING - saved)
        if chosen != BY_TRIE:
            saved += cost - other
            if saved > OPENING:
                return OPEN
        total += cost
    return total


@lean_kernel
def choose_at_once(model, terms, term_starts, way, ways, costs):
    """For each message BY_TRIE and what that is expected to cost, where it is taken at once; else BY_CELLS, which
    leaves it open, and what the trie would cost at least.
    """
    for m in range(len(ways)):
        _ask_for_next(model.loads, terms, term_starts, m)
        ways[m], costs[m], _ = _at_once(model, terms[term_starts[m] : term_starts[m + 1]], way, 0.0)


@lean_kernel
def _ask_for_next(loads, terms, term_starts, m):
    """What is read for the message after m: a cache miss for each term."""
    if m + 2 < len(term_starts):
        ask_for_loads(loads, terms, term_starts[m + 1], term_starts[m + 2])


@lean_kernel
def _at_once(model, terms, way, further):
    """A message's way; its cost by the trie, no more than `further` beyond where it is open being added up; and what
    the quadtree costs for a point in the mean place.
    """
    if way == BY_TRIE:
        return BY_TRIE, cost_by_trie(model.loads, LENGTHS, terms, np.inf), np.inf
    if way != CHEAPEST:
        return BY_CELLS, np.inf, 0.0
    other = _cheaper(model, len(terms), model.usual[0], model.usual[1], way)[1] + CELL * model.usual[0]
    cost = cost_by_trie(model.loads, LENGTHS, terms, _AT_ONCE * other + further)
    return (BY_TRIE if cost < _AT_ONCE * other else BY_CELLS), cost, other


@lean_kernel
def is_range(box):
    return box[0] != box[2] or box[1] != box[3]


@kernel
def guess(quad, model, terms, box, least, way):
    """The way of a range before anything is filtered, and its expected cost: by trie, or not. The trie costs `least`
    at least.
    """
    leaves, entries = expected(quad, box, _LEVEL)
    n_lists = leaves + _LEVEL
    chosen, cost = _cheaper(model, len(terms), n_lists, entries, way)
    return _or_by_trie(model, terms, least, (chosen, cost + CELL * n_lists), way)


@lean_kernel
def choose(counts, model, terms, box, cells, guessed, way):
    """The way once the quadtree's filter has told the lists. Its cost stays what was guessed, unless the way changes.

    For a point there is no guess, but the least that the trie costs: the filter is short, and all ways are still open.
    What it took is spent by all.
    """
    entries = np.int64(0)
    for k in range(len(cells)):
        entries += counts[cells[k]]
    better, cost = _cheaper(model, len(terms), len(cells), entries, way)
    if not is_range(box):
        better, cost = _or_by_trie(model, terms, guessed[1], (better, cost), way)
    elif better == guessed[0]:
        return guessed
    return better, cost + CELL * len(cells)


@lean_kernel
def _or_by_trie(model, terms, least, other, way):
    """The trie if it is expected to be cheaper than the other way, and that is open."""
    if way == CHEAPEST and least < other[1]:
        cost = cost_by_trie(model.loads, LENGTHS, terms, other[1])
        if cost < other[1]:
            return BY_TRIE, cost
    return other


@lean_kernel
def _cheaper(model, n_terms, n_lists, entries, way):
    """To verify lists directly or to go down the trie with them, and the cost, the filter's apart."""
    chance = chance_of_term(model.marked, LENGTHS, n_terms)
    by_cells = cost_of_entries(entries, chance)
    by_lists = cost_of_lists(n_terms, n_lists, entries, chance)
    if way == BY_CELLS or (way == CHEAPEST and by_cells <= by_lists):
        return BY_CELLS, by_cells
    return BY_LISTS, by_lists

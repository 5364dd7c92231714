"""One message after another, each by the way that is expected to be the cheapest.

BY_TRIE    the trie filters, and its lists are asked for their place alone;
BY_CELLS   the quadtree filters, and the lists of its nodes are verified directly;
BY_LISTS   the quadtree filters, and its lists are taken down the trie.

The first is taken at once where it is expected to cost little beside what the quadtree does for a point in the mean
place: to ask more would cost more than it tells (6 us of a walk of 16). Else for a range it is chosen, or not, before
anything is filtered, by the expected number of the quadtree's entries; between the other two the lists decide that the
quadtree's filter found. For a point they decide between all three.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel, lean_kernel
from nearcast.matching.lfilter.costs import (
    CELL,
    NODE,
    ROW,
    TOKEN,
    chance_of_term,
    cost_by_trie,
    cost_of_entries,
    cost_of_lists,
    cost_of_parts,
)
from nearcast.matching.lfilter.prune import Both, prune
from nearcast.matching.predicate import mark_terms
from nearcast.matching.quadtree.estimate import expected
from nearcast.matching.quadtree.search import scan_nodes, visited_nodes
from nearcast.matching.trie.search import BY_COST, Held, asked, forget, walk
from nearcast.model import Hits, MessageBatch, Work

WAYS = ("trie", "cells", "lists")
BY_TRIE, BY_CELLS, BY_LISTS, CHEAPEST = range(4)
_AT_ONCE = 2.0  # times the quadtree's cost of a point in the mean place: a walk below it is not weighed any further
_LEVEL = 6  # of the quadtree, whose nodes tell how much a range will meet: 4,096 cells of the space


class Model(NamedTuple):
    """What the cost model knows of the rows."""

    loads: np.ndarray  # float32[n_terms, n_lengths]  see loads.py
    marked: np.ndarray  # float64[n_lengths]  how likely the rarest term of a row is in a message
    lengths: np.ndarray  # float64[n_lengths]
    usual: np.ndarray  # float64[2]  lists and entries of the quadtree that a point meets on average


class Tools(NamedTuple):
    """Memory of a thread, all zero between messages."""

    marks: np.ndarray  # uint8[n_terms]
    spots: np.ndarray  # int32[n_places]


def search(both: Both, messages: MessageBatch, model: Model, tools: Tools, way: int) -> tuple[Hits, Work, np.ndarray]:
    """The rows that hold; the work; and float64[3,3]: for each way messages, expected and spent nanoseconds."""
    starts, told = np.zeros(messages.size + 1, np.int64), np.zeros((len(WAYS), 3))
    rows, nodes, seen = search_all(both, messages, model, tools, way, starts, told)
    return Hits(rows, starts), Work(nodes, seen, len(rows)), told


@kernel
def search_all(both, messages, model, tools, way, starts, told):  # type: ignore[no-untyped-def]
    """Tuples are taken apart before the loop: to hand on their parts for each message takes longer than a choice."""
    trie, places, quad, rows = both
    held, counts, marks = Held(trie, places, rows), quad.lists.counts, tools.marks
    out, n, nodes, seen = np.empty(1024, np.int32), 0, 0, 0
    stack, nowhere = np.empty(256, np.int64), np.empty(0, np.int32)
    for m in range(len(starts) - 1):
        box = messages.boxes[m]
        terms = messages.terms[messages.term_starts[m] : messages.term_starts[m + 1]]
        (chosen, cost), cells = at_once(model, terms, way), nowhere
        if chosen != BY_TRIE and is_range(box):
            chosen, cost = guess(quad, model, terms, box, way)
        if chosen != BY_TRIE:
            cells = visited_nodes(quad, terms, box)
            chosen, cost = choose(counts, model, terms, box, cells, (chosen, cost), way)
        if chosen != BY_TRIE:  # the trie knows a message's tokens by their spots
            mark_terms(marks, messages, m, 1)
        if chosen == BY_CELLS:
            reached = 0
            out, n, looked = scan_nodes(quad, cells, rows, marks, box, out, n)
            spent = cost_of_entries(looked, chance_of_term(model.marked, model.lengths, len(terms)))
        else:
            ask = asked(places, messages, m, tools.spots)
            if chosen == BY_TRIE:
                (out, n, reached, looked), stack = walk(held, ask, BY_COST, (out, n, 0, 0), stack)
                spent = TOKEN * len(terms) + NODE * reached + ROW * looked
            else:
                out, n, reached, looked, parts = prune(both, ask, marks, cells, (out, n, 0, 0, 0))
                spent = cost_of_parts(len(terms) * len(cells), parts, looked)
            forget(ask)
        if chosen != BY_TRIE:
            mark_terms(marks, messages, m, 0)
        nodes, seen, starts[m + 1] = nodes + reached + len(cells), seen + looked, n
        told[chosen, 0] += 1
        told[chosen, 1] += cost
        told[chosen, 2] += spent + CELL * len(cells)
    return out[:n].copy(), nodes, seen


@lean_kernel
def is_range(box):  # type: ignore[no-untyped-def]
    return box[0] != box[2] or box[1] != box[3]


@lean_kernel
def at_once(model, terms, way):  # type: ignore[no-untyped-def]
    """The trie and its expected cost, where the place need not be asked; else another way, and no cost."""
    limit = np.inf
    if way == CHEAPEST:
        usual = _cheaper(model, len(terms), model.usual[0], model.usual[1], way)[1] + CELL * model.usual[0]
        limit = _AT_ONCE * usual
    if way == CHEAPEST or way == BY_TRIE:
        cost = cost_by_trie(model.loads, model.lengths, terms, limit)
        if cost < limit:
            return BY_TRIE, cost
    return BY_CELLS, np.inf


@kernel
def guess(quad, model, terms, box, way):  # type: ignore[no-untyped-def]
    """The way of a range before anything is filtered, and its expected cost: by trie, or not."""
    leaves, entries = expected(quad, box, _LEVEL)
    n_lists = leaves + _LEVEL
    chosen, cost = _cheaper(model, len(terms), n_lists, entries, way)
    return _or_by_trie(model, terms, (chosen, cost + CELL * n_lists), way)


@lean_kernel
def choose(counts, model, terms, box, cells, guessed, way):  # type: ignore[no-untyped-def]
    """The way once the quadtree's filter has told the lists. Its cost stays what was guessed, unless the way changes.

    For a point there is no guess: the filter is short, and all ways are still open. What it took is spent by all.
    """
    entries = np.int64(0)
    for k in range(len(cells)):
        entries += counts[cells[k]]
    better, cost = _cheaper(model, len(terms), len(cells), entries, way)
    if not is_range(box):
        better, cost = _or_by_trie(model, terms, (better, cost), way)
    elif better == guessed[0]:
        return guessed
    return better, cost + CELL * len(cells)


@lean_kernel
def _or_by_trie(model, terms, other, way):  # type: ignore[no-untyped-def]
    """The trie if it is expected to be cheaper than the other way, and that is open."""
    if way == CHEAPEST:
        cost = cost_by_trie(model.loads, model.lengths, terms, other[1])
        if cost < other[1]:
            return BY_TRIE, cost
    return other


@lean_kernel
def _cheaper(model, n_terms, n_lists, entries, way):  # type: ignore[no-untyped-def]
    """To verify lists directly or to go down the trie with them, and the cost, the filter's apart."""
    chance = chance_of_term(model.marked, model.lengths, n_terms)
    by_cells = cost_of_entries(entries, chance)
    by_lists = cost_of_lists(n_terms, n_lists, entries, chance)
    if way == BY_CELLS or (way == CHEAPEST and by_cells <= by_lists):
        return BY_CELLS, by_cells
    return BY_LISTS, by_lists

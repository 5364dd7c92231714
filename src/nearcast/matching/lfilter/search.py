"""One message after another, each by the way that is expected to be the cheapest.

BY_TRIE    the trie filters, and its lists are asked for their place alone;
BY_CELLS   the quadtree filters, and the lists of its nodes are verified directly;
BY_LISTS   the quadtree filters, and its lists are taken down the trie.

The first is chosen, or not, before anything is filtered, by the expected number of the quadtree's entries; between the
other two the lists decide that the quadtree's filter found.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.matching.lfilter.costs import (
    CELL,
    LEFT,
    NODE,
    ROW,
    START,
    STEP,
    TOKEN,
    chance_of_term,
    cost_by_trie,
    cost_of_entries,
    cost_of_lists,
    steps,
)
from nearcast.matching.lfilter.prune import Both, prune
from nearcast.matching.predicate import mark_terms
from nearcast.matching.quadtree.cells import FINEST
from nearcast.matching.quadtree.estimate import expected
from nearcast.matching.quadtree.search import scan_node, visited_nodes
from nearcast.matching.trie.search import BY_COST, Held, asked, forget, walk
from nearcast.model import Hits, MessageBatch, Work

WAYS = ("trie", "cells", "lists")
BY_TRIE, BY_CELLS, BY_LISTS, CHEAPEST = range(4)
_LEVEL = 6  # of the quadtree, whose nodes tell how much a range will meet: 4,096 cells of the space


class Model(NamedTuple):
    """What the cost model knows of the rows."""

    loads: np.ndarray  # float32[n_terms, n_lengths]  see loads.py
    marked: np.ndarray  # float64[n_lengths]  how likely the rarest term of a row is in a message
    lengths: np.ndarray  # float64[n_lengths]


class Tools(NamedTuple):
    """Memory of a thread, all zero between messages."""

    marks: np.ndarray  # uint8[n_terms]
    spots: np.ndarray  # int32[n_places]


def search(both: Both, messages: MessageBatch, model: Model, tools: Tools, way: int) -> tuple[Hits, Work, np.ndarray]:
    """The rows that hold; the work; and float64[3,3]: for each way messages, expected and spent nanoseconds."""
    starts, told = np.zeros(messages.size + 1, np.int64), np.zeros((len(WAYS), 3))
    rows, nodes, seen = _search(both, messages, model, tools, way, starts, told)
    return Hits(rows, starts), Work(nodes, seen, len(rows)), told


@kernel
def _search(both, messages, model, tools, way, starts, told):  # type: ignore[no-untyped-def]
    places = both.places
    out, n, nodes, seen = np.empty(1024, np.int32), 0, 0, 0
    stack = np.empty(256, np.int64)
    for m in range(len(starts) - 1):
        box = messages.boxes[m]
        terms = messages.terms[messages.term_starts[m] : messages.term_starts[m + 1]]
        chosen, cost = choose(both, model, terms, box, way)
        mark_terms(tools.marks, messages, m, 1)
        if chosen == BY_TRIE:
            ask = asked(places, messages, m, tools.spots)
            found, stack = walk(Held(both.trie, places, both.rows), ask, BY_COST, (out, n, 0, 0), stack)
            forget(ask)
            out, n = found[0], found[1]
            spent, more, looked = TOKEN * len(terms) + NODE * found[2] + ROW * found[3], found[2], found[3]
        else:
            cells = visited_nodes(both.quad, terms, box)
            chosen, cost = choose_lists(both.quad, model, len(terms), box, cells, (chosen, cost), way)
            if chosen == BY_LISTS:
                ask = asked(places, messages, m, tools.spots)
                out, n, more, looked, searched = prune(both, ask, tools.marks, cells, (out, n, 0, 0, 0))
                forget(ask)
                spent = START + TOKEN * len(terms) + STEP * searched + NODE * more + LEFT * looked
            else:
                more, looked = 0, 0
                for k in range(len(cells)):
                    out, n = scan_node(both.quad, cells[k], both.rows, tools.marks, box, out, n)
                    looked += both.quad.lists.counts[cells[k]]
                chance = chance_of_term(model.marked, model.lengths, len(terms))
                spent = cost_of_entries(looked, chance, is_range(box))
            spent += CELL * len(cells)
            more += len(cells)
        mark_terms(tools.marks, messages, m, 0)
        nodes, seen, starts[m + 1] = nodes + more, seen + looked, n
        told[chosen, 0] += 1
        told[chosen, 1] += cost
        told[chosen, 2] += spent
    return out[:n].copy(), nodes, seen


@kernel
def is_range(box):  # type: ignore[no-untyped-def]
    return box[0] != box[2] or box[1] != box[3]


@kernel
def choose(both, model, terms, box, way):  # type: ignore[no-untyped-def]
    """The way, as far as it is chosen before anything is filtered, and its expected cost."""
    if way == BY_TRIE:
        return BY_TRIE, cost_by_trie(model.loads, model.lengths, terms, np.inf)
    leaves, entries = expected(both.quad, box, _LEVEL if is_range(box) else FINEST)
    n_lists = leaves + _LEVEL
    search_steps = n_lists * steps(np.int64(entries / n_lists))
    chosen, cost = _cheaper(model, len(terms), entries, search_steps, is_range(box), way)
    cost += CELL * n_lists
    if way == CHEAPEST:
        by_trie = cost_by_trie(model.loads, model.lengths, terms, cost)
        if by_trie < cost:
            return BY_TRIE, by_trie
    return chosen, cost


@kernel
def choose_lists(quad, model, n_terms, box, cells, chosen, way):  # type: ignore[no-untyped-def]
    """The way once the lists are known; the cost stays what was expected unless the way changes."""
    entries, search_steps = np.int64(0), np.int64(0)
    for k in range(len(cells)):
        count = np.int64(quad.lists.counts[cells[k]])
        if count > 0:
            entries += count
            search_steps += steps(count)
    better, cost = _cheaper(model, n_terms, entries, search_steps, is_range(box), way)
    return (better, cost + CELL * len(cells)) if better != chosen[0] else chosen


@kernel
def _cheaper(model, n_terms, entries, search_steps, wide, way):  # type: ignore[no-untyped-def]
    """To verify lists directly or to go down the trie with them, and the cost, the filter's apart."""
    chance = chance_of_term(model.marked, model.lengths, n_terms)
    by_cells = cost_of_entries(entries, chance, wide)
    by_lists = cost_of_lists(n_terms, search_steps, entries, chance)
    if way == BY_CELLS or (way == CHEAPEST and by_cells <= by_lists):
        return BY_CELLS, by_cells
    return BY_LISTS, by_lists

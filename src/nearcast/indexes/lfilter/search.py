"""Messages in their order, each by the way that is expected to be the cheapest.

Where all take the trie at once, what `mbr-trie` does is all that is done. Else runs of messages that do are walked as
there, and the others come one by one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel, lean_kernel
from nearcast.indexes.lfilter.choice import (
    BY_CELLS,
    BY_TRIE,
    OPEN,
    WAYS,
    choose,
    choose_at_once,
    cost_at_once,
    guess,
    is_range,
)
from nearcast.indexes.lfilter.costs import CELL, NODE, ROW, TOKEN, chance_of_term, cost_of_entries, cost_of_parts
from nearcast.indexes.lfilter.loads import LENGTHS, Model
from nearcast.indexes.lfilter.prune import Both, prune
from nearcast.matching.predicate import mark_terms
from nearcast.model import Hits, MessageBatch, Work
from nearcast.structures.quadtree.search import scan_nodes, visited_nodes
from nearcast.structures.trie.probe import BY_COST, TrieView
from nearcast.structures.trie.search import FOUND, LOOKED, NODES, asked, forget, search_trie, walk_run


class Tools(NamedTuple):
    """Memory of a thread, all zero between messages."""

    marks: np.ndarray  # uint8[n_terms]
    spots: np.ndarray  # int32[n_places]


def search_at_once(
    trie: TrieView, messages: MessageBatch, model: Model, spots: np.ndarray, way: int
) -> tuple[Hits, Work] | None:
    """Where all messages take the trie: as `mbr-trie` does it. None where some may take another way."""
    starts = np.zeros(messages.size + 1, np.int64)
    rows, nodes, looked, expected = _search_at_once(trie, messages, model, spots, way, starts)
    if expected == OPEN:
        return None
    spent = TOKEN * len(messages.terms) + NODE * nodes + ROW * looked
    return Hits(rows, starts), Work(nodes, looked, len(rows), int(expected), int(spent))


def search(both: Both, messages: MessageBatch, model: Model, tools: Tools, way: int) -> tuple[Hits, Work, np.ndarray]:
    """The rows that hold; the work; and float64[3,3]: for each way messages, expected and spent nanoseconds."""
    starts, told = np.zeros(messages.size + 1, np.int64), np.zeros((len(WAYS), 3))
    rows, nodes, looked, expected, spent = search_all(both, messages, model, tools, way, starts, told)
    return Hits(rows, starts), Work(nodes, looked, len(rows), int(expected), int(spent)), told


@kernel
def _search_at_once(trie, messages, model, spots, way, starts):
    expected = cost_at_once(model, messages.terms, messages.term_starts, way)
    if expected == OPEN:
        return np.empty(0, np.int32), 0, 0, expected
    rows, nodes, looked = search_trie(trie, messages, BY_COST, spots, starts)
    return rows, nodes, looked, expected


@kernel
def search_all(both, messages, model, tools, way, starts, told):
    """Tuples are taken apart before the loop: to hand on their parts for each message takes longer than a choice."""
    ways, costs = np.empty(len(starts) - 1, np.uint8), np.empty(len(starts) - 1)
    choose_at_once(model, messages.terms, messages.term_starts, way, ways, costs)
    marks, how, quad, counts = tools.marks, (BY_COST, tools.spots), both.quad, both.quad.lists.counts
    out, stack, work = np.empty(1024, np.int32), np.empty(256, np.int64), np.zeros(4, np.int64)
    m, nowhere = 0, np.empty(0, np.int32)
    while m < len(ways):
        if ways[m] == BY_TRIE:
            m, out, stack = _walk_run_of(both.trie, messages, (m, ways, costs), how, (out, stack), (starts, work), told)
            continue
        box, chosen, cells = messages.boxes[m], (np.int64(BY_CELLS), costs[m]), nowhere
        terms = messages.terms[messages.term_starts[m] : messages.term_starts[m + 1]]
        if is_range(box):
            chosen = guess(quad, model, terms, box, costs[m], way)
        if chosen[0] != BY_TRIE:
            cells = visited_nodes(quad, terms, box)
            chosen = choose(counts, model, terms, box, cells, chosen, way)
        ways[m], costs[m] = chosen
        work[NODES] += len(cells)
        told[ways[m], 2] += CELL * len(cells)
        if ways[m] == BY_TRIE:
            continue
        mark_terms(marks, messages, m, 1)
        if ways[m] == BY_CELLS:
            out, n, looked = scan_nodes(quad, cells, both.rows, marks, box, out, work[FOUND])
            spent = cost_of_entries(looked, chance_of_term(model.marked, LENGTHS, len(terms)))
        else:
            ask = asked(both.trie.places, messages, m, tools.spots)
            out, n, nodes, looked, parts = prune(both, ask, marks, cells, (out, work[FOUND], 0, 0, 0))
            forget(ask)
            work[NODES] += nodes
            spent = cost_of_parts(len(terms) * len(cells), parts, looked)
        mark_terms(marks, messages, m, 0)
        work[LOOKED] += looked
        _tell(told, ways[m], costs[m : m + 1], spent)
        m += 1
        starts[m] = work[FOUND] = n
    return out[: work[FOUND]].copy(), work[NODES], work[LOOKED], told[:, 1].sum(), told[:, 2].sum()


@kernel
def _walk_run_of(trie, messages, at, how, memory, results, told):
    """The messages from m on that take the trie, one behind the other; at = (m, ways, costs). Return where they end."""
    (m, ways, costs), work = at, results[1]
    stop, nodes, looked = m, work[NODES], work[LOOKED]
    while stop < len(ways) and ways[stop] == BY_TRIE:
        stop += 1
    out, stack = walk_run(trie, messages, (m, stop), how, memory[0], memory[1], results)
    n_terms = messages.term_starts[stop] - messages.term_starts[m]
    spent = TOKEN * n_terms + NODE * (work[NODES] - nodes) + ROW * (work[LOOKED] - looked)
    _tell(told, BY_TRIE, costs[m:stop], spent)
    return stop, out, stack


@lean_kernel
def _tell(told, way, costs, spent):
    """Messages that were expected to cost so much each took a way, and all together cost so much."""
    told[way, 0] += len(costs)
    for k in range(len(costs)):
        told[way, 1] += costs[k]
    told[way, 2] += spent

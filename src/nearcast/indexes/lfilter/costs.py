"""The cost model: nanoseconds for the steps of each strategy, and the expected cost of a message.

Each strategy is estimated as a whole, with its verification, which takes most of the time. The constants are fitted to
the time of single messages by each strategy (tests/soak/lfilter_fit.py: 1 M subscriptions, workloads A and B of the
bench, four groups of messages). On another machine all are wrong by about the same factor, which changes no choice.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import kernel, lean_kernel
from nearcast.arrays.vector import prefetch
from nearcast.structures.quadtree.cells import FINEST, in_cell, span_of
from nearcast.structures.quadtree.nodes import NONE, ROOT

_AHEAD = 16  # each term's load is a cache miss

# The trie
TOKEN = 800.0  # a term of the message: sorting it, searching it among the root's children, fetching what is below
NODE = 205.0  # a node reached
CHILD = 5.0  # a child whose rank or box is read
ROW = 5.3  # a row of a list, whose box is read
# The quadtree
CELL = 550.0  # a node visited, with its pivotal terms
ENTRY = 2.6  # an entry of a list, whose term is looked up
NEAR = 100.0  # an entry whose term occurs: its box, and the row if the box overlaps
OPENING = 50_000.0  # once a batch: passing many arrays to a kernel. Half of it with a warm cache
# The quadtree's lists, cut by the trie's ranges of numbers
START = 8000.0  # first reads: 4,400, and as much again because this estimate is wrong most often
SEARCH = 28.0  # a list that is searched for a rank, as a rule in vain
PART = 420.0  # a part of a list that is found: cache misses
LEFT = 35.0  # an entry of such a part
LEFT_SHARE = 1.3  # entries left, copies included, as a multiple of the entries whose rarest term occurs
# The same below the root, where a node's parts are verified or cut further
DEEP_ENTRY = 200.0  # an entry that is verified at once, place and terms
DEEP_CHILD = 15.0
DEEP_STEP = 80.0  # a step of a search among numbers, which are scattered in memory


@lean_kernel
def steps(length):
    """The number of steps of a binary search."""
    n = 1
    while length > 1:
        length >>= 1
        n += 1
    return n


@lean_kernel
def _interval(lengths, n):
    """The place of the table's interval that contains n, and where in it n lies, from 0 to 1."""
    k = 0
    while k < len(lengths) - 2 and lengths[k + 1] < n:
        k += 1
    return k, min(1.0, max(0.0, (n - lengths[k]) / (lengths[k + 1] - lengths[k])))


@lean_kernel
def cost_by_trie(loads, lengths, terms, limit):
    """The expected cost of a walk through the trie, or some value above `limit` if it costs more than that."""
    n = len(terms)
    if TOKEN * n > limit:
        return TOKEN * n
    k, part = _interval(lengths, n)
    cost = TOKEN * n
    prefetch_loads(loads, terms, 0, n)
    for i in range(n):
        if cost > limit:
            break
        prefetch_loads(loads, terms, i + _AHEAD, min(n, i + _AHEAD + 1))
        if terms[i] < len(loads):
            cost += loads[terms[i], k] * (1 - part) + loads[terms[i], k + 1] * part
    return cost


@lean_kernel
def prefetch_loads(loads, terms, first, stop):
    """Prefetch the loads of the first few of terms[first:stop]."""
    for i in range(first, min(stop, first + _AHEAD)):
        prefetch(loads, loads.shape[1] * np.int64(terms[i]))


@lean_kernel
def chance_of_term(marked, lengths, n):
    """The probability that a message of n terms has the rarest term of a row."""
    k, part = _interval(lengths, n)
    return marked[k] * (1 - part) + marked[k + 1] * part


@lean_kernel
def cost_of_entries(entries, chance):
    """C_V: the cost of verifying entries directly, if their rarest term occurs with this probability."""
    return entries * (ENTRY + chance * NEAR)


@lean_kernel
def cost_of_lists(n_ranks, n_lists, entries, chance):
    """C_L at the root: the cost of walking down the trie with these lists.

    Each list is searched for each rank. The entries left fall into parts, as many as if each fell into any of them.
    """
    left, searches = entries * chance * LEFT_SHARE, max(1.0, n_ranks * n_lists)
    return cost_of_parts(searches, -searches * np.expm1(-left / searches), left)


@lean_kernel
def cost_of_parts(searches, parts, entries):
    return START + SEARCH * searches + PART * parts + LEFT * entries


@lean_kernel
def cost_of_going_down(n_ranks, n_children, search_steps):
    """C_L at another node, without verification: reading its children, and cutting all parts for each one found."""
    reads = min(n_children, n_ranks * steps(n_children))
    return DEEP_CHILD * reads + min(n_ranks, n_children) * DEEP_STEP * search_steps


@kernel
def estimate_lists(quad, box, level):
    """The expected number of leaves and entries that a message reads.

    Below a node of this level, or a leaf above it, the share of the cell that the message covers counts. The lists of
    nodes above count in full.
    """
    nodes, counts = quad.nodes, quad.lists.counts
    span = span_of(nodes.bounds, box)
    waiting, n, at = np.empty(64, np.int32), 1, 0
    waiting[0] = ROOT
    leaves = entries = 0.0
    while at < n:
        node = waiting[at]
        at += 1
        first = nodes.children[node]
        if first == NONE or nodes.levels[node] == level:
            part = covered_share(nodes, node, span)
            leaves += max(1.0, part * nodes.leaves[node])
            entries += counts[node] + part * (nodes.entries[node] - counts[node])
            continue
        entries += counts[node]
        waiting = with_room(waiting, n, 4)
        for child in range(first, first + 4):
            if nodes.entries[child] > 0 and in_cell(span, nodes.levels[child], nodes.xs[child], nodes.ys[child]):
                waiting[n] = child
                n += 1
    return leaves, entries


@kernel
def covered_share(nodes, node, span):
    """The share of a node's cell that a span covers, 0 to 1."""
    shift = FINEST - np.int64(nodes.levels[node])
    left, low = np.int64(nodes.xs[node]) << shift, np.int64(nodes.ys[node]) << shift
    across = min(span[2], left + (1 << shift) - 1) - max(span[0], left) + 1
    up = min(span[3], low + (1 << shift) - 1) - max(span[1], low) + 1
    return max(0.0, across / (1 << shift)) * max(0.0, up / (1 << shift))

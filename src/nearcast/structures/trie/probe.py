"""The arrays that a search of the trie reads, and the step from a node to the children that a message leads to."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import inline_kernel, kernel, lean_kernel
from nearcast.arrays.vector import prefetch
from nearcast.structures.trie.nodes import FIRST_CHILD, FIRST_ROW, N_CHILDREN, TrieArrays

PROBES = {"tokens": 0, "trie": 1, "cost": 2}
BY_TRIE, BY_COST = PROBES["trie"], PROBES["cost"]
_AHEAD = 8
STEP = 1.0  # the cost of a step of a binary search among children, in lookups of a child in the message


class TrieView(NamedTuple):
    """The arrays that a search reads, and no others.

    Passing an array to a kernel takes 0.3 us, and 1 us with a cold cache: as much as a message in a batch of 60 that
    takes 10.
    """

    records: np.ndarray  # int32[n,8]  see TrieArrays
    sides: np.ndarray  # float32[n,8]  the same memory: the last four are the box
    children: np.ndarray  # int32[arena,2]
    rows: np.ndarray  # int32[arena]
    row_boxes: np.ndarray  # float32[arena,4]
    ranks: np.ndarray  # int32[n_terms]  by term
    exact: np.ndarray  # float64[rows,4]  the boxes of the store


class TrieMessage(NamedTuple):
    """One message as the trie reads it."""

    ranks: np.ndarray  # int32[n]  ascending
    positions: np.ndarray  # int32[n_ranks]  for each rank 1 + its position in `ranks`, or 0
    box: np.ndarray  # float32[8]  rounded outward, then rounded inward
    exact: np.ndarray  # float64[4]


def trie_view(trie: TrieArrays, ranks: np.ndarray, exact: np.ndarray) -> TrieView:
    sides = trie.records.view(np.float32)
    return TrieView(trie.records, sides, trie.children, trie.rows, trie.row_boxes, ranks, exact)


@kernel
def overlapping_children(view, node, n_ranks, message, out):
    """Write the children that the message leads to and overlaps to `out`, as packed nodes, by rank.

    Return `out`, larger if needed, and the number of children.
    """
    out = with_room(out, 0, min(np.int64(view.records[node, N_CHILDREN]), n_ranks))
    return out, push_children(view, node, n_ranks, message, BY_COST, out, 0)


@lean_kernel
def push_children(view, node, n_ranks, message, probe, stack, top):
    """Push the children that the message leads to and overlaps onto a stack that has room; return its new top.

    Only the first `n_ranks` of the message's ranks are below the node's own rank.
    """
    first, count = np.int64(view.records[node, FIRST_CHILD]), np.int64(view.records[node, N_CHILDREN])
    children = view.children[first : first + count]
    if by_trie(probe, n_ranks, count):
        found = _probe_trie(children, message.ranks, n_ranks, stack, top)
    else:
        found = _probe_message(children, message.positions, stack, top)
    return _drop_distant(view, message.box, stack, top, found)


@inline_kernel
def packed(node, n_ranks):
    """A node, and how many of the message's ranks may lead on from it, in one word."""
    return np.int64(node) << 32 | np.int64(n_ranks)


@inline_kernel
def node_overlaps(sides, at, box):
    return (sides[at, 4] <= box[2]) & (sides[at, 6] >= box[0]) & (sides[at, 5] <= box[3]) & (sides[at, 7] >= box[1])


@lean_kernel
def by_trie(probe, n_ranks, n_children):
    """Whether to look the message's ranks up among the children, rather than the children in the message."""
    if probe != BY_COST:
        return probe == BY_TRIE
    steps, left = 1.0, n_children
    while left > 1:
        steps += STEP
        left >>= 1
    return n_ranks * steps < n_children


@lean_kernel
def _probe_message(children, positions, stack, top):
    """Push the children whose rank the message has, looking each child up in the message."""
    for place in range(np.uint64(len(children))):
        position = positions[np.uint64(children[place, 0])]
        if position > 0:
            stack[top] = packed(children[place, 1], position - 1)
            top += 1
    return top


@lean_kernel
def _probe_trie(children, ranks, n_ranks, stack, top):
    """Push the children whose rank the message has, looking each rank up among the children after the one before.

    The children's ranks are ascending whole numbers, so a rank is at most as many places ahead as it is larger. Where
    most ranks are among the children, as at the root, few steps of the binary search are left.
    """
    low, stop = 0, len(children)
    for k in range(n_ranks):
        rank = ranks[k]
        high = min(stop, low + max(0, rank - children[low, 0]))
        while low < high:
            middle = (low + high) >> 1
            if children[middle, 0] < rank:
                low = middle + 1
            else:
                high = middle
        if low == stop:
            break
        if children[low, 0] == rank:
            stack[top] = packed(children[low, 1], k)
            top += 1
    return top


@lean_kernel
def _drop_distant(view, box, stack, first, top):
    """Remove the nodes from `first` on that do not overlap from the stack; return the new top.

    Records are prefetched eight nodes ahead; so are the children and rows of nodes that stay.
    """
    records, sides, children, row_boxes = view.records, view.sides, view.children, view.row_boxes
    for k in range(first, min(first + _AHEAD, top)):
        prefetch(records, (stack[k] >> 32) << 3)
    for k in range(first, top):
        if k + _AHEAD < top:
            prefetch(records, (stack[k + _AHEAD] >> 32) << 3)
        node = np.uint64(stack[k] >> 32)
        if node_overlaps(sides, node, box):
            prefetch(children, np.int64(records[node, FIRST_CHILD]) << 1)
            prefetch(row_boxes, np.int64(records[node, FIRST_ROW]) << 2)
            stack[first] = stack[k]
            first += 1
    return first

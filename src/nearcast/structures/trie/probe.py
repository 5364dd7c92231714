"""From a node to those of its children that a message leads to, and what a search reads of the trie."""

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
STEP = 1.0  # a step of a binary search among children, in looks of a child at the table of tokens


class TrieView(NamedTuple):
    """What a search reads, and no more: to hand an array to a kernel takes 0.3 us, 1 us where nothing is in cache,
    which is as much as a message in a batch of 60 that takes 10.
    """

    records: np.ndarray  # int32[n,8]  see TrieArrays
    sides: np.ndarray  # float32[n,8]  the same memory: the last four are the box
    children: np.ndarray  # int32[arena,2]
    rows: np.ndarray  # int32[arena]
    row_boxes: np.ndarray  # float32[arena,4]
    places: np.ndarray  # int32[n_terms]  in the order of tokens
    exact: np.ndarray  # float64[rows,4]  the boxes of the store


class TrieMessage(NamedTuple):
    """One message as the trie sees it."""

    tokens: np.ndarray  # int32[n]   its places in the order of tokens, ascending
    spots: np.ndarray  # int32[n_places]  for each place 1 + where it is in `tokens`, or 0
    box: np.ndarray  # float32[8]  rounded outward, then rounded inward
    exact: np.ndarray  # float64[4]


def trie_view(trie: TrieArrays, places: np.ndarray, exact: np.ndarray) -> TrieView:
    sides = trie.records.view(np.float32)
    return TrieView(trie.records, sides, trie.children, trie.rows, trie.row_boxes, places, exact)


@kernel
def children_met(held, node, n_tokens, ask, met):
    """Write the children of a node that the message leads to and that overlap to `met`, by token, as the stack has
    them; return it, larger where it had to be, and how many they are.
    """
    met = with_room(met, 0, min(np.int64(held.records[node, N_CHILDREN]), n_tokens))
    return met, push_children(held, node, n_tokens, ask, BY_COST, met, 0)


@lean_kernel
def push_children(held, node, n_tokens, ask, probe, stack, top):
    """The same, onto a stack that has room; return its new top."""
    first, count = np.int64(held.records[node, FIRST_CHILD]), np.int64(held.records[node, N_CHILDREN])
    run = held.children[first : first + count]
    if by_trie(probe, n_tokens, count):
        met = _probe_trie(run, ask.tokens, n_tokens, stack, top)
    else:
        met = _probe_tokens(run, ask.spots, stack, top)
    return _drop_far(held, ask.box, stack, top, met)


@inline_kernel
def packed(node, n_tokens):
    return np.int64(node) << 32 | np.int64(n_tokens)


@inline_kernel
def near(boxes, at, box):
    return (boxes[at, 0] <= box[2]) & (boxes[at, 2] >= box[0]) & (boxes[at, 1] <= box[3]) & (boxes[at, 3] >= box[1])


@inline_kernel
def node_is_near(sides, at, box):
    return (sides[at, 4] <= box[2]) & (sides[at, 6] >= box[0]) & (sides[at, 5] <= box[3]) & (sides[at, 7] >= box[1])


@inline_kernel
def surely(boxes, at, box):
    """Whether a rounded box overlaps so far that the exact one must."""
    return (boxes[at, 0] < box[6]) & (boxes[at, 2] > box[4]) & (boxes[at, 1] < box[7]) & (boxes[at, 3] > box[5])


@lean_kernel
def by_trie(probe, n_tokens, n_children):
    """Whether to look the tokens up among the children, not the children among the tokens."""
    if probe != BY_COST:
        return probe == BY_TRIE
    steps, left = 1.0, n_children
    while left > 1:
        steps += STEP
        left >>= 1
    return n_tokens * steps < n_children


@lean_kernel
def _probe_tokens(run, spots, stack, top):
    """Each child asks whether its token is in the message; those whose is go on the stack."""
    for place in range(np.uint64(len(run))):
        spot = spots[np.uint64(run[place, 0])]
        if spot > 0:
            stack[top] = packed(run[place, 1], spot - 1)
            top += 1
    return top


@lean_kernel
def _probe_trie(run, tokens, n_tokens, stack, top):
    """Each token is looked for among the children, behind the place of the one before.

    Their tokens are whole numbers that rise, so it is no further on than it is larger: where most tokens are among the
    children, as at the root, few steps are left.
    """
    low, stop = 0, len(run)
    for k in range(n_tokens):
        token = tokens[k]
        high = min(stop, low + max(0, token - run[low, 0]))
        while low < high:
            middle = (low + high) >> 1
            if run[middle, 0] < token:
                low = middle + 1
            else:
                high = middle
        if low == stop:
            break
        if run[low, 0] == token:
            stack[top] = packed(run[low, 1], k)
            top += 1
    return top


@lean_kernel
def _drop_far(held, box, stack, first, top):
    """Take the nodes from `first` on that do not overlap off the stack; return the new top.

    Records are asked for eight nodes ahead, and so is what the nodes that stay will be looked up in.
    """
    records, sides, children, row_boxes = held.records, held.sides, held.children, held.row_boxes
    for k in range(first, min(first + _AHEAD, top)):
        prefetch(records, (stack[k] >> 32) << 3)
    for k in range(first, top):
        if k + _AHEAD < top:
            prefetch(records, (stack[k + _AHEAD] >> 32) << 3)
        node = np.uint64(stack[k] >> 32)
        if node_is_near(sides, node, box):
            prefetch(children, np.int64(records[node, FIRST_CHILD]) << 1)
            prefetch(row_boxes, np.int64(records[node, FIRST_ROW]) << 2)
            stack[first] = stack[k]
            first += 1
    return first

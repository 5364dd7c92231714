"""The search: from the root down, along tokens of the message, where boxes overlap.

A node that is reached has all its tokens in the message, so the rows of its list are asked for their place alone. The
tokens of the message that may lead on are those more frequent than the node's own: the first ones of the sorted list.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import inline_kernel, kernel
from nearcast.arrays.ragged import sort_in_place
from nearcast.arrays.vector import prefetch
from nearcast.geo.boxes import boxes_overlap
from nearcast.matching.postings import rounded_down
from nearcast.matching.store import RowArrays
from nearcast.matching.trie.nodes import FIRST_CHILD, FIRST_ROW, N_CHILDREN, N_ROWS, ROOT, TrieArrays
from nearcast.model import Hits, MessageBatch, Work

PROBES = {"tokens": 0, "trie": 1, "cost": 2}
BY_TRIE, BY_COST = PROBES["trie"], PROBES["cost"]
_AHEAD = 8
STEP = 1.0  # a step of a binary search among children, in looks of a child at the table of tokens


class Ask(NamedTuple):
    """One message as the trie sees it."""

    tokens: np.ndarray  # int32[n]   its places in the order of tokens, ascending
    spots: np.ndarray  # int32[n_places]  for each place 1 + where it is in `tokens`, or 0
    box: np.ndarray  # float32[8]  rounded outward, then rounded inward
    exact: np.ndarray  # float64[4]


class Held(NamedTuple):
    """What a search reads."""

    trie: TrieArrays
    places: np.ndarray  # int32[n_places]
    rows: RowArrays


def search(held: Held, messages: MessageBatch, probe: int, spots: np.ndarray) -> tuple[Hits, Work]:
    """The rows that hold on each message; nodes reached; rows whose box was looked at.

    `spots` has a 0 for each place in the order of tokens, and so it is left.
    """
    starts = np.zeros(messages.size + 1, np.int64)
    rows, nodes, seen = _search(held, messages, probe, spots, starts)
    return Hits(rows, starts), Work(nodes, seen, len(rows))


@kernel
def _search(held, messages, probe, spots, starts):  # type: ignore[no-untyped-def]
    found = (np.empty(1024, np.int32), 0, 0, 0)  # rows that hold, how many, nodes reached, rows looked at
    stack = np.empty(256, np.int64)
    for m in range(len(starts) - 1):
        ask = asked(held.places, messages, m, spots)
        found, stack = walk(held, ask, probe, found, stack)
        forget(ask)
        starts[m + 1] = found[1]
    return found[0][: found[1]].copy(), found[2], found[3]


@kernel
def asked(places, messages, m, spots):  # type: ignore[no-untyped-def]
    """Message m as the trie sees it. A term that no row ever had has no place."""
    first, stop = messages.term_starts[m], messages.term_starts[m + 1]
    tokens, n = np.empty(stop - first, np.int32), 0
    for k in range(first, stop):
        if messages.terms[k] < len(places):
            tokens[n] = places[messages.terms[k]]
            n += 1
    sort_in_place(tokens, 0, n)
    for k in range(n):
        spots[tokens[k]] = k + 1
    exact = messages.boxes[m]
    box = np.empty(8, np.float32)
    for side in range(2):
        box[side] = rounded_down(exact[side])
        box[side + 2] = -rounded_down(-exact[side + 2])
        box[side + 4] = -rounded_down(-exact[side])
        box[side + 6] = rounded_down(exact[side + 2])
    return Ask(tokens[:n], spots, box, exact)


@kernel
def forget(ask):  # type: ignore[no-untyped-def]
    for k in range(len(ask.tokens)):
        ask.spots[ask.tokens[k]] = 0


@kernel
def walk(held, ask, probe, found, stack):  # type: ignore[no-untyped-def]
    """All of the trie that the message reaches, by a stack of (node, how many tokens may lead on).

    Arrays are taken out of their tuples: handing on all of them for each node takes longer than the node.
    """
    trie, exact = held.trie, held.rows.boxes
    spans, boxes, children, rows, row_boxes = trie.spans, trie.boxes, trie.children, trie.rows, trie.row_boxes
    tokens, spots, box, exact_box = ask
    out, n, nodes, seen = found
    top = 0
    if near(boxes, ROOT, box):
        stack[0], top = packed(ROOT, len(tokens)), 1
    while top > 0:
        top -= 1
        node, n_tokens = np.uint64(stack[top] >> 32), stack[top] & 0xFFFFFFFF
        nodes += 1
        first, count = np.int64(spans[node, FIRST_ROW]), np.int64(spans[node, N_ROWS])
        if count > 0:
            out = with_room(out, n, count + 1)
            n = _scan(row_boxes[first : first + count], rows[first : first + count], box, (exact, exact_box), out, n)
            seen += count
        first, count = np.int64(spans[node, FIRST_CHILD]), np.int64(spans[node, N_CHILDREN])
        if count > 0 and n_tokens > 0:
            stack = with_room(stack, top, min(count, n_tokens))
            run, before = children[first : first + count], top
            if by_trie(probe, n_tokens, count):
                top = _probe_trie(run, tokens, n_tokens, stack, top)
            else:
                top = _probe_tokens(run, spots, stack, top)
            top = _drop_far((trie.records, boxes, children, row_boxes), box, stack, before, top)
    return (out, n, nodes, seen), stack


@kernel
def children_met(trie, node, n_tokens, ask, met):  # type: ignore[no-untyped-def]
    """Write the children of a node that the message leads to and that overlap to `met`, by token, as the stack has
    them; return it, larger where it had to be, and how many they are.
    """
    first, count = np.int64(trie.spans[node, FIRST_CHILD]), np.int64(trie.spans[node, N_CHILDREN])
    met = with_room(met, 0, min(count, n_tokens))
    run = trie.children[first : first + count]
    if by_trie(BY_COST, n_tokens, count):
        n = _probe_trie(run, ask.tokens, n_tokens, met, 0)
    else:
        n = _probe_tokens(run, ask.spots, met, 0)
    return met, _drop_far((trie.records, trie.boxes, trie.children, trie.row_boxes), ask.box, met, 0, n)


@inline_kernel
def packed(node, n_tokens):  # type: ignore[no-untyped-def]
    return np.int64(node) << 32 | np.int64(n_tokens)


@inline_kernel
def near(boxes, at, box):  # type: ignore[no-untyped-def]
    return (boxes[at, 0] <= box[2]) & (boxes[at, 2] >= box[0]) & (boxes[at, 1] <= box[3]) & (boxes[at, 3] >= box[1])


@inline_kernel
def surely(boxes, at, box):  # type: ignore[no-untyped-def]
    """Whether a rounded box overlaps so far that the exact one must."""
    return (boxes[at, 0] < box[6]) & (boxes[at, 2] > box[4]) & (boxes[at, 1] < box[7]) & (boxes[at, 3] > box[5])


@kernel
def by_trie(probe, n_tokens, n_children):  # type: ignore[no-untyped-def]
    """Whether to look the tokens up among the children, not the children among the tokens."""
    if probe != BY_COST:
        return probe == BY_TRIE
    steps, left = 1.0, n_children
    while left > 1:
        steps += STEP
        left >>= 1
    return n_tokens * steps < n_children


@kernel
def _probe_tokens(run, spots, stack, top):  # type: ignore[no-untyped-def]
    """Each child asks whether its token is in the message; those whose is go on the stack."""
    for place in range(np.uint64(len(run))):
        spot = spots[np.uint64(run[place, 0])]
        if spot > 0:
            stack[top] = packed(run[place, 1], spot - 1)
            top += 1
    return top


@kernel
def _probe_trie(run, tokens, n_tokens, stack, top):  # type: ignore[no-untyped-def]
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


@kernel
def _drop_far(trie, box, stack, first, top):  # type: ignore[no-untyped-def]
    """Take the nodes from `first` on that do not overlap off the stack; return the new top.

    Records are asked for eight nodes ahead, and so is what the nodes that stay will be looked up in.
    """
    records, boxes, children, row_boxes = trie
    for k in range(first, min(first + _AHEAD, top)):
        prefetch(records, (stack[k] >> 32) << 3)
    for k in range(first, top):
        if k + _AHEAD < top:
            prefetch(records, (stack[k + _AHEAD] >> 32) << 3)
        node = np.uint64(stack[k] >> 32)
        if near(boxes, node, box):
            prefetch(children, np.int64(records[node, FIRST_CHILD]) << 1)
            prefetch(row_boxes, np.int64(records[node, FIRST_ROW]) << 2)
            stack[first] = stack[k]
            first += 1
    return first


@kernel
def _scan(boxes, rows, box, exactly, out, n):  # type: ignore[no-untyped-def]
    """Write the rows of a list whose box overlaps to out[n:].

    Places are kept or not by a sum, without branches. A rounded box that overlaps by more than the rounding does so
    exactly; only at the border is the exact box asked for.
    """
    exact, exact_box = exactly
    kept = n
    for place in range(np.uint64(len(boxes))):
        out[kept] = place
        kept += np.int64(near(boxes, place, box))
    for k in range(n, kept):
        place = np.uint64(out[k])
        if surely(boxes, place, box) or boxes_overlap(
            exact, rows[place], exact_box[0], exact_box[1], exact_box[2], exact_box[3]
        ):
            out[n] = rows[place]
            n += 1
    return n

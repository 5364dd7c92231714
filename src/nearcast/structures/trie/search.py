"""The search: from the root down, along tokens of the message, where boxes overlap.

A node that is reached has all its tokens in the message, so the rows of its list are asked for their place alone. The
tokens of the message that may lead on are those more frequent than the node's own: the first ones of the sorted list.

The walk makes no array: it stops where it lacks room, and goes on once there is some.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import kernel, lean_kernel
from nearcast.arrays.ragged import sort_in_place
from nearcast.arrays.vector import prefetch
from nearcast.geo.boxes import boxes_overlap
from nearcast.model import Hits, MessageBatch, Work
from nearcast.structures.boxes import rounded_down
from nearcast.structures.trie.nodes import FIRST_ROW, N_CHILDREN, N_ROWS, ROOT
from nearcast.structures.trie.probe import TrieMessage, TrieView, near, node_is_near, packed, push_children, surely

FOUND, NODES, LOOKED, TOP = range(4)  # of `work`, int64[4]: rows that hold, nodes reached, rows looked at, the stack
_AHEAD = 16  # terms whose places are asked for ahead


def search(held: TrieView, messages: MessageBatch, probe: int, spots: np.ndarray) -> tuple[Hits, Work]:
    """The rows that hold on each message; nodes reached; rows whose box was looked at.

    `spots` has a 0 for each place in the order of tokens, and so it is left.
    """
    starts = np.zeros(messages.size + 1, np.int64)
    rows, nodes, looked = search_trie(held, messages, probe, spots, starts)
    return Hits(rows, starts), Work(nodes, looked, len(rows))


@kernel
def search_trie(held, messages, probe, spots, starts):
    """The same, where it is compiled: fill starts; return rows, nodes and rows looked at."""
    out, stack, work = np.empty(1024, np.int32), np.empty(256, np.int64), np.zeros(4, np.int64)
    out, stack = walk_run(held, messages, (0, len(starts) - 1), (probe, spots), out, stack, (starts, work))
    return out[: work[FOUND]].copy(), work[NODES], work[LOOKED]


@kernel
def walk_run(held, messages, run, how, out, stack, results):
    """Messages run[0] .. run[1] - 1: their rows to `out`, where they end to starts, both from results = (starts, work).
    `how` is (probe, spots). Return out and stack, larger where they had to be.
    """
    tokens, token_starts = _tokens_of(held.places, messages.terms, messages.term_starts, run[0], run[1])
    asked_all, m = (tokens, token_starts, messages.boxes, np.empty(8, np.float32)), run[0]
    while True:
        m = _walk_messages(held, asked_all, (run[0], m, run[1]), how, (out, stack), results)
        if m == run[1]:
            return out, stack
        out, stack = _with_room(held.records, out, stack, results[1])


@kernel
def _tokens_of(places, terms, term_starts, first, stop):
    """The tokens of some messages, sorted in each, and where each one's start. A term that no row ever had has none."""
    begin, end = term_starts[first], term_starts[stop]
    tokens, starts, n = np.empty(end - begin, np.int32), np.zeros(stop - first + 1, np.int64), 0
    for k in range(begin, min(begin + _AHEAD, end)):
        prefetch(places, terms[k])
    for m in range(first, stop):
        for k in range(term_starts[m], term_starts[m + 1]):
            if k + _AHEAD < end:
                prefetch(places, terms[k + _AHEAD])
            if terms[k] < len(places):
                tokens[n] = places[terms[k]]
                n += 1
        sort_in_place(tokens, starts[m - first], n)
        starts[m - first + 1] = n
    return tokens, starts


@lean_kernel
def _walk_messages(held, asked_all, at, how, memory, results):
    """Go on with a message until one lacks room; return which."""
    tokens, token_starts, boxes, box = asked_all
    first, m, stop = at
    probe, spots = how
    starts, work = results
    while m < stop:
        ask = TrieMessage(tokens[token_starts[m - first] : token_starts[m - first + 1]], spots, box, boxes[m])
        if work[TOP] == 0:
            show(ask)
            _begin(held.sides, ask, memory[1], work)
        if not _walk_on(held, ask, probe, memory, work):
            return m
        forget(ask)
        m += 1
        starts[m] = work[FOUND]
    return m


@kernel
def asked(places, messages, m, spots):
    """Message m as the trie sees it, and shown; to be forgotten afterwards."""
    tokens, starts = _tokens_of(places, messages.terms, messages.term_starts, m, m + 1)
    ask = TrieMessage(tokens[: starts[1]], spots, np.empty(8, np.float32), messages.boxes[m])
    show(ask)
    return ask


@kernel
def walk(held, ask, probe, out, stack, work):
    """All of the trie that a message reaches. Return out and stack, larger where they had to be."""
    _begin(held.sides, ask, stack, work)
    while not _walk_on(held, ask, probe, (out, stack), work):
        out, stack = _with_room(held.records, out, stack, work)
    return out, stack


@lean_kernel
def show(ask):
    """Say in `spots` which tokens the message has, and round its box."""
    tokens, spots, box, exact = ask
    for k in range(len(tokens)):
        spots[tokens[k]] = k + 1
    for side in range(2):
        box[side] = rounded_down(exact[side])
        box[side + 2] = -rounded_down(-exact[side + 2])
        box[side + 4] = -rounded_down(-exact[side])
        box[side + 6] = rounded_down(exact[side + 2])


@lean_kernel
def forget(ask):
    for k in range(len(ask.tokens)):
        ask.spots[ask.tokens[k]] = 0


@lean_kernel
def _begin(sides, ask, stack, work):
    work[TOP] = 0
    if node_is_near(sides, ROOT, ask.box):
        stack[0], work[TOP] = packed(ROOT, len(ask.tokens)), 1


@lean_kernel
def _walk_on(held, ask, probe, memory, work):
    """Go on with the nodes on the stack: (node, how many tokens may lead on). Return whether none is left; if one is,
    it lacks room.
    """
    records, rows, row_boxes = held.records, held.rows, held.row_boxes
    out, stack = memory
    n, top = work[FOUND], work[TOP]
    while top > 0:
        node, n_tokens = np.uint64(stack[top - 1] >> 32), stack[top - 1] & 0xFFFFFFFF
        first, count = np.int64(records[node, FIRST_ROW]), np.int64(records[node, N_ROWS])
        kids = min(np.int64(records[node, N_CHILDREN]), n_tokens)
        if n + count > len(out) or top + kids > len(stack):
            break
        top -= 1
        work[NODES] += 1
        work[LOOKED] += count
        if count > 0:
            run = (row_boxes[first : first + count], rows[first : first + count])
            n = _scan(run, ask.box, (held.exact, ask.exact), out, n)
        if kids > 0:
            top = push_children(held, node, n_tokens, ask, probe, stack, top)
    work[FOUND], work[TOP] = n, top
    return top == 0


@kernel
def _with_room(records, out, stack, work):
    """Out and stack, with room for what the node on the stack's top needs."""
    n, top = work[FOUND], work[TOP]
    node, n_tokens = stack[top - 1] >> 32, stack[top - 1] & 0xFFFFFFFF
    kids = min(np.int64(records[node, N_CHILDREN]), n_tokens)
    return with_room(out, n, np.int64(records[node, N_ROWS])), with_room(stack, top, kids)


@lean_kernel
def _scan(run, box, exactly, out, n):
    """Write the rows of a list whose box overlaps to out[n:].

    Places are kept or not by a sum, without branches. A rounded box that overlaps by more than the rounding does so
    exactly; only at the border is the exact box asked for.
    """
    boxes, rows = run
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

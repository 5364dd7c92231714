"""The search: from the root down, along the ranks of a message, where boxes overlap.

All terms of a reached node are in the message, so only the places of its rows are tested. The walk allocates nothing:
it stops where room runs out, and continues when its caller has made some.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import kernel, lean_kernel
from nearcast.arrays.ragged import sort_in_place
from nearcast.arrays.vector import prefetch
from nearcast.geo.boxes import boxes_overlap
from nearcast.structures.boxes import overlaps, round_out_and_in, surely_overlaps
from nearcast.structures.trie.layout import FIRST_ROW, N_CHILDREN, N_ROWS, ROOT
from nearcast.structures.trie.probe import TrieMessage, node_overlaps, packed, push_children

FOUND, NODES, READ, TOP = range(4)  # places in Walk.work: rows found, nodes reached, rows read, the stack's top
_AHEAD = 16  # terms whose ranks are prefetched


class Walk(NamedTuple):
    """The memory of a walk through the trie."""

    probe: int  # see PROBES
    positions: np.ndarray  # int32[n_ranks]  zero between messages; see TrieMessage
    box: np.ndarray  # float32[8]  the message's box; see TrieMessage
    out: np.ndarray  # int32[...]  rows found
    stack: np.ndarray  # int64[...]  packed nodes
    work: np.ndarray  # int64[4]


class _Run(NamedTuple):
    """Consecutive messages of a batch."""

    first: int
    stop: int
    ranks: np.ndarray  # int32[...]  ascending for each message
    starts: np.ndarray  # int64[stop-first+1]
    boxes: np.ndarray  # float64[...,4]  of the whole batch


@kernel
def search_trie(view, messages, probe, positions, starts):
    """Fill starts; return the rows that hold, the nodes reached and the rows read. `positions` are zero and stay so."""
    walk = walk_run(view, messages, 0, len(starts) - 1, new_walk(probe, positions), starts)
    return walk.out[: walk.work[FOUND]].copy(), walk.work[NODES], walk.work[READ]


@kernel
def new_walk(probe, positions):
    out, stack = np.empty(1024, np.int32), np.empty(256, np.int64)
    return Walk(np.int64(probe), positions, np.empty(8, np.float32), out, stack, np.zeros(4, np.int64))


@kernel
def walk_run(view, messages, first, stop, walk, starts):
    """Match messages first .. stop - 1: append rows to walk.out and fill starts. Return the walk, larger if needed."""
    ranks, rank_starts = _ranks_of(view.ranks, messages.terms, messages.term_starts, first, stop)
    run, m = _Run(np.int64(first), np.int64(stop), ranks, rank_starts, messages.boxes), np.int64(first)
    while True:
        m = _walk_messages(view, run, m, walk, starts)
        if m == stop:
            return walk
        walk = _with_room(view.records, walk)


@kernel
def _ranks_of(ranks, terms, term_starts, first, stop):
    """The ranks of some messages, ascending for each, and where those of each start. Terms of no row have no rank."""
    begin, end = term_starts[first], term_starts[stop]
    out, starts, n = np.empty(end - begin, np.int32), np.zeros(stop - first + 1, np.int64), 0
    for k in range(begin, min(begin + _AHEAD, end)):
        prefetch(ranks, terms[k])
    for m in range(first, stop):
        for k in range(term_starts[m], term_starts[m + 1]):
            if k + _AHEAD < end:
                prefetch(ranks, terms[k + _AHEAD])
            if terms[k] < len(ranks):
                out[n] = ranks[terms[k]]
                n += 1
        sort_in_place(out, starts[m - first], n)
        starts[m - first + 1] = n
    return out, starts


@lean_kernel
def _walk_messages(view, run, m, walk, starts):
    """Continue with message m until one runs out of room; return that message, or run.stop."""
    work = walk.work
    while m < run.stop:
        at = m - run.first
        message = TrieMessage(run.ranks[run.starts[at] : run.starts[at + 1]], walk.positions, walk.box, run.boxes[m])
        if work[TOP] == 0:
            mark_ranks(message)
            _push_root(view.sides, message, walk)
        if not _walk_on(view, message, walk):
            return m
        unmark_ranks(message)
        m += 1
        starts[m] = work[FOUND]
    return m


@kernel
def message_for_trie(ranks, messages, m, positions):
    """Message m as the trie reads it, with its positions marked; the caller must unmark them."""
    own, starts = _ranks_of(ranks, messages.terms, messages.term_starts, m, m + 1)
    message = TrieMessage(own[: starts[1]], positions, np.empty(8, np.float32), messages.boxes[m])
    mark_ranks(message)
    return message


@kernel
def walk_message(view, message, walk):
    """Append the rows that hold on a message to walk.out. Return the walk, larger if needed."""
    _push_root(view.sides, message, walk)
    while not _walk_on(view, message, walk):
        walk = _with_room(view.records, walk)
    return walk


@lean_kernel
def mark_ranks(message):
    """Set the positions of the message's ranks, and round its box."""
    for k in range(len(message.ranks)):
        message.positions[message.ranks[k]] = k + 1
    round_out_and_in(message.exact, message.box)


@lean_kernel
def unmark_ranks(message):
    for k in range(len(message.ranks)):
        message.positions[message.ranks[k]] = 0


@lean_kernel
def _push_root(sides, message, walk):
    walk.work[TOP] = 0
    if node_overlaps(sides, ROOT, message.box):
        walk.stack[0], walk.work[TOP] = packed(ROOT, len(message.ranks)), 1


@lean_kernel
def _walk_on(view, message, walk):
    """Process the nodes on the stack; return False if there is no room for the one on top."""
    records, rows, row_boxes = view.records, view.rows, view.row_boxes
    out, stack, work = walk.out, walk.stack, walk.work
    n, top = work[FOUND], work[TOP]
    while top > 0:
        node, n_ranks = np.uint64(stack[top - 1] >> 32), stack[top - 1] & 0xFFFFFFFF
        first, count = np.int64(records[node, FIRST_ROW]), np.int64(records[node, N_ROWS])
        n_children = min(np.int64(records[node, N_CHILDREN]), n_ranks)
        if n + count > len(out) or top + n_children > len(stack):
            break
        top -= 1
        work[NODES] += 1
        work[READ] += count
        if count > 0:
            stop = first + count
            n = _scan(row_boxes[first:stop], rows[first:stop], view.exact, message.box, message.exact, out, n)
        if n_children > 0:
            top = push_children(view, node, n_ranks, message, walk.probe, stack, top)
    work[FOUND], work[TOP] = n, top
    return top == 0


@kernel
def _with_room(records, walk):
    """The walk with room for what the node on the stack's top needs."""
    n, top = walk.work[FOUND], walk.work[TOP]
    node, n_ranks = walk.stack[top - 1] >> 32, walk.stack[top - 1] & 0xFFFFFFFF
    n_children = min(np.int64(records[node, N_CHILDREN]), n_ranks)
    out, stack = with_room(walk.out, n, np.int64(records[node, N_ROWS])), with_room(walk.stack, top, n_children)
    return Walk(walk.probe, walk.positions, walk.box, out, stack, walk.work)


@lean_kernel
def _scan(boxes, rows, exact_boxes, box, exact, out, n):
    """Write the rows of a list whose box overlaps to out[n:]; return the new n.

    Places are kept by a sum, without branches. Only a rounded box that does not surely overlap needs the exact box.
    """
    kept = n
    for place in range(np.uint64(len(boxes))):
        out[kept] = place
        kept += np.int64(overlaps(boxes, place, box))
    for k in range(n, kept):
        place = np.uint64(out[k])
        if surely_overlaps(boxes, place, box) or boxes_overlap(
            exact_boxes, rows[place], exact[0], exact[1], exact[2], exact[3]
        ):
            out[n] = rows[place]
            n += 1
    return n

"""The search of `rt++-tree`: lists met are counted for each row; subtrees are entered while some row is in time."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.intmap import ABSENT, home_slot
from nearcast.arrays.jit import kernel
from nearcast.arrays.vector import prefetch
from nearcast.matching.postings import overlapping
from nearcast.matching.predicate import box_overlaps, mark_terms
from nearcast.matching.rtree.level_lists import Held, LevelLists, standing
from nearcast.matching.rtree.node_table import token_key, value_of
from nearcast.matching.rtree.nodes import ROOT, TreeArrays
from nearcast.matching.rtree.token_search import overlaps
from nearcast.model import Hits, MessageBatch, Work

_AHEAD = 8


def search(
    tree: TreeArrays, lists: LevelLists, held: Held, messages: MessageBatch, scratch: tuple[np.ndarray, np.ndarray]
) -> tuple[Hits, Work]:
    """The rows that hold on each message. Nodes are those whose lists were asked for, candidates the entries read.

    `scratch` is counts by row (uint16) and marks by term (uint8), all zero, and so they are left.
    """
    starts = np.zeros(messages.size + 1, np.int64)
    rows, nodes, seen = _search(tree, lists.arrays, held, messages, scratch, starts)
    return Hits(rows, starts), Work(nodes, seen, len(rows))


@kernel
def _search(tree, lists, held, messages, scratch, starts):  # type: ignore[no-untyped-def]
    counts, marks = scratch
    found = (np.empty(1024, np.int32), 0, np.empty(1024, np.int32), 0)  # rows that hold; rows counted; how many each
    queue = np.empty(256, np.int32)
    nodes = seen = 0
    for m in range(len(starts) - 1):
        terms = messages.terms[messages.term_starts[m] : messages.term_starts[m + 1]]
        message = (terms, messages.boxes[m])
        mark_terms(marks, messages, m, 1)
        queue[0] = ROOT
        n_queue, at = 1, 0
        while at < n_queue:
            node = queue[at]
            at += 1
            if tree.levels[node] == 0 and len(terms) > 2 * tree.counts[node]:
                found, more = _ask_rows(tree, node, held, scratch, message, found)
                alive = False
            else:
                found, alive, more = _read_lists(tree, node, lists, held.rows, message, counts, found)
            nodes += 1
            seen += more
            if tree.levels[node] > 0 and (alive or node == ROOT):
                queue, n_queue = _with_children(tree, node, message[1], queue, n_queue)
        mark_terms(marks, messages, m, 0)
        found = _forgotten(found, counts)
        starts[m + 1] = found[1]
    return found[0][: found[1]].copy(), nodes, seen


@kernel
def _read_lists(tree, node, lists, rows, message, counts, found):  # type: ignore[no-untyped-def]
    """Read the lists of a node for all terms; return what is found, whether a row is in time, and the entries read.

    Arrays are taken out of their tuples, and the table's memory is asked for eight terms ahead: a long message asks
    hundreds of lists of a node.
    """
    terms, box = message
    out, n, met, n_met = found
    keys, values, offsets, lengths, boxes = lists.keys, lists.values, lists.offsets, lists.counts, lists.boxes
    above, is_inner = max(tree.levels[ROOT] - tree.levels[node] - 1, 0), tree.levels[node] > 0
    alive, seen, mask = False, 0, len(keys) - 1
    for k in range(len(terms)):
        if k + _AHEAD < len(terms):
            ahead = home_slot(token_key(node, terms[k + _AHEAD]), mask)
            prefetch(keys, ahead)
            prefetch(values, ahead)
        which = value_of(keys, values, token_key(node, terms[k]))
        if which == ABSENT:
            continue
        first, length = offsets[which], lengths[which]
        seen += length
        out, met = with_room(out, n, length + 1), with_room(met, n_met, length)
        stop = overlapping(boxes, first, first + length, box, out, n)
        n, n_met, more = _count_met(lists.rows[first:], rows, box, (counts, above), (out, n, stop), met, n_met)
        alive |= more and is_inner
    return (out, n, met, n_met), alive, seen


@kernel
def _count_met(list_rows, rows, box, counted, places, met, n_met):  # type: ignore[no-untyped-def]
    """Count the rows at out[n:stop] of a list, if they were met in every list above. One that is complete holds, and is
    written to out; return the new n and n_met, and whether there is one that is not complete.
    """
    counts, above = counted
    out, n, stop = places
    alive = False
    for j in range(n, stop):
        row = list_rows[out[j]]
        if counts[row] < above:
            continue
        if counts[row] == 0:
            met[n_met] = row
            n_met += 1
        counts[row] += 1
        if counts[row] < rows.n_terms[row]:
            alive = True
        elif box_overlaps(rows, row, box):
            out[n] = row
            n += 1
    return n, n_met, alive


@kernel
def _ask_rows(tree, leaf, held, scratch, message, found):  # type: ignore[no-untyped-def]
    """What the lists of a leaf would tell, for a long message: its rows have fewer tokens there than the message."""
    counts, marks = scratch
    out, n, met, n_met = found
    height = tree.levels[ROOT]
    out = with_room(out, n, tree.counts[leaf])
    for k in range(tree.counts[leaf]):
        row = tree.slots[leaf, k]
        if not overlaps(tree.boxes[leaf], k, message[1]):
            continue
        first, stop = standing(np.int64(held.rows.n_terms[row]), height, height)
        if first < stop and counts[row] >= first:
            offset = held.orders.offsets[row]
            while first < stop and marks[held.orders.terms[offset + first]] != 0:
                first += 1
            if first == stop:
                out[n] = row
                n += 1
    return (out, n, met, n_met), tree.counts[leaf]


@kernel
def _with_children(tree, node, box, queue, n):  # type: ignore[no-untyped-def]
    """Put the entries of a node that overlap at the queue's end; return the queue and its length."""
    queue = with_room(queue, n, tree.counts[node])
    for k in range(tree.counts[node]):
        if overlaps(tree.boxes[node], k, box):
            queue[n] = tree.slots[node, k]
            n += 1
    return queue, n


@kernel
def _forgotten(found, counts):  # type: ignore[no-untyped-def]
    """Set the counts of all rows met back to 0."""
    out, n, met, n_met = found
    for k in range(n_met):
        counts[met[k]] = 0
    return out, n, met, 0

"""The search of `rt++-tree`: lists met are counted for each row; a row in time leads to its own child, and no further.

A row is in time at a node of depth i when it was met i times there and above, and has more tokens. Its leaf is known,
so it leads to the one child that it lies below, where its next token stands: children without a row in time are not
entered. Where fewer rows are in time at a child than the message has terms to ask its lists for, those rows are asked
for their next token instead. It is the same question: the others of the lists could not be counted there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import grown, with_room
from nearcast.arrays.intmap import ABSENT, home_slot
from nearcast.arrays.jit import kernel
from nearcast.arrays.vector import prefetch
from nearcast.indexes.rt_plus_plus_tree.level_lists import Held, LevelLists
from nearcast.matching.predicate import box_overlaps, has_all_terms, mark_terms
from nearcast.model import Hits, MessageBatch, Work
from nearcast.structures.boxes import overlaps
from nearcast.structures.node_table import term_key, value_of
from nearcast.structures.postings import overlapping
from nearcast.structures.rtree.node_lists import SINGLE
from nearcast.structures.rtree.nodes import ROOT, TreeArrays

_AHEAD, _NEAR = 8, 4  # places ahead at which memory is asked for; and at which what it says is followed
_ROWS_A_TERM = 1  # so many rows in time are asked as soon as lists for one term


class Scratch(NamedTuple):
    """For one search at a time. All but `links` and `queue` are zero, and so they are left."""

    counts: np.ndarray  # uint16[rows]  in how many lists the row was met
    links: np.ndarray  # int32[rows]    the next row in time at the same node
    firsts: np.ndarray  # int32[nodes]  the first of them, plus 1
    waiting: np.ndarray  # int32[nodes] how many there are
    queue: np.ndarray  # int32[nodes]   nodes to ask
    n_queue: np.ndarray  # int64[1]
    marks: np.ndarray  # uint8[terms]

    @classmethod
    def empty(cls) -> Scratch:
        kinds = (np.uint16, np.int32, np.int32, np.int32, np.int32, np.int64, np.uint8)
        return cls(*(np.zeros(int(kind is np.int64), kind) for kind in kinds))

    def sized(self, n_rows: int, n_nodes: int, n_terms: int) -> Scratch:
        sizes = (n_rows, n_rows, n_nodes, n_nodes, n_nodes, 1, n_terms)
        return Scratch(*(grown(array, size, fill=0) for array, size in zip(self, sizes, strict=True)))


def search(
    tree: TreeArrays, lists: LevelLists, held: Held, messages: MessageBatch, scratch: Scratch
) -> tuple[Hits, Work]:
    """The rows that hold on each message. Nodes are those asked, the root included; candidates are the entries read
    and the rows asked.
    """
    starts = np.zeros(messages.size + 1, np.int64)
    rows, nodes, seen = _search(tree, lists.arrays, held, messages, scratch, starts)
    return Hits(rows, starts), Work(nodes, seen, len(rows))


@kernel
def _search(tree, lists, held, messages, scratch, starts):
    found = (np.empty(1024, np.int32), 0, np.empty(1024, np.int32), 0)  # rows that hold; rows counted; how many each
    queue, n_queue, waiting = scratch.queue, scratch.n_queue, scratch.waiting
    nodes = seen = 0
    for m in range(len(starts) - 1):
        terms = messages.terms[messages.term_starts[m] : messages.term_starts[m + 1]]
        message = (terms, messages.boxes[m])
        mark_terms(scratch.marks, messages, m, 1)
        queue[0] = ROOT
        n_queue[0] = 1
        at = 0
        while at < n_queue[0]:
            node = np.int64(queue[at])
            at += 1
            is_leaf, n_waiting = tree.levels[node] == 0, waiting[node]
            if node == ROOT and not is_leaf:
                _enter_children(tree, message[1], scratch)
                more = 0
            elif n_waiting > 0 and n_waiting <= _ROWS_A_TERM * len(terms):
                found, more = _ask_in_time(tree, node, held, scratch, message, found)
            elif is_leaf and n_waiting == 0 and len(terms) > 2 * tree.counts[node]:
                found, more = _ask_all(tree, node, held, scratch, message, found)
            else:
                found, more = _read_lists(tree, node, lists, held.rows, scratch, message, found)
            scratch.firsts[node] = waiting[node] = 0
            nodes += 1
            seen += more
        mark_terms(scratch.marks, messages, m, 0)
        found = _forgotten(found, scratch.counts)
        starts[m + 1] = found[1]
    return found[0][: found[1]].copy(), nodes, seen


@kernel
def _enter_children(tree, box, scratch):
    """Put the entries of the root that overlap into the queue: no row was counted yet that could lead to them."""
    n = scratch.n_queue[0]
    for k in range(tree.counts[ROOT]):
        if overlaps(tree.boxes[ROOT], k, box):
            scratch.queue[n] = tree.slots[ROOT, k]
            n += 1
    scratch.n_queue[0] = n


@kernel
def _lead(tree, level, row, scratch):
    """A row is in time at its ancestor of this level: let it wait at the child on its way."""
    child = np.int64(tree.leaves[row])
    for _ in range(level - 1):
        child = np.int64(tree.parents[child])
    firsts, waiting = scratch.firsts, scratch.waiting
    if waiting[child] == 0:
        scratch.queue[scratch.n_queue[0]] = child
        scratch.n_queue[0] += 1
    scratch.links[row] = firsts[child]
    firsts[child] = row + 1
    waiting[child] += 1


@kernel
def _lists_of(keys, values, node, terms):
    """The lists that a node has for these terms. The table's memory is asked for eight terms ahead."""
    out, n, mask = np.empty(len(terms), np.int32), 0, len(keys) - 1
    for k in range(len(terms)):
        if k + _AHEAD < len(terms):
            ahead = home_slot(term_key(node, terms[k + _AHEAD]), mask)
            prefetch(keys, ahead)
            prefetch(values, ahead)
        out[n] = value_of(keys, values, term_key(node, terms[k]))
        n += out[n] != ABSENT
    return out[:n]


@kernel
def _read_lists(tree, node, lists, rows, scratch, message, found):
    """Read the lists of a node for all terms; return what is found and the entries read.

    Arrays are taken out of their tuples, and what a list needs is fetched ahead: a long message reads hundreds.
    """
    out, n, met, n_met = found
    offsets, lengths, boxes, own_boxes = lists.offsets, lists.counts, lists.boxes, rows.boxes
    which, seen = _lists_of(lists.keys, lists.values, node, message[0]), 0
    for k in range(len(which)):
        if k + _AHEAD < len(which):
            _fetch(offsets, lengths, own_boxes, np.int64(which[k + _AHEAD]))
        if k + _NEAR < len(which) and which[k + _NEAR] > SINGLE:
            prefetch(boxes, offsets[which[k + _NEAR]] * 4)
            prefetch(lists.rows, offsets[which[k + _NEAR]])
        if which[k] <= SINGLE:
            out, met = with_room(out, n, 1), with_room(met, n_met, 1)
            out[n] = SINGLE - which[k]
            stop = n + np.int64(overlaps(own_boxes, SINGLE - np.int64(which[k]), message[1]))
            seen += 1
        else:
            first, length = offsets[which[k]], np.int64(lengths[which[k]])
            out, met = with_room(out, n, length + 1), with_room(met, n_met, length)
            stop = overlapping(boxes, first, first + length, message[1], out, n)
            for j in range(n, stop):
                out[j] = lists.rows[first + out[j]]
            seen += length
        n, n_met = _count_met(tree, node, rows, scratch, message[1], (out, n, stop), (met, n_met))
    return (out, n, met, n_met), seen


@kernel
def _fetch(offsets, lengths, boxes, which):
    """Ask for the memory that tells where a list lies, or where its only row does."""
    if which > SINGLE:
        prefetch(offsets, which)
        prefetch(lengths, which)
    else:
        prefetch(boxes, (SINGLE - which) * 4)


@kernel
def _count_met(tree, node, rows, scratch, box, places, counted):
    """Count the rows at out[n:stop], if they were met in every list above. One that is complete holds, and is written
    to out; one that is in time leads on. Returns the new n and n_met.
    """
    out, n, stop = places
    met, n_met = counted
    counts, n_terms, level = scratch.counts, rows.n_terms, tree.levels[node]
    above = max(tree.levels[ROOT] - level - 1, 0)
    for j in range(n, stop):
        row = np.int64(out[j])
        if counts[row] < above:
            continue
        if counts[row] == 0:
            met[n_met] = row
            n_met += 1
        counts[row] += 1
        if counts[row] == n_terms[row]:
            if box_overlaps(rows, row, box):
                out[n] = row
                n += 1
        elif level > 0:
            _lead(tree, level, row, scratch)
    return n, n_met


@kernel
def _ask_in_time(tree, node, held, scratch, message, found):
    """What the lists of a node would tell, from the rows in time there: each is asked for its token at this depth, or
    in a leaf for all that are left. Their memory is fetched ahead.
    """
    out, n, met, n_met = found
    n_terms, offsets, terms, marks = held.rows.n_terms, held.orders.offsets, held.orders.terms, scratch.marks
    level, above = tree.levels[node], tree.levels[ROOT] - tree.levels[node] - 1
    some = _in_time(scratch, node)
    out = with_room(out, n, len(some))
    for j in range(len(some)):
        if j + _AHEAD < len(some):
            prefetch(n_terms, some[j + _AHEAD])
            prefetch(offsets, some[j + _AHEAD])
        if j + _NEAR < len(some):
            prefetch(terms, offsets[some[j + _NEAR]] + above)
        row = some[j]
        first, stop = offsets[row] + above, offsets[row] + n_terms[row]
        if level > 0 and marks[terms[first]] != 0 and first + 1 < stop:
            scratch.counts[row] += 1
            _lead(tree, level, row, scratch)
            continue
        while first < stop and marks[terms[first]] != 0:
            first += 1
        if first == stop and box_overlaps(held.rows, row, message[1]):
            out[n] = row
            n += 1
    return (out, n, met, n_met), len(some)


@kernel
def _in_time(scratch, node):
    """The rows in time at a node."""
    out = np.empty(scratch.waiting[node], np.int64)
    row = np.int64(scratch.firsts[node]) - 1
    for k in range(len(out)):
        out[k] = row
        row = np.int64(scratch.links[row]) - 1
    return out


@kernel
def _ask_all(tree, leaf, held, scratch, message, found):
    """What the lists of a leaf below the root, or of one that is the root, would tell to a long message: all tokens of
    a row stand there, and they are fewer than the message's.
    """
    out, n, met, n_met = found
    out = with_room(out, n, tree.counts[leaf])
    for k in range(tree.counts[leaf]):
        row = tree.slots[leaf, k]
        if overlaps(tree.boxes[leaf], k, message[1]) and has_all_terms(held.rows, row, scratch.marks):
            out[n] = row
            n += 1
    return (out, n, met, n_met), tree.counts[leaf]


@kernel
def _forgotten(found, counts):
    """Set the counts of all rows met back to 0."""
    out, n, met, n_met = found
    for k in range(n_met):
        counts[met[k]] = 0
    return out, n, met, 0

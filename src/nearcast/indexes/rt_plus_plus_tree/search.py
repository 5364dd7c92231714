"""The search of `rt++-tree`: counts in how many lists each row was found; a row on schedule leads to its own child
only.

A row is on schedule at a node of depth i if it was found i times at this node and above, and has more terms. Its leaf
is known, so it leads to the one child above that leaf, where its next term is listed. Children without a row on
schedule are not visited. Where fewer rows are on schedule at a child than the message has terms, the next term of each
of these rows is tested instead of reading the lists. The answer is the same: no other row of the lists could be counted
there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import grown, with_room
from nearcast.arrays.intmap import ABSENT
from nearcast.arrays.jit import kernel
from nearcast.arrays.vector import prefetch
from nearcast.indexes.rt_plus_plus_tree.level_lists import OrderedRows
from nearcast.matching.predicate import box_overlaps, has_all_terms, mark_terms
from nearcast.model import Hits, MessageBatch, Work
from nearcast.structures.boxes import overlaps
from nearcast.structures.node_table import prefetch_slot, term_key, value_of
from nearcast.structures.postings import overlapping
from nearcast.structures.rtree.node_lists import SINGLE, ListArrays
from nearcast.structures.rtree.nodes import ROOT, TreeArrays

_AHEAD, _NEAR = 8, 4  # how far ahead positions are prefetched, and what lies at these positions
_ROWS_A_TERM = 1  # testing so many rows on schedule takes as long as reading the lists of one term


class Scratch(NamedTuple):
    """Working memory of one search. Every search leaves all arrays but `links` and `queue` zero."""

    counts: np.ndarray  # uint16[rows]  in how many lists the row was found
    links: np.ndarray  # int32[rows]    the next row on schedule at the same node, plus 1
    firsts: np.ndarray  # int32[nodes]  the first row on schedule at the node, plus 1
    waiting: np.ndarray  # int32[nodes] how many rows are on schedule there
    queue: np.ndarray  # int32[nodes]   nodes to visit
    n_queue: np.ndarray  # int64[1]
    marks: np.ndarray  # uint8[terms]   1 for the terms of the message

    @classmethod
    def empty(cls) -> Scratch:
        kinds = (np.uint16, np.int32, np.int32, np.int32, np.int32, np.int64, np.uint8)
        return cls(*(np.zeros(int(kind is np.int64), kind) for kind in kinds))

    def sized(self, n_rows: int, n_nodes: int, n_terms: int) -> Scratch:
        """With room for so many rows, nodes and terms."""
        sizes = (n_rows, n_rows, n_nodes, n_nodes, n_nodes, 1, n_terms)
        return Scratch(*(grown(array, size, fill=0) for array, size in zip(self, sizes, strict=True)))


class Message(NamedTuple):
    """One message of a batch."""

    terms: np.ndarray  # int32[n]
    box: np.ndarray  # float64[4]


class Found(NamedTuple):
    """The results so far."""

    rows: np.ndarray  # int32[...]  the rows that match
    n: int
    counted: np.ndarray  # int32[...]  the rows of this message whose count is not 0
    n_counted: int


def search(
    tree: TreeArrays, lists: ListArrays, view: OrderedRows, messages: MessageBatch, scratch: Scratch
) -> tuple[Hits, Work]:
    """The rows that match each message. Nodes: those visited, with the root. Candidates: entries read, rows tested."""
    starts = np.zeros(messages.size + 1, np.int64)
    rows, nodes, seen = _search(tree, lists, view, messages, scratch, starts)
    return Hits(rows, starts), Work(nodes, seen, len(rows))


@kernel
def _search(tree, lists, view, messages, scratch, starts):
    found = Found(np.empty(1024, np.int32), 0, np.empty(1024, np.int32), 0)
    queue, n_queue, waiting = scratch.queue, scratch.n_queue, scratch.waiting
    nodes = seen = 0
    for m in range(len(starts) - 1):
        terms, box = messages.terms[messages.term_starts[m] : messages.term_starts[m + 1]], messages.boxes[m]
        message = Message(terms, box)
        mark_terms(scratch.marks, messages, m, 1)
        queue[0], n_queue[0] = ROOT, 1
        at = 0
        while at < n_queue[0]:
            node = np.int64(queue[at])
            at += 1
            is_leaf, n_waiting = tree.levels[node] == 0, waiting[node]
            if node == ROOT and not is_leaf:
                _enter_children(tree, box, scratch)
                more = 0
            elif n_waiting > 0 and n_waiting <= _ROWS_A_TERM * len(terms):
                found, more = _test_on_schedule(tree, node, view, scratch, box, found)
            elif is_leaf and n_waiting == 0 and len(terms) > 2 * tree.counts[node]:
                found, more = _test_leaf(tree, node, view.rows, scratch.marks, box, found)
            else:
                found, more = _read_lists(tree, node, lists, view.rows, scratch, message, found)
            scratch.firsts[node] = waiting[node] = 0
            nodes += 1
            seen += more
        mark_terms(scratch.marks, messages, m, 0)
        for k in range(found.n_counted):
            scratch.counts[found.counted[k]] = 0
        found = Found(found.rows, found.n, found.counted, 0)
        starts[m + 1] = found.n
    return found.rows[: found.n].copy(), nodes, seen


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
    """Note a row that is on schedule at its ancestor of this level as waiting at the child of that ancestor."""
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
    """The lists that a node has for these terms. Slots of the table are prefetched eight terms ahead."""
    out, n = np.empty(len(terms), np.int32), 0
    for k in range(len(terms)):
        if k + _AHEAD < len(terms):
            prefetch_slot(keys, values, term_key(node, terms[k + _AHEAD]))
        out[n] = value_of(keys, values, term_key(node, terms[k]))
        n += out[n] != ABSENT
    return out[:n]


@kernel
def _read_lists(tree, node, lists, rows, scratch, message, found):
    """Read the lists of a node for all terms of a message; return what is found and the number of entries read.

    Arrays are taken out of their tuples, and what a list needs is prefetched: a long message reads hundreds of lists.
    """
    out, n, counted, n_counted = found.rows, found.n, found.counted, found.n_counted
    offsets, lengths, boxes, own_boxes = lists.offsets, lists.counts, lists.boxes, rows.boxes
    which, seen = _lists_of(lists.keys, lists.values, node, message.terms), 0
    for k in range(len(which)):
        if k + _AHEAD < len(which):
            _prefetch_list(offsets, lengths, own_boxes, np.int64(which[k + _AHEAD]))
        if k + _NEAR < len(which) and which[k + _NEAR] > SINGLE:
            prefetch(boxes, offsets[which[k + _NEAR]] * 4)
            prefetch(lists.rows, offsets[which[k + _NEAR]])
        if which[k] <= SINGLE:
            out, counted = with_room(out, n, 1), with_room(counted, n_counted, 1)
            out[n] = SINGLE - which[k]
            stop = n + np.int64(overlaps(own_boxes, SINGLE - np.int64(which[k]), message.box))
            seen += 1
        else:
            first, length = offsets[which[k]], np.int64(lengths[which[k]])
            out, counted = with_room(out, n, length + 1), with_room(counted, n_counted, length)
            stop = overlapping(boxes, first, first + length, message.box, out, n)
            for j in range(n, stop):
                out[j] = lists.rows[first + out[j]]
            seen += length
        n, n_counted = _count(tree, node, rows, scratch, message.box, Found(out, n, counted, n_counted), stop)
    return Found(out, n, counted, n_counted), seen


@kernel
def _prefetch_list(offsets, lengths, boxes, which):
    """Prefetch where a list lies, or the box of its only row."""
    if which > SINGLE:
        prefetch(offsets, which)
        prefetch(lengths, which)
    else:
        prefetch(boxes, (SINGLE - which) * 4)


@kernel
def _count(tree, node, rows, scratch, box, found, stop):
    """Count the rows at found.rows[found.n:stop], if they were found in every list above. A row that is complete and
    overlaps is written to found.rows; a row on schedule leads to its child. Return the new n and n_counted.
    """
    out, n, counted, n_counted = found.rows, found.n, found.counted, found.n_counted
    counts, n_terms, level = scratch.counts, rows.n_terms, tree.levels[node]
    above = max(tree.levels[ROOT] - level - 1, 0)
    for j in range(n, stop):
        row = np.int64(out[j])
        if counts[row] < above:
            continue
        if counts[row] == 0:
            counted[n_counted] = row
            n_counted += 1
        counts[row] += 1
        if counts[row] == n_terms[row]:
            if box_overlaps(rows, row, box):
                out[n] = row
                n += 1
        elif level > 0:
            _lead(tree, level, row, scratch)
    return n, n_counted


@kernel
def _test_on_schedule(tree, node, view, scratch, box, found):
    """Test the rows on schedule at a node instead of reading its lists: their term of this depth or, in a leaf, all
    further terms. Return what is found and the number of rows tested. The rows are prefetched.
    """
    n_terms, offsets, terms, marks = view.rows.n_terms, view.orders.offsets, view.orders.terms, scratch.marks
    level, above = tree.levels[node], tree.levels[ROOT] - tree.levels[node] - 1
    rows, n = _on_schedule(scratch, node), found.n
    out = with_room(found.rows, n, len(rows))
    for j in range(len(rows)):
        if j + _AHEAD < len(rows):
            prefetch(n_terms, rows[j + _AHEAD])
            prefetch(offsets, rows[j + _AHEAD])
        if j + _NEAR < len(rows):
            prefetch(terms, offsets[rows[j + _NEAR]] + above)
        row = rows[j]
        first, stop = offsets[row] + above, offsets[row] + n_terms[row]
        if level > 0 and marks[terms[first]] != 0 and first + 1 < stop:
            scratch.counts[row] += 1
            _lead(tree, level, row, scratch)
            continue
        while first < stop and marks[terms[first]] != 0:
            first += 1
        if first == stop and box_overlaps(view.rows, row, box):
            out[n] = row
            n += 1
    return Found(out, n, found.counted, found.n_counted), len(rows)


@kernel
def _on_schedule(scratch, node):
    """int64: the rows on schedule at a node."""
    out = np.empty(scratch.waiting[node], np.int64)
    row = np.int64(scratch.firsts[node]) - 1
    for k in range(len(out)):
        out[k] = row
        row = np.int64(scratch.links[row]) - 1
    return out


@kernel
def _test_leaf(tree, leaf, rows, marks, box, found):
    """Test all rows of a leaf at depth 0 or 1 for a long message: the leaf lists all their terms, which are fewer than
    those of the message. Return what is found and the number of rows.
    """
    n = found.n
    out = with_room(found.rows, n, tree.counts[leaf])
    for k in range(tree.counts[leaf]):
        row = tree.slots[leaf, k]
        if overlaps(tree.boxes[leaf], k, box) and has_all_terms(rows, row, marks):
            out[n] = row
            n += 1
    return Found(out, n, found.counted, found.n_counted), tree.counts[leaf]

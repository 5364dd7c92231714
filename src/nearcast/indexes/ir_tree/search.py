"""The search of `ir-tree`: descend by the inverted files of the nodes, then count the postings of each row."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.intmap import ABSENT, find
from nearcast.arrays.jit import kernel
from nearcast.arrays.vector import count_bits, lowest_bit
from nearcast.matching.predicate import mark_terms
from nearcast.structures.boxes import overlaps
from nearcast.structures.node_table import known_terms, term_key, value_of
from nearcast.structures.rtree.nodes import ROOT

_ONE = np.int64(1)


@kernel
def search(tree, files, rows, messages, marks, starts):
    out, queue = np.empty(1024, np.int32), np.empty(256, np.int32)
    postings = np.zeros(64, np.int32)
    n = nodes = seen = 0
    for m in range(len(starts) - 1):
        box = messages.boxes[m]
        mark_terms(marks, messages, m, 1)
        terms = _filed_terms(files, messages.terms[messages.term_starts[m] : messages.term_starts[m + 1]])
        queue[0] = ROOT
        n_queue, at = 1, 0
        while at < n_queue:
            node = queue[at]
            at += 1
            nodes += 1
            within = _overlapping_slots(tree, node, box)
            if tree.levels[node] > 0:
                queue, n_queue = _with_children(tree, node, files, terms, within, queue, n_queue)
                continue
            if len(terms) > 2 * tree.counts[node]:
                reached = _count_terms(tree.slots[node], rows, marks, within, postings)
            else:
                reached = _count_postings(files, node, terms, within, postings)
            seen += count_bits(reached)
            out = with_room(out, n, 64)
            while reached != 0:
                k = lowest_bit(reached)
                reached &= reached - 1
                row = tree.slots[node, k]
                out[n] = row
                n += postings[k] == rows.n_terms[row]
                postings[k] = 0
        mark_terms(marks, messages, m, 0)
        starts[m + 1] = n
    return out[:n].copy(), nodes, seen


@kernel
def _filed_terms(files, terms):
    """The terms of a message that some row has, first those that most entries of the root have."""
    counts = np.empty(len(terms), np.int64)
    for k in range(len(terms)):
        bits = find(files, term_key(ROOT, terms[k]))
        counts[k] = 0 if bits == ABSENT else count_bits(bits)
    return known_terms(terms, counts)


@kernel
def _overlapping_slots(tree, node, box):
    """The slots of the entries that overlap, one bit each."""
    boxes, bits = tree.boxes[node], np.int64(0)
    for k in range(tree.counts[node]):
        bits |= np.int64(overlaps(boxes, k, box)) << k
    return bits


@kernel
def _with_children(tree, node, files, terms, within, queue, n):
    """Append the entries that overlap and have a term to the queue; return the queue and its length. Stop reading terms
    once every entry that overlaps has one.
    """
    keys, values, reached = files.keys, files.values, np.int64(0)
    for i in range(len(terms)):
        if reached & within == within:
            break
        bits = value_of(keys, values, term_key(node, terms[i]))
        if bits != ABSENT:
            reached |= bits
    reached &= within
    queue = with_room(queue, n, 64)
    while reached != 0:
        queue[n] = tree.slots[node, lowest_bit(reached)]
        reached &= reached - 1
        n += 1
    return queue, n


@kernel
def _count_postings(files, leaf, terms, within, postings):
    """Count the terms of each row of a leaf that overlaps; return the slots of the rows that have any, as bits."""
    keys, values, reached = files.keys, files.values, np.int64(0)
    if within == 0:
        return reached
    for i in range(len(terms)):
        bits = value_of(keys, values, term_key(leaf, terms[i]))
        if bits != ABSENT:
            bits &= within
            reached |= bits
            while bits != 0:
                postings[lowest_bit(bits)] += 1
                bits &= bits - 1
    return reached


@kernel
def _count_terms(slots, rows, marks, within, postings):
    """The same for a long message: the terms of the rows are read, which are fewer."""
    reached = np.int64(0)
    terms = rows.terms
    while within != 0:
        k = lowest_bit(within)
        within &= within - 1
        first = rows.offsets[slots[k]]
        for i in range(first, first + rows.n_terms[slots[k]]):
            postings[k] += marks[terms[i]]
        if postings[k] > 0:
            reached |= _ONE << k
    return reached

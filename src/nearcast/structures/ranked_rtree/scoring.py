"""What the searches for kind `rank` have in common: rows judged by the exact score, and the far ones met at the root.

A row of place 0 is met at the root only, and a row of another place only on the way down, so none is judged twice.
Why none of place 0 is missed that is delivered: its words alone are enough, so it stands at the root with the terms
without which they would not be, or under ANYWHERE; its heaviest term found is one of these (rank_tokens.py), and it is
judged in the list of that one.

Rows met lie anywhere in memory; reading all rows in their order takes an eighth of the time for each that lists take,
and a quarter of what leaves do, which have the boxes. So where an eighth or a quarter of them would be met, all are
judged in order instead, as brute force does.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.intmap import ABSENT, home_slot
from nearcast.arrays.jit import inline_kernel, kernel
from nearcast.arrays.vector import prefetch
from nearcast.matching.score import combined, place_share, score_of, weight_found, word_share
from nearcast.structures.boxes import overlaps
from nearcast.structures.node_table import term_key, value_of
from nearcast.structures.ranked_rtree.tokens import ANYWHERE, FAR
from nearcast.structures.rtree.node_lists import SINGLE
from nearcast.structures.rtree.nodes import ROOT

NO_TERM_FOUND = -1
AHEAD, NEAR = 8, 4  # rows ahead whose memory is asked for; and whose terms are
_LISTED, _IN_LEAF = 8, 4  # how many times as long a row takes that is met there, as one of all rows in order
_BLOCK = 4096


@inline_kernel
def judge(rows, asked, row, place, message, found, n):
    """Write a row and its score at n if it is delivered; return the new n. Terms are read only where its place, which
    is `place_share`, allows: rounding keeps order, so no score is above that with all words.
    """
    if combined(asked.alphas[row], place, 1.0) >= asked.thresholds[row]:
        words = word_share(weight_found(rows, row, message[0], asked.weights), asked.own_weights[row])
        score = combined(asked.alphas[row], place, words)
        found[0][n], found[1][n] = row, score
        n += score >= asked.thresholds[row]
    return n


@inline_kernel
def fetch_row(rows, asked, row):
    """Ask for the memory of what a row asks for, and of where its terms lie."""
    prefetch(asked.alphas, row)
    prefetch(asked.thresholds, row)
    prefetch(asked.own_weights, row)
    prefetch(rows.offsets, row)
    prefetch(rows.n_terms, row)


@kernel
def weighing(held, terms):
    """Those of a message's terms that weigh anything: no row stands with others."""
    out = np.empty(len(terms), np.int64)
    n = 0
    for k in range(len(terms)):
        out[n] = terms[k]
        n += held.asked.weights[terms[k]] > 0.0
    return out[:n]


@kernel
def heaviest_found(terms, weights, first, stop, marks):
    """The heaviest of a row's terms that is found, among equals the smallest; NO_TERM_FOUND where none weighs."""
    best, most = NO_TERM_FOUND, 0.0
    for k in range(first, stop):
        if marks[terms[k]] != 0 and weights[terms[k]] > most:
            best, most = np.int64(terms[k]), weights[terms[k]]
    return best


@kernel
def entries_of_list(lists, which, single):
    """The rows of a list, and their rounded boxes (none where it has one row alone, which is written to `single`)."""
    if which <= SINGLE:
        single[0] = SINGLE - which
        return single, lists.boxes[:0]
    first, stop = lists.offsets[which], lists.offsets[which] + lists.counts[which]
    return lists.rows[first:stop], lists.boxes[first:stop]


@kernel
def count_entries(lists, node, terms, mark):
    """How many entries the lists of a node have for these terms, marked so."""
    keys, values, total = lists.keys, lists.values, 0
    for k in range(len(terms)):
        if k + AHEAD < len(terms):
            fetch_slot(keys, values, term_key(node, terms[k + AHEAD] | mark))
        which = value_of(keys, values, term_key(node, terms[k] | mark))
        if which != ABSENT:
            total += 1 if which <= SINGLE else np.int64(lists.counts[which])
    return total


@kernel
def far_entries(lists, terms):
    """How many entries `judge_far` would read."""
    return count_entries(lists, ROOT, terms, FAR) + count_entries(lists, ROOT, np.full(1, ANYWHERE), 0)


@inline_kernel
def fetch_slot(keys, values, key):
    """Ask for the memory of a key."""
    slot = home_slot(key, len(keys) - 1)
    prefetch(keys, slot)
    prefetch(values, slot)


@kernel
def is_scan_cheaper(tree, n_listed, n_in_leaves):
    return _LISTED * n_listed + _IN_LEAF * n_in_leaves > len(tree.leaves)


@kernel
def judge_all(tree, held, message, found, n):
    """Judge all rows of the tree in their order; return what is found, the new n and how many rows there are."""
    leaves, seen = tree.leaves, 0
    for first in range(0, len(leaves), _BLOCK):
        stop = min(first + _BLOCK, len(leaves))
        found = with_room(found[0], n, stop - first), with_room(found[1], n, stop - first)
        n, more = _judge_block(held.rows, held.asked, leaves, (first, stop), message, found, n)
        seen += more
    return found, n, seen


@kernel
def _judge_block(rows, asked, leaves, block, message, found, n):
    seen = 0
    marks, box = message
    out, scores = found
    for row in range(block[0], block[1]):
        if leaves[row] >= 0:
            seen += 1
            score = score_of(rows, asked, row, marks, box)
            out[n], scores[n] = row, score
            n += score >= asked.thresholds[row]
    return n, seen


@kernel
def judge_far(held, lists, terms, message, found, n):
    """Judge the rows of place 0 that stand at the root; return what is found, the new n and the entries read."""
    seen, single = 0, np.empty(1, np.int32)
    for k in range(len(terms) + 1):
        token = terms[k] | FAR if k < len(terms) else np.int64(ANYWHERE)
        which = np.int64(value_of(lists.keys, lists.values, term_key(ROOT, token)))
        if which != ABSENT:
            entries, boxes = entries_of_list(lists, which, single)
            found = with_room(found[0], n, len(entries)), with_room(found[1], n, len(entries))
            seen += len(entries)
            n = judge_listed(held, entries, boxes, (token, True), message, found, n)
    return found, n, seen


@kernel
def judge_listed(held, entries, boxes, asks, message, found, n):
    """Judge rows of a list whose heaviest term found it is: those of place 0 where `asks` is for far ones, else the
    others. Their boxes there are rounded outward: those that miss need no exact look. Returns the new n.
    """
    rows, asked = held.rows, held.asked
    offsets, n_terms, terms, weights = rows.offsets, rows.n_terms, rows.terms, asked.weights
    token, is_far = asks
    term, marks, box = token & (FAR - 1), message[0], message[1]
    for k in range(len(entries)):
        if k + AHEAD < len(entries):
            fetch_row(rows, asked, np.int64(entries[k + AHEAD]))
        if k + NEAR < len(entries):
            prefetch(terms, offsets[entries[k + NEAR]])
        row, place = np.int64(entries[k]), 0.0
        if len(boxes) == 0 or overlaps(boxes, k, box):
            place = place_share(rows.boxes[row], box)
        if (place == 0.0) != is_far:
            continue
        first = offsets[row]
        if token == ANYWHERE or heaviest_found(terms, weights, first, first + n_terms[row], marks) == term:
            n = judge(rows, asked, row, place, message, found, n)
    return n

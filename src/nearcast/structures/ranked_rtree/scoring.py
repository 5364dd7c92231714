"""Exact scoring of ranked rows, and the rows of place 0, which are listed at the root.

No delivered row of place 0 is missed: its words alone reach the threshold, so it is listed at the root under the far
prefix of its terms, or under ANYWHERE. Its heaviest term found is in the prefix (terms.py), and it is scored in the
list of that term.

Rows from lists lie anywhere in memory. A row read in the order of rows takes an eighth of the time of a row from a
list, and a quarter of that of a row from a leaf, which contains the boxes. So where the search would meet more than an
eighth or a quarter of all rows, all rows are scored in order instead, as brute force does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.intmap import ABSENT
from nearcast.arrays.jit import inline_kernel, kernel
from nearcast.arrays.vector import prefetch
from nearcast.matching.score import combined, place_share, score_of, weight_found, word_share
from nearcast.structures.boxes import overlaps
from nearcast.structures.node_table import prefetch_slot, term_key, value_of
from nearcast.structures.ranked_rtree.terms import ANYWHERE, FAR
from nearcast.structures.rtree.node_lists import SINGLE
from nearcast.structures.rtree.nodes import ROOT

NO_TERM_FOUND = -1
AHEAD, _NEAR = 8, 4  # rows ahead that are prefetched, and whose terms are
_LISTED, _IN_LEAF = 8, 4  # the time of a row from a list or a leaf, in rows read in order
_BLOCK = 4096


class Message(NamedTuple):
    """One message of a batch."""

    marks: np.ndarray  # uint8[n_terms]  1 for its terms
    box: np.ndarray  # float64[4]


class Found(NamedTuple):
    """The rows delivered so far, and their scores. Kernels write at position n and return the new n."""

    rows: np.ndarray  # int32[...]
    scores: np.ndarray  # float64[...]


class Entries(NamedTuple):
    """The entries of one list."""

    rows: np.ndarray  # int32[n]
    boxes: np.ndarray  # float32[n,4]  rounded outward; empty if the list has a single row


@kernel
def with_found_room(found, n, extra):
    return Found(with_room(found.rows, n, extra), with_room(found.scores, n, extra))


@inline_kernel
def score_row(rows, params, row, place, message, found, n):
    """Write a row and its score at n if it is delivered; return the new n. `place` is its `place_share`.

    Its terms are read only if the score with all words would reach the threshold. Rounding is monotone, so no score is
    above that.
    """
    if combined(params.alphas[row], place, 1.0) >= params.thresholds[row]:
        words = word_share(weight_found(rows, row, message.marks, params.weights), params.own_weights[row])
        score = combined(params.alphas[row], place, words)
        found.rows[n], found.scores[n] = row, score
        n += score >= params.thresholds[row]
    return n


@inline_kernel
def _prefetch_row(rows, params, some, k):
    """Before row k of `some` is scored, prefetch the parameters of a later row and the terms of a nearer one."""
    if k + AHEAD < len(some):
        row = np.int64(some[k + AHEAD])
        prefetch(params.alphas, row)
        prefetch(params.thresholds, row)
        prefetch(params.own_weights, row)
        prefetch(rows.offsets, row)
        prefetch(rows.n_terms, row)
    if k + _NEAR < len(some):
        prefetch(rows.terms, rows.offsets[some[k + _NEAR]])


@kernel
def weighty_terms(ranked, terms):
    """int64: the terms of a message that have weight. No row is filed under other terms."""
    out = np.empty(len(terms), np.int64)
    n = 0
    for k in range(len(terms)):
        out[n] = terms[k]
        n += ranked.rank_params.weights[terms[k]] > 0.0
    return out[:n]


@kernel
def _heaviest_found(terms, weights, first, stop, marks):
    """The heaviest marked term of terms[first:stop], among equals the first; NO_TERM_FOUND if none has weight."""
    best, most = NO_TERM_FOUND, 0.0
    for k in range(first, stop):
        if marks[terms[k]] != 0 and weights[terms[k]] > most:
            best, most = np.int64(terms[k]), weights[terms[k]]
    return best


@kernel
def list_entries(lists, which, single):
    """The entries of a list. A single row, which lies in the table, is written to `single`."""
    if which <= SINGLE:
        single[0] = SINGLE - which
        return Entries(single, lists.boxes[:0])
    first, stop = lists.offsets[which], lists.offsets[which] + lists.counts[which]
    return Entries(lists.rows[first:stop], lists.boxes[first:stop])


@kernel
def count_entries(lists, node, terms, mark):
    """How many entries the lists of a node have for these terms, to which `mark` is added."""
    keys, values, total = lists.keys, lists.values, 0
    for k in range(len(terms)):
        if k + AHEAD < len(terms):
            prefetch_slot(keys, values, term_key(node, terms[k + AHEAD] | mark))
        which = value_of(keys, values, term_key(node, terms[k] | mark))
        if which != ABSENT:
            total += 1 if which <= SINGLE else np.int64(lists.counts[which])
    return total


@kernel
def far_entries(lists, terms):
    """How many entries `score_far` would read."""
    return count_entries(lists, ROOT, terms, FAR) + count_entries(lists, ROOT, np.full(1, ANYWHERE), 0)


@kernel
def is_scan_cheaper(tree, n_listed, n_in_leaves):
    """Whether to score all rows in order instead of so many entries of lists and rows of leaves."""
    return _LISTED * n_listed + _IN_LEAF * n_in_leaves > len(tree.leaves)


@kernel
def score_all(tree, ranked, message, found, n):
    """Score all rows of the tree in order; return what is found, the new n and the number of rows."""
    leaves, seen = tree.leaves, 0
    for first in range(0, len(leaves), _BLOCK):
        stop = min(first + _BLOCK, len(leaves))
        found = with_found_room(found, n, stop - first)
        n, more = _score_block(ranked, leaves[:stop], first, message, found, n)
        seen += more
    return found, n, seen


@kernel
def _score_block(ranked, leaves, first, message, found, n):
    """Score the rows from `first` on; `leaves` is -1 for a row that is not in the tree."""
    rows, params, seen = ranked.rows, ranked.rank_params, 0
    for row in range(first, len(leaves)):
        if leaves[row] >= 0:
            seen += 1
            score = score_of(rows, params, row, message.marks, message.box)
            found.rows[n], found.scores[n] = row, score
            n += score >= params.thresholds[row]
    return n, seen


@kernel
def score_far(ranked, lists, terms, message, found, n):
    """Score the rows of place 0 listed at the root; return what is found, the new n and the number of entries."""
    seen, single = 0, np.empty(1, np.int32)
    for k in range(len(terms) + 1):
        term = terms[k] | FAR if k < len(terms) else np.int64(ANYWHERE)
        which = np.int64(value_of(lists.keys, lists.values, term_key(ROOT, term)))
        if which != ABSENT:
            entries = list_entries(lists, which, single)
            found = with_found_room(found, n, len(entries.rows))
            seen += len(entries.rows)
            n = score_listed(ranked, entries, term, True, message, found, n)
    return found, n, seen


@kernel
def score_listed(ranked, entries, term, is_far, message, found, n):
    """Score the rows of the list of a term whose heaviest term found it is: rows of place 0 if `is_far`, else the
    others. Return the new n. A row whose rounded box misses the message has place 0 without an exact test.
    """
    rows, params, listed, boxes = ranked.rows, ranked.rank_params, entries.rows, entries.boxes
    offsets, n_terms, terms, weights = rows.offsets, rows.n_terms, rows.terms, params.weights
    unmarked, marks, box = term & (FAR - 1), message.marks, message.box
    for k in range(len(listed)):
        _prefetch_row(rows, params, listed, k)
        row, place = np.int64(listed[k]), 0.0
        if len(boxes) == 0 or overlaps(boxes, k, box):
            place = place_share(rows.boxes[row], box)
        if (place == 0.0) != is_far:
            continue
        first = offsets[row]
        if term == ANYWHERE or _heaviest_found(terms, weights, first, first + n_terms[row], marks) == unmarked:
            n = score_row(rows, params, row, place, message, found, n)
    return n


@kernel
def score_leaf(ranked, slots, boxes, n_above, message, found, n):
    """Score the rows of a leaf that overlap; return the new n. A row is left out if its heaviest term found is among
    its `n_above` heaviest terms, because a node above has listed it. Prefetching halves the time.
    """
    rows, params = ranked.rows, ranked.rank_params
    for k in range(len(slots)):
        _prefetch_row(rows, params, slots, k)
        row, place = np.int64(slots[k]), place_share(boxes[k], message.box)
        if place > 0.0:
            if n_above > 0:
                terms = rows.terms[rows.offsets[row] : rows.offsets[row] + rows.n_terms[row]]
                if _is_listed_above(terms, params.weights, message.marks, n_above):
                    continue
            n = score_row(rows, params, row, place, message, found, n)
    return n


@kernel
def _is_listed_above(terms, weights, marks, n_above):
    """Whether the heaviest term found is among the `n_above` heaviest terms, which nodes above the leaf list."""
    best = _heaviest_found(terms, weights, 0, len(terms), marks)
    if best == NO_TERM_FOUND:
        return False
    n_heavier = 0
    for k in range(len(terms)):
        weight = weights[terms[k]]
        n_heavier += weight > weights[best] or (weight == weights[best] and terms[k] < best)
    return n_heavier < n_above

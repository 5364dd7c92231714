"""Walks down the trie with lists of the quadtree: a node is entered with the parts of the lists in its range.

Lists and siblings are in the order of the rows' numbers, so a node's part of a list is found by binary search from
where its sibling's part ended: below the root by the terms in the entries, which lie together in memory; further down,
where parts are short, by the numbers of the rows. At each node the cheaper of two steps follows: verify all remaining
entries at once, place and terms, or go further down. Nearly all the time is cache misses, so memory is prefetched.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import inline_kernel, kernel
from nearcast.arrays.vector import prefetch
from nearcast.indexes.lfilter.costs import DEEP_ENTRY, cost_of_going_down, steps
from nearcast.matching.predicate import box_overlaps, has_all_terms
from nearcast.matching.store import RowArrays
from nearcast.structures.arena import first_from
from nearcast.structures.boxes import overlaps, surely_overlaps
from nearcast.structures.quadtree.nodes import QuadtreeArrays, cell_of_node, reports_pair
from nearcast.structures.quadtree.search import QuadtreeView, quadtree_view
from nearcast.structures.trie.layout import FIRST_ROW, N_CHILDREN, N_ROWS, ROOT, TrieArrays
from nearcast.structures.trie.probe import TrieView, overlapping_children, packed, trie_view

_PART = 3  # words of a part of a list: the quadtree's node, and where in the arena the part starts and stops
_VISIT = 3  # words of the stack: a packed node of the trie, and where its parts start and stop


class LFilterView(NamedTuple):
    """The arrays that a search reads."""

    trie: TrieView
    numbers: np.ndarray  # int64[rows]  the order of all rows
    ranges: np.ndarray  # int64[n,2]  of numbers, by node of the trie
    quad: QuadtreeView
    rows: RowArrays


def lfilter_view(trie: TrieArrays, ranks: np.ndarray, quad: QuadtreeArrays, rows: RowArrays) -> LFilterView:
    return LFilterView(trie_view(trie, ranks, rows.boxes), trie.numbers, trie.ranges, quadtree_view(quad), rows)


class Pruned(NamedTuple):
    """Rows found, and the work so far."""

    out: np.ndarray  # int32[...]
    n: int  # rows in `out`
    nodes: int  # nodes of the trie reached
    entries: int  # entries verified
    parts: int  # parts of lists cut


class _Memory(NamedTuple):
    """The memory of a walk."""

    stack: np.ndarray  # int64[...]  visits still to do
    parts: np.ndarray  # int64[...]  parts of lists
    children: np.ndarray  # int64[...]  packed nodes


class _Visit(NamedTuple):
    """A node of the trie, with the lists parts[first:stop]."""

    node: int
    n_ranks: int  # the message's ranks that may lead on
    first: int
    stop: int


class _Keys(NamedTuple):
    """The key of each entry: keys[items[place in the arena]], ascending in each list."""

    keys: np.ndarray
    items: np.ndarray


@kernel
def prune(view, message, marks, cells, found):
    """Walk down the trie with the lists of these quadtree nodes; return `found`, extended by the rows that hold."""
    memory = _Memory(np.empty(256, np.int64), np.empty(256, np.int64), np.empty(256, np.int64))
    memory, top = _push_root(view.quad.lists, cells, len(message.ranks), memory)
    while top > 0:
        top -= _VISIT
        word = memory.stack[top]
        visit = _Visit(word >> 32, word & 0xFFFFFFFF, memory.stack[top + 1], memory.stack[top + 2])
        entries, search_steps = _sizes(memory.parts, visit)
        n_children = np.int64(view.trie.records[visit.node, N_CHILDREN])
        nodes, n_parts = found.nodes + 1, found.parts
        is_few = DEEP_ENTRY * entries <= cost_of_going_down(visit.n_ranks, n_children, search_steps)
        if visit.node != ROOT and is_few:
            out, n = _verify_all(view, memory.parts, visit, message, marks, found.out, found.n)
        else:
            out, n, entries = _verify_own(view, memory.parts, visit, message, found.out, found.n)
            if n_children > 0 and visit.n_ranks > 0:
                memory, top, cut = _go_down(view, message, visit, memory, top)
                n_parts += cut
        found = Pruned(out, n, nodes, found.entries + entries, n_parts)
    return found


@kernel
def _push_root(lists, cells, n_ranks, memory):
    """Push the trie's root with the whole lists of these quadtree nodes; return the memory and the stack's top."""
    parts = with_room(memory.parts, 0, _PART * len(cells))
    n = 0
    for k in range(len(cells)):
        count = lists.counts[cells[k]]
        if count > 0:
            parts[n], parts[n + 1] = cells[k], lists.offsets[cells[k]]
            parts[n + 2] = parts[n + 1] + count
            n += _PART
    stack = memory.stack
    stack[0], stack[1], stack[2] = packed(ROOT, n_ranks), 0, n
    return _Memory(stack, parts, memory.children), (_VISIT if n > 0 else 0)


@inline_kernel
def _sizes(parts, visit):
    """The number of entries in all parts, and the number of steps to search each part once."""
    entries, search_steps = np.int64(0), np.int64(0)
    for at in range(visit.first, visit.stop, _PART):
        length = parts[at + 2] - parts[at + 1]
        entries += length
        search_steps += steps(length)
    return entries, search_steps


@inline_kernel
def _go_down(view, message, visit, memory, top):
    """Push the children that the message leads to and that have entries in the lists.

    Return the memory, the stack's top, and the number of parts cut.
    """
    children, n_children = overlapping_children(view.trie, visit.node, visit.n_ranks, message, memory.children)
    stack, parts, end = with_room(memory.stack, top, _VISIT * n_children), memory.parts, visit.stop
    rows, boxes, ranges = view.quad.lists.rows, view.quad.lists.boxes, view.ranges
    by_rank, by_number = _Keys(view.trie.ranks, view.quad.lists.pivots), _Keys(view.numbers, rows)
    for k in range(n_children):
        child, start = np.int64(children[k] >> 32), end
        parts = with_room(parts, end, visit.stop - visit.first)
        if visit.node == ROOT:
            rank = message.ranks[children[k] & 0xFFFFFFFF]
            end = _cut(parts, visit, end, by_rank, rank, rank)
        else:
            end = _cut(parts, visit, end, by_number, ranges[child, 0], ranges[child, 1])
        for at in range(start, end, _PART):
            prefetch(boxes, 4 * parts[at + 1])
            prefetch(rows, parts[at + 1])
        if end > start:
            stack[top], stack[top + 1], stack[top + 2] = children[k], start, end
            top += _VISIT
    return _Memory(stack, parts, children), top, (end - visit.stop) // _PART


@kernel
def _cut(parts, visit, end, by, low, high):
    """Append the entries of a visit's parts with keys from `low` to `high` at parts[end:]; return the new end.

    The visit's parts then start behind these entries.
    """
    keys, items = by.keys, by.items
    for at in range(visit.first, visit.stop, _PART):
        first, stop = parts[at + 1], parts[at + 2]
        if first == stop:
            continue
        first = first_from(keys, items, first, stop, low)
        reach = 1
        while first + reach <= stop and keys[items[first + reach - 1]] <= high:
            reach *= 2
        if reach > 1:
            stop = first_from(keys, items, first + (reach >> 1), min(stop, first + reach - 1), high + 1)
            parts[end], parts[end + 1], parts[end + 2] = parts[at], first, stop
            end += _PART
            first = stop
        parts[at + 1] = first
    return end


@inline_kernel
def _verify_own(view, parts, visit, message, out, n):
    """Verify the places of the rows that end at the visited node, and cut them off the parts.

    Return out, n, and the number of entries verified.
    """
    records, rows, numbers = view.trie.records, view.quad.lists.rows, view.numbers
    first_row, n_rows = np.int64(records[visit.node, FIRST_ROW]), np.int64(records[visit.node, N_ROWS])
    verified = np.int64(0)
    if n_rows > 0:
        last = numbers[view.trie.rows[first_row + n_rows - 1]]
        for at in range(visit.first, visit.stop, _PART):
            first, stop = parts[at + 1], parts[at + 2]
            if records[visit.node, N_CHILDREN] > 0:
                stop = first_from(numbers, rows, first, stop, last + 1)
            out = with_room(out, n, stop - first)
            n = _overlapping_rows(view, parts[at], first, stop, message, out, n)
            verified += stop - first
            parts[at + 1] = stop
    return out, n, verified


@inline_kernel
def _verify_all(view, parts, visit, message, marks, out, n):
    """Verify all remaining entries: the places of all, then the terms of those that overlap. Return out and n."""
    store, stop = view.rows, n
    for at in range(visit.first, visit.stop, _PART):
        out = with_room(out, stop, parts[at + 2] - parts[at + 1])
        stop = _overlapping_rows(view, parts[at], parts[at + 1], parts[at + 2], message, out, stop)
    for k in range(n, stop):
        prefetch(store.offsets, out[k])
        prefetch(store.n_terms, out[k])
    for k in range(n, stop):
        prefetch(store.terms, store.offsets[out[k]])
    for k in range(n, stop):
        if has_all_terms(store, out[k], marks):
            out[n] = out[k]
            n += 1
    return out, n


@inline_kernel
def _overlapping_rows(view, cell, first, stop, message, out, n):
    """Write the rows of entries first .. stop - 1 that overlap, and that this quadtree node reports, to out[n:].

    Return the new n.
    """
    boxes, rows, exact, box = view.quad.lists.boxes, view.quad.lists.rows, message.exact, message.box
    is_range = exact[0] != exact[2] or exact[1] != exact[3]
    own, bounds = cell_of_node(view.quad.nodes, cell), view.quad.nodes.bounds
    for at in range(first, stop):
        if overlaps(boxes, at, box) and (surely_overlaps(boxes, at, box) or box_overlaps(view.rows, rows[at], exact)):
            x, y = max(boxes[at, 0], exact[0]), max(boxes[at, 1], exact[1])
            if not is_range or reports_pair(own, bounds, x, y):
                out[n] = rows[at]
                n += 1
    return n

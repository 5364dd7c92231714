"""Down the trie with lists of the quadtree: a node is entered with those parts of the lists that lie in its range.

All lists are in the order of the rows' numbers, and so are the ranges of siblings: what belongs to a node is found by
binary search in each list, from where its sibling ended. Below the root the terms that lists show tell, which lie
beside each other; further down, where parts are short, the numbers of the rows. At each node the cheaper of two ways
goes on: to verify what is left of the lists at once, place and tokens, or to go further down. Rows that end at a node
have all their tokens in the message, and are asked for their place alone.

Nearly all the time is cache misses, so what will be read is asked for ahead.
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
from nearcast.structures.quadtree.nodes import QuadtreeArrays
from nearcast.structures.quadtree.search import QuadtreeView, cell_place, is_home, quadtree_view
from nearcast.structures.trie.nodes import FIRST_ROW, N_CHILDREN, N_ROWS, ROOT, TrieArrays
from nearcast.structures.trie.probe import TrieView, children_met, near, packed, surely

_PART = 3  # words of a part of a list: the quadtree's node, and where in the arena the part starts and stops
_ENTRY = 3  # words of the stack: node and tokens packed, where its parts start among all, how many they are


class Both(NamedTuple):
    """What is read."""

    trie: TrieView
    numbers: np.ndarray  # int64[rows]  the order of all rows
    ranges: np.ndarray  # int64[n,2]  of numbers, by node of the trie
    quad: QuadtreeView
    rows: RowArrays


def both_of(held: TrieView, trie: TrieArrays, quad: QuadtreeArrays, rows: RowArrays) -> Both:
    return Both(held, trie.numbers, trie.ranges, quadtree_view(quad), rows)


class Pile(NamedTuple):
    """Memory of a walk: what is still to do, parts of lists, children met."""

    stack: np.ndarray  # int64[...]
    parts: np.ndarray  # int64[...]
    met: np.ndarray  # int64[...]


@kernel
def prune(both, ask, marks, cells, found):
    """Go down the trie with the lists of these nodes of the quadtree. `found` and the answer: rows that hold, how many,
    nodes reached, entries looked at, parts of lists cut.
    """
    pile = Pile(np.empty(256, np.int64), np.empty(256, np.int64), np.empty(256, np.int64))
    pile, top = _start(both.quad.lists, cells, len(ask.tokens), pile)
    while top > 0:
        top -= _ENTRY
        word, first, stop = pile.stack[top], pile.stack[top + 1], pile.stack[top + 2]
        node, n_tokens = np.int64(word >> 32), word & 0xFFFFFFFF
        out, n, nodes, seen, n_parts = found
        entries, search_steps = _sizes(pile.parts, first, stop)
        kids = np.int64(both.trie.records[node, N_CHILDREN])
        if node != ROOT and DEEP_ENTRY * entries <= cost_of_going_down(n_tokens, kids, search_steps):
            out, n = _verify(both, pile.parts, (first, stop), ask, marks, out, n)
            found = (out, n, nodes + 1, seen + entries, n_parts)
            continue
        out, n, own = _verify_own(both, pile.parts, (first, stop), node, ask, out, n)
        found = (out, n, nodes + 1, seen + own, n_parts)
        if kids > 0 and n_tokens > 0:
            pile, top, more = _go_down(both, ask, (node, n_tokens, first, stop), pile, top)
            found = (out, n, nodes + 1, seen + own, n_parts + more)
    return found


@kernel
def _start(lists, cells, n_tokens, pile):
    """The root with whole lists."""
    stack, parts, met = pile
    parts = with_room(parts, 0, _PART * len(cells))
    n = 0
    for k in range(len(cells)):
        count = lists.counts[cells[k]]
        if count > 0:
            parts[n], parts[n + 1] = cells[k], lists.offsets[cells[k]]
            parts[n + 2] = parts[n + 1] + count
            n += _PART
    stack[0], stack[1], stack[2] = packed(ROOT, n_tokens), 0, n
    return Pile(stack, parts, met), (_ENTRY if n > 0 else 0)


@inline_kernel
def _sizes(parts, first, stop):
    """Entries in all, and steps to search each part once."""
    entries, search_steps = np.int64(0), np.int64(0)
    for at in range(first, stop, _PART):
        length = parts[at + 2] - parts[at + 1]
        entries += length
        search_steps += steps(length)
    return entries, search_steps


@inline_kernel
def _go_down(both, ask, place, pile, top):
    """Put the children that the message meets and that have something of the lists on the stack; return the pile, its
    top, and how many parts were cut.
    """
    stack, parts, met = pile
    node, n_tokens, first, stop = place
    met, n_met = children_met(both.trie, node, n_tokens, ask, met)
    stack, used = with_room(stack, top, _ENTRY * n_met), stop
    rows, shown, numbers, ranges = both.quad.lists.rows, both.quad.lists.pivots, both.numbers, both.ranges
    for k in range(n_met):
        child, start = np.int64(met[k] >> 32), used
        parts = with_room(parts, used, stop - first)
        if node == ROOT:
            token = ask.tokens[met[k] & 0xFFFFFFFF]
            used = _cut(parts, (first, stop, used), both.trie.places, shown, token, token)
        else:
            used = _cut(parts, (first, stop, used), numbers, rows, ranges[child, 0], ranges[child, 1])
        for at in range(start, used, _PART):
            prefetch(both.quad.lists.boxes, 4 * parts[at + 1])
            prefetch(rows, parts[at + 1])
        if used > start:
            stack[top], stack[top + 1], stack[top + 2] = met[k], start, used
            top += _ENTRY
    return Pile(stack, parts, met), top, (used - stop) // _PART


@kernel
def _cut(parts, place, keys, items, low, high):
    """Write what lies from key `low` to key `high` of the parts from `first` to `stop` behind all parts; the parts
    themselves go on behind that. An entry's key is that of its item. Return the new end.
    """
    first, stop, used = place
    for at in range(first, stop, _PART):
        begin, end = parts[at + 1], parts[at + 2]
        if begin == end:
            continue
        begin = first_from(keys, items, begin, end, low)
        reach = 1
        while begin + reach <= end and keys[items[begin + reach - 1]] <= high:
            reach *= 2
        if reach > 1:
            end = first_from(keys, items, begin + (reach >> 1), min(end, begin + reach - 1), high + 1)
            parts[used], parts[used + 1], parts[used + 2] = parts[at], begin, end
            used += _PART
            begin = end
        parts[at + 1] = begin
    return used


@inline_kernel
def first_from(keys, items, low, high, key):
    """Where from `low` to `high` the first entry lies whose item has a key that is not below the one given."""
    while low < high:
        middle = (low + high) >> 1
        if keys[items[middle]] < key:
            low = middle + 1
        else:
            high = middle
    return low


@inline_kernel
def _verify_own(both, parts, run, node, ask, out, n):
    """Verify the rows that end at a node, by their place alone, and cut them off the parts; return out, n, and how many
    there were.
    """
    records, rows, numbers = both.trie.records, both.quad.lists.rows, both.numbers
    first_row, n_rows = np.int64(records[node, FIRST_ROW]), np.int64(records[node, N_ROWS])
    seen = np.int64(0)
    if n_rows > 0:
        last = numbers[both.trie.rows[first_row + n_rows - 1]]
        for at in range(run[0], run[1], _PART):
            end = parts[at + 2]
            if records[node, N_CHILDREN] > 0:
                end = first_from(numbers, rows, parts[at + 1], end, last + 1)
            out = with_room(out, n, end - parts[at + 1])
            n = _there(both, parts[at], (parts[at + 1], end), ask, out, n)
            seen += end - parts[at + 1]
            parts[at + 1] = end
    return out, n, seen


@inline_kernel
def _verify(both, parts, run, ask, marks, out, n):
    """Verify all that is left of the lists: the place of all, then the tokens of those that overlap."""
    store, stop = both.rows, n
    for at in range(run[0], run[1], _PART):
        out = with_room(out, stop, parts[at + 2] - parts[at + 1])
        stop = _there(both, parts[at], (parts[at + 1], parts[at + 2]), ask, out, stop)
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
def _there(both, cell, run, ask, out, n):
    """Write the rows at these places of the quadtree's lists that overlap, and are told by this cell's list, to
    out[n:]; return the new n.
    """
    boxes, rows, exact, box = both.quad.lists.boxes, both.quad.lists.rows, ask.exact, ask.box
    is_range = exact[0] != exact[2] or exact[1] != exact[3]
    home, bounds = cell_place(both.quad.nodes, cell), both.quad.nodes.bounds
    for place in range(run[0], run[1]):
        if near(boxes, place, box) and (surely(boxes, place, box) or box_overlaps(both.rows, rows[place], exact)):
            x, y = max(boxes[place, 0], exact[0]), max(boxes[place, 1], exact[1])
            if not is_range or is_home(home, bounds, x, y):
                out[n] = rows[place]
                n += 1
    return n

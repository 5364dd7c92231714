"""Numbers of rows: they give the order of rows, with gaps for rows to come.

When a gap is used up, the rows around it are renumbered: those of the smallest part of the trie that has room, which
grows from the node's own subtree over runs of siblings to the whole trie. The larger the part, the more room it must
have (half as much again with each step), so large parts are renumbered rarely. There is always room at both ends.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import kernel
from nearcast.structures.trie import layout
from nearcast.structures.trie.layout import child_place, set_range

LOWEST, HIGHEST = np.int64(-(1 << 61)), np.int64(1 << 61)  # beyond every number; their difference fits in int64 too


@kernel
def number_before(trie, node):
    """The largest number of a row before those at or below the node, or LOWEST."""
    while node != layout.ROOT:
        parent = np.int64(trie.parents[node])
        place = child_place(trie, parent, trie.ranks[node])
        if place > trie.spans[parent, layout.FIRST_CHILD]:
            return trie.ranges[trie.children[place - 1, 1], 1]
        if trie.spans[parent, layout.N_ROWS] > 0:
            return trie.numbers[trie.rows[trie.spans[parent, layout.FIRST_ROW] + trie.spans[parent, layout.N_ROWS] - 1]]
        node = parent
    return LOWEST


@kernel
def number_behind(trie, node):
    """The least number of a row behind those at or below the node, or HIGHEST."""
    while node != layout.ROOT:
        parent = np.int64(trie.parents[node])
        place = child_place(trie, parent, trie.ranks[node]) + 1
        if place < trie.spans[parent, layout.FIRST_CHILD] + trie.spans[parent, layout.N_CHILDREN]:
            return trie.ranges[trie.children[place, 1], 0]
        node = parent
    return HIGHEST


@kernel
def number_last_row(trie, node):
    """Number the last row of the node's list, which is new; renumber others if its gap is used up."""
    first, n_rows = np.int64(trie.spans[node, layout.FIRST_ROW]), trie.spans[node, layout.N_ROWS]
    row = trie.rows[first + n_rows - 1]
    before = trie.numbers[trie.rows[first + n_rows - 2]] if n_rows > 1 else number_before(trie, node)
    if trie.spans[node, layout.N_CHILDREN] > 0:
        behind = trie.ranges[trie.children[trie.spans[node, layout.FIRST_CHILD], 1], 0]
    else:
        behind = number_behind(trie, node)
    if behind - before < 2:
        _renumber_around(trie, node)
    elif before == LOWEST:
        trie.numbers[row] = 0 if behind == HIGHEST else behind - trie.head[layout.GAP]
    elif behind == HIGHEST:
        trie.numbers[row] = before + trie.head[layout.GAP]
    else:
        trie.numbers[row] = before + 1 if n_rows > 1 else before + ((behind - before) >> 1)


@kernel
def _renumber_around(trie, node):
    """Renumber the smallest part around a node that has room, and set the ranges of all nodes above it."""
    needed = 2
    while node != layout.ROOT:
        if _renumber_if_room(trie, node, (0, 0), needed):
            break
        parent = np.int64(trie.parents[node])
        first = np.int64(trie.spans[parent, layout.FIRST_CHILD])
        stop = first + trie.spans[parent, layout.N_CHILDREN]
        place, reach, is_done = child_place(trie, parent, trie.ranks[node]), 1, False
        while not is_done and (place - reach > first or place + reach < stop - 1):
            needed += needed >> 1
            run = (max(first, place - reach), min(stop, place + reach + 1))
            is_done = _renumber_if_room(trie, parent, run, needed)
            reach *= 4
        node = parent
        if is_done:
            break
        needed += needed >> 1
    if node == layout.ROOT:
        _renumber(trie, layout.ROOT, (0, 0), 0, trie.head[layout.GAP])
    while node != layout.ROOT:
        set_range(trie, node)
        node = np.int64(trie.parents[node])
    set_range(trie, layout.ROOT)


@kernel
def _renumber_if_room(trie, node, run, needed):
    """Renumber the rows below a node, or below a run of its children, if each gets `needed` numbers; return whether.

    A run is (first place, stop) in the arena of children; an empty run means the node itself.
    """
    first, stop = run
    count, before, behind = np.int64(0), LOWEST, HIGHEST
    if first == stop:
        count = np.int64(trie.below[node])
        before, behind = number_before(trie, node), number_behind(trie, node)
    else:
        for place in range(first, stop):
            count += trie.below[trie.children[place, 1]]
        before = number_before(trie, np.int64(trie.children[first, 1]))
        behind = number_behind(trie, np.int64(trie.children[stop - 1, 1]))
    if before == LOWEST and behind == HIGHEST:
        return False  # these are all rows: renumbering the root has unlimited room
    if before == LOWEST:
        before = behind - (count + 1) * trie.head[layout.GAP]
    elif behind == HIGHEST:
        behind = before + (count + 1) * trie.head[layout.GAP]
    step = (behind - before) // (count + 1)
    if step < needed:
        return False
    _renumber(trie, node, run, before + step, step)
    return True


@kernel
def _renumber(trie, node, run, number, step):
    """Number the rows below a node, or below a run of its children, from `number` on in equal steps; set ranges."""
    stack = np.empty(64, np.int32)
    order = np.empty(64, np.int32)
    n = n_order = 0
    if run[0] == run[1]:
        stack[0], n = node, 1
    else:
        stack = with_room(stack, n, run[1] - run[0])
        for place in range(run[1] - 1, run[0] - 1, -1):
            stack[n] = trie.children[place, 1]
            n += 1
    while n > 0:
        n -= 1
        at = stack[n]
        order = with_room(order, n_order, 1)
        order[n_order] = at
        n_order += 1
        first_child, n_children, first_row, n_rows = trie.spans[at]
        for place in range(first_row, first_row + n_rows):
            trie.numbers[trie.rows[place]] = number
            number += step
        trie.head[layout.RENUMBERED] += n_rows
        stack = with_room(stack, n, n_children)
        for place in range(first_child + n_children - 1, first_child - 1, -1):
            stack[n] = trie.children[place, 1]
            n += 1
    for k in range(n_order - 1, -1, -1):
        set_range(trie, order[k])

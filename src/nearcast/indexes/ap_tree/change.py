"""Rows that come and go, one by one, in the leaves that are there."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import kernel
from nearcast.indexes.ap_tree.entries import ROW, copy_entry, write_entry
from nearcast.indexes.ap_tree.nodes import (
    ACROSS,
    CHILD,
    COUNT,
    DEAD,
    DOWN,
    DUMMY,
    EDGES,
    FIRST,
    K_NODE,
    KIND,
    LEAF,
    LEVEL,
    NONE,
    ROOM,
    USED_CELLS,
    USED_CUTS,
    USED_EDGES,
    USED_ENTRIES,
    USED_NODES,
    WEIGHT,
)
from nearcast.indexes.ap_tree.route import gather_path


@kernel
def insert_items(shape, facts, rows, done, limits, path):
    """Insert items from `done` on until room runs out: return how many are done, how many entries the next one needs or
    what else lacks (see gather_path), and the leaves that have become too large. `path` is scratch.
    """
    large = np.empty(64, np.int32)
    n_large = 0
    for item in range(done, len(rows.rows)):
        n = gather_path(shape, facts, rows, item, limits, path)
        needed = n if n < 0 else _entries_needed(shape, path, n)
        if n < 0 or facts.head[USED_ENTRIES] + needed > len(shape.entries):
            return item, needed, large[:n_large].copy()
        for k in range(n):
            node = path[k]
            shape.nodes[node, WEIGHT] += 1
            if shape.nodes[node, KIND] == LEAF:
                _append(shape, facts, node, rows, item)
                if shape.nodes[node, COUNT] == facts.limits[node] + 1:
                    large = with_room(large, n_large, 1)
                    large[n_large] = node
                    n_large += 1
    return len(rows.rows), 0, large[:n_large].copy()


@kernel
def _larger(room):
    return room + room // 2 + 2


@kernel
def _entries_needed(shape, path, n):
    needed = 0
    for k in range(n):
        line = shape.nodes[path[k]]
        if line[KIND] == LEAF and line[COUNT] == line[ROOM]:
            needed += _larger(line[ROOM])
    return needed


@kernel
def _append(shape, facts, leaf, rows, item):
    """One more entry; a full leaf moves to the end of the arena."""
    line, head = shape.nodes[leaf], facts.head
    if line[COUNT] == line[ROOM]:
        target = head[USED_ENTRIES]
        for k in range(line[COUNT]):
            copy_entry(shape, line[FIRST] + k, shape, target + k)
        head[DEAD + USED_ENTRIES] += line[ROOM]
        line[FIRST], line[ROOM] = target, _larger(line[ROOM])
        head[USED_ENTRIES] += line[ROOM]
    write_entry(shape, line[FIRST] + line[COUNT], rows, item)
    line[COUNT] += 1


@kernel
def remove_items(shape, facts, rows, least, limits, path):
    """Remove items that are in the tree, until something lacks: return how many are done, what lacks, and the inner
    nodes that have come down to `least` rows.
    """
    small = np.empty(64, np.int32)
    n_small = 0
    for item in range(len(rows.rows)):
        n = gather_path(shape, facts, rows, item, limits, path)
        if n < 0:
            return item, n, small[:n_small].copy()
        for k in range(n):
            node = path[k]
            shape.nodes[node, WEIGHT] -= 1
            if shape.nodes[node, KIND] == LEAF:
                _take_out(shape, node, rows.rows[item])
            elif shape.nodes[node, WEIGHT] == least:
                small = with_room(small, n_small, 1)
                small[n_small] = node
                n_small += 1
    return len(rows.rows), 0, small[:n_small].copy()


@kernel
def _take_out(shape, leaf, row):
    """The last entry takes the place of the row's."""
    line = shape.nodes[leaf]
    last = line[FIRST] + line[COUNT] - 1
    at = line[FIRST]
    while at < last and shape.entries[at, ROW] != row:
        at += 1
    copy_entry(shape, last, shape, at)
    line[COUNT] -= 1


@kernel
def emptied(shape, facts, top):
    """Make a node an empty leaf; return the rows that were below it, a row as often as it was there.

    Its descendants become empty leaves as well, so that one that is still named somewhere is seen to be gone.
    """
    rows, queue = np.empty(256, np.int32), np.empty(256, np.int32)
    queue[0] = top
    at, end, n = 0, 1, 0
    while at < end:
        node = queue[at]
        at += 1
        line = shape.nodes[node]
        if line[KIND] == LEAF:
            rows = with_room(rows, n, line[COUNT])
            for k in range(line[COUNT]):
                rows[n + k] = shape.entries[line[FIRST] + k, ROW]
            n += line[COUNT]
        else:
            queue = with_room(queue, end, children_of(shape, node))
            end = push_children(shape, node, queue, end)
        _let_go(facts.head, line)
    facts.head[DEAD + USED_NODES] += end - 1  # all but the top
    return rows[:n].copy()


@kernel
def children_of(shape, node):
    """How many children an inner node has at most."""
    line = shape.nodes[node]
    return 1 + (line[COUNT] if line[KIND] == K_NODE else line[ACROSS] * line[DOWN])


@kernel
def push_children(shape, node, queue, end):
    """Write the children of an inner node to queue[end:]; return the new end."""
    line = shape.nodes[node]
    if line[KIND] == K_NODE:
        for k in range(line[FIRST], line[FIRST] + line[COUNT]):
            queue[end] = shape.kids[k, CHILD] >> 1
            end += 1
    else:
        for k in range(line[FIRST], line[FIRST] + line[ACROSS] * line[DOWN]):
            if shape.cells[k] != NONE:
                queue[end] = shape.cells[k]
                end += 1
    if line[DUMMY] != NONE:
        queue[end] = line[DUMMY]
        end += 1
    return end


@kernel
def _let_go(head, line):
    """What the node holds is dead; it is an empty leaf, with the level that it had before it was divided."""
    if line[KIND] == LEAF:
        head[DEAD + USED_ENTRIES] += line[ROOM]
    elif line[KIND] == K_NODE:
        head[DEAD + USED_CUTS] += line[ROOM]
        line[LEVEL] = line[EDGES]
    else:
        head[DEAD + USED_CELLS] += line[ACROSS] * line[DOWN]
        head[DEAD + USED_EDGES] += line[ACROSS] + line[DOWN] - 2
    line[KIND] = LEAF
    line[FIRST] = line[COUNT] = line[ROOM] = line[WEIGHT] = 0
    line[DUMMY] = NONE

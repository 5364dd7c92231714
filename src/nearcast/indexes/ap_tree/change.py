"""Inserts rows into existing leaves and removes them, one by one; finds nodes whose division no longer fits."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import kernel
from nearcast.indexes.ap_tree import layout
from nearcast.indexes.ap_tree.layout import write_entry
from nearcast.indexes.ap_tree.route import gather_path
from nearcast.structures.arena import larger_room

_UNSEEN = 1.0  # every count is raised by one, so that an empty child does not make the divergence infinite


@kernel
def insert_items(view, facts, rows, done, limits, path):
    """Insert items from `done` on until room runs out.

    Return the number done, the number of entries that the next item needs or a code of gather_path, and the leaves that
    have become too large. `path` is scratch.
    """
    large = np.empty(64, np.int32)
    n_large = 0
    for item in range(done, len(rows.rows)):
        n = gather_path(view, facts, rows, item, limits, path)
        needed = n if n < 0 else _entries_needed(view, path, n)
        if n < 0 or facts.head[layout.USED_ENTRIES] + needed > len(view.entries):
            return item, needed, large[:n_large].copy()
        for k in range(n):
            node = path[k]
            view.nodes[node, layout.WEIGHT] += 1
            if view.nodes[node, layout.KIND] == layout.LEAF:
                _append(view, facts, node, rows, item)
                if view.nodes[node, layout.COUNT] == facts.limits[node] + 1:
                    large = with_room(large, n_large, 1)
                    large[n_large] = node
                    n_large += 1
    return len(rows.rows), 0, large[:n_large].copy()


@kernel
def _entries_needed(view, path, n):
    needed = 0
    for k in range(n):
        line = view.nodes[path[k]]
        if line[layout.KIND] == layout.LEAF and line[layout.COUNT] == line[layout.ROOM]:
            needed += larger_room(line[layout.ROOM])
    return needed


@kernel
def _append(view, facts, leaf, rows, item):
    """Append an entry; a full leaf moves to the end of the arena."""
    line, head = view.nodes[leaf], facts.head
    if line[layout.COUNT] == line[layout.ROOM]:
        target = head[layout.USED_ENTRIES]
        for k in range(line[layout.COUNT]):
            view.entries[target + k] = view.entries[line[layout.FIRST] + k]
        head[layout.DEAD + layout.USED_ENTRIES] += line[layout.ROOM]
        line[layout.FIRST], line[layout.ROOM] = target, larger_room(line[layout.ROOM])
        head[layout.USED_ENTRIES] += line[layout.ROOM]
    write_entry(view, line[layout.FIRST] + line[layout.COUNT], rows, item)
    line[layout.COUNT] += 1


@kernel
def remove_items(view, facts, rows, least, limits, path):
    """Remove items that are in the tree until room runs out.

    Return the number done, a code of gather_path, and the inner nodes that have come down to `least` rows.
    """
    small = np.empty(64, np.int32)
    n_small = 0
    for item in range(len(rows.rows)):
        n = gather_path(view, facts, rows, item, limits, path)
        if n < 0:
            return item, n, small[:n_small].copy()
        for k in range(n):
            node = path[k]
            view.nodes[node, layout.WEIGHT] -= 1
            if view.nodes[node, layout.KIND] == layout.LEAF:
                _take_out(view, node, rows.rows[item])
            elif view.nodes[node, layout.WEIGHT] == least:
                small = with_room(small, n_small, 1)
                small[n_small] = node
                n_small += 1
    return len(rows.rows), 0, small[:n_small].copy()


@kernel
def _take_out(view, leaf, row):
    """Replace a row's entry by the last one."""
    line = view.nodes[leaf]
    last = line[layout.FIRST] + line[layout.COUNT] - 1
    at = line[layout.FIRST]
    while at < last and view.entries[at, layout.ROW] != row:
        at += 1
    view.entries[at] = view.entries[last]
    line[layout.COUNT] -= 1


@kernel
def emptied(view, facts, top):
    """Make a node an empty leaf; return the rows below it, each as often as it had entries.

    Its descendants become empty leaves too, so that a caller that still holds a number sees that the node is gone.
    """
    rows, queue = np.empty(256, np.int32), np.empty(256, np.int32)
    queue[0] = top
    at, end, n = 0, 1, 0
    while at < end:
        node = queue[at]
        at += 1
        line = view.nodes[node]
        if line[layout.KIND] == layout.LEAF:
            rows = with_room(rows, n, line[layout.COUNT])
            for k in range(line[layout.COUNT]):
                rows[n + k] = view.entries[line[layout.FIRST] + k, layout.ROW]
            n += line[layout.COUNT]
        else:
            queue = with_room(queue, end, children_of(view, node))
            end = push_children(view, node, queue, end)
        _release(facts.head, line)
    facts.head[layout.DEAD + layout.USED_NODES] += end - 1  # all but the top
    return rows[:n].copy()


@kernel
def children_of(view, node):
    """The largest number of children that an inner node can have."""
    line = view.nodes[node]
    return 1 + (line[layout.COUNT] if line[layout.KIND] == layout.K_NODE else line[layout.ACROSS] * line[layout.DOWN])


@kernel
def push_children(view, node, queue, end):
    """Write the children of an inner node to queue[end:]; return the new end."""
    line = view.nodes[node]
    if line[layout.KIND] == layout.K_NODE:
        for k in range(line[layout.FIRST], line[layout.FIRST] + line[layout.COUNT]):
            queue[end] = view.kids[k, layout.CHILD] >> 1
            end += 1
    else:
        for k in range(line[layout.FIRST], line[layout.FIRST] + line[layout.ACROSS] * line[layout.DOWN]):
            if view.cells[k] != layout.NONE:
                queue[end] = view.cells[k]
                end += 1
    if line[layout.DUMMY] != layout.NONE:
        queue[end] = line[layout.DUMMY]
        end += 1
    return end


@kernel
def _release(head, line):
    """Count what a node holds as dead, and make it an empty leaf with the level that it had before it was divided."""
    if line[layout.KIND] == layout.LEAF:
        head[layout.DEAD + layout.USED_ENTRIES] += line[layout.ROOM]
    elif line[layout.KIND] == layout.K_NODE:
        head[layout.DEAD + layout.USED_CUTS] += line[layout.ROOM]
        line[layout.LEVEL] = line[layout.EDGES]
    else:
        head[layout.DEAD + layout.USED_CELLS] += line[layout.ACROSS] * line[layout.DOWN]
        head[layout.DEAD + layout.USED_EDGES] += line[layout.ACROSS] + line[layout.DOWN] - 2
    line[layout.KIND] = layout.LEAF
    line[layout.FIRST] = line[layout.COUNT] = line[layout.ROOM] = line[layout.WEIGHT] = 0
    line[layout.DUMMY] = layout.NONE


@kernel
def _divergence(view, facts, children):
    """The Kullback-Leibler divergence of the children's present weights from those at the division, less random drift.

    If o rows then and w rows now were drawn from one distribution over k children, the divergence would be
    (k - 1) / 2 x |1 / o - 1 / w| on average; twice that is subtracted. Without it, nodes of a thousand rows and 200
    cuts would be rebuilt at every check.
    """
    then = now = 0.0
    for k in range(len(children)):
        then += facts.built[children[k]] + _UNSEEN
        now += view.nodes[children[k], layout.WEIGHT] + _UNSEEN
    total = 0.0
    for k in range(len(children)):
        old = (facts.built[children[k]] + _UNSEEN) / then
        new = (view.nodes[children[k], layout.WEIGHT] + _UNSEEN) / now
        total += old * np.log(old / new)
    return total - (len(children) - 1) * abs(1.0 / then - 1.0 / now)


@kernel
def drifted(view, facts, least, theta, budget):
    """The nodes with at least `least` rows that diverge by more than theta, topmost first; none is below another.

    Each takes its rows from the budget. Where a node has more rows than are left, its children are checked instead.
    """
    queue, found = np.empty(256, np.int32), np.empty(16, np.int32)
    queue[0] = layout.ROOT
    at, end, n = 0, 1, 0
    while at < end:
        node = queue[at]
        at += 1
        weight = view.nodes[node, layout.WEIGHT]
        if view.nodes[node, layout.KIND] == layout.LEAF or weight < least:
            continue
        queue = with_room(queue, end, children_of(view, node))
        stop = push_children(view, node, queue, end)
        if weight <= budget and _divergence(view, facts, queue[end:stop]) > theta:
            found = with_room(found, n, 1)
            found[n] = node
            n += 1
            budget -= weight
        else:
            end = stop
    return found[:n].copy()

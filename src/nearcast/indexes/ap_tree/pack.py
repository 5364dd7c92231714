"""A copy of what is alive, parents before children, the children of a node side by side."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.indexes.ap_tree.entries import copy_entry
from nearcast.indexes.ap_tree.nodes import (
    ACROSS,
    CHILD,
    COUNT,
    DEAD,
    DOWN,
    DUMMY,
    EDGES,
    FIRST,
    HIGH,
    K_NODE,
    KIND,
    LEAF,
    NONE,
    ROOM,
    ROOT,
    USED_CELLS,
    USED_CUTS,
    USED_EDGES,
    USED_ENTRIES,
    USED_NODES,
    Tree,
)


def is_loose(tree: Tree) -> bool:
    """Whether a third of the entries, or half of something else, is dead."""
    used, dead = tree.head[:DEAD], tree.head[DEAD:]
    is_worth = int(dead.sum()) > 1024
    return is_worth and bool((2 * dead > used).any() or 3 * dead[USED_ENTRIES] > used[USED_ENTRIES])


def packed(tree: Tree) -> Tree:
    """The same tree without what is dead. Leaves have the room that they had."""
    made = Tree()
    nodes, cuts, cells, edges, entries = (tree.head[:DEAD] - tree.head[DEAD:]).tolist()
    made.reserve(nodes, cuts, cells, edges, entries)
    order = np.empty(nodes, np.int32)
    _copy(tree.shape, made.shape, made.head, order)
    old, new = tree.facts, made.facts
    for name in ("built", "limits", "flags", "ratios", "regions"):
        getattr(new, name)[:nodes] = getattr(old, name)[order]
    return made


@kernel
def _copy(old, new, head, order):
    """Fill the empty `new`, and order: which of the old nodes each new one was."""
    order[0] = ROOT
    end = 1
    for node in range(len(order)):
        line = new.nodes[node]
        line[:] = old.nodes[order[node]]
        if line[KIND] == LEAF:
            _copy_entries(old, new, head, line)
        elif line[KIND] == K_NODE:
            end = _copy_cuts(old, new, (head, order), line, end)
        else:
            end = _copy_cells(old, new, (head, order), line, end)
        if line[DUMMY] != NONE:
            order[end] = line[DUMMY]
            line[DUMMY] = end
            end += 1
    head[USED_NODES] = len(order)


@kernel
def _copy_entries(old, new, head, line):
    target = head[USED_ENTRIES]
    for k in range(line[COUNT]):
        copy_entry(old, line[FIRST] + k, new, target + k)
    line[FIRST] = target
    head[USED_ENTRIES] += line[ROOM]


@kernel
def _copy_cuts(old, new, made, line, end):
    head, order = made
    target = head[USED_CUTS]
    for k in range(line[COUNT]):
        source = line[FIRST] + k
        new.lows[target + k], new.kids[target + k, HIGH] = old.lows[source], old.kids[source, HIGH]
        order[end] = old.kids[source, CHILD] >> 1
        new.kids[target + k, CHILD] = 2 * end + (old.kids[source, CHILD] & 1)
        end += 1
    line[FIRST] = target
    head[USED_CUTS] += line[ROOM]
    return end


@kernel
def _copy_cells(old, new, made, line, end):
    head, order = made
    target, edge = head[USED_CELLS], head[USED_EDGES]
    for k in range(line[ACROSS] * line[DOWN]):
        child = old.cells[line[FIRST] + k]
        new.cells[target + k] = NONE if child == NONE else end
        if child != NONE:
            order[end] = child
            end += 1
    n_edges = line[ACROSS] + line[DOWN] - 2
    for k in range(n_edges):
        new.edges[edge + k] = old.edges[line[EDGES] + k]
    line[FIRST], line[EDGES] = target, edge
    head[USED_CELLS] += line[ACROSS] * line[DOWN]
    head[USED_EDGES] += n_edges
    return end

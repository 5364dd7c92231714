"""Copies the live part of a tree, parents before children and siblings side by side."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.indexes.ap_tree import layout
from nearcast.indexes.ap_tree.layout import Tree


def is_loose(tree: Tree) -> bool:
    """Whether a third of the entries, or half of another arena, is dead."""
    used, dead = tree.head[: layout.DEAD], tree.head[layout.DEAD :]
    is_worth = int(dead.sum()) > 1024
    return is_worth and bool((2 * dead > used).any() or 3 * dead[layout.USED_ENTRIES] > used[layout.USED_ENTRIES])


def packed(tree: Tree) -> Tree:
    """The same tree without its dead parts. Leaves keep their room."""
    made = Tree()
    nodes, cuts, cells, edges, entries = (tree.head[: layout.DEAD] - tree.head[layout.DEAD :]).tolist()
    made.reserve(nodes, cuts, cells, edges, entries)
    order = np.empty(nodes, np.int32)
    _copy(tree.view, made.view, made.head, order)
    old, new = tree.facts, made.facts
    for name in ("built", "limits", "flags", "ratios", "regions"):
        getattr(new, name)[:nodes] = getattr(old, name)[order]
    return made


@kernel
def _copy(old, new, head, order):
    """Fill the empty tree `new`, and `order`: the old number of each new node."""
    order[0] = layout.ROOT
    end = 1
    for node in range(len(order)):
        line = new.nodes[node]
        line[:] = old.nodes[order[node]]
        if line[layout.KIND] == layout.LEAF:
            _copy_entries(old, new, head, line)
        elif line[layout.KIND] == layout.K_NODE:
            end = _copy_cuts(old, new, head, order, line, end)
        else:
            end = _copy_cells(old, new, head, order, line, end)
        if line[layout.DUMMY] != layout.NONE:
            order[end] = line[layout.DUMMY]
            line[layout.DUMMY] = end
            end += 1
    head[layout.USED_NODES] = len(order)


@kernel
def _copy_entries(old, new, head, line):
    target = head[layout.USED_ENTRIES]
    for k in range(line[layout.COUNT]):
        new.entries[target + k] = old.entries[line[layout.FIRST] + k]
    line[layout.FIRST] = target
    head[layout.USED_ENTRIES] += line[layout.ROOM]


@kernel
def _copy_cuts(old, new, head, order, line, end):
    target = head[layout.USED_CUTS]
    for k in range(line[layout.COUNT]):
        source = line[layout.FIRST] + k
        new.lows[target + k], new.kids[target + k, layout.HIGH] = old.lows[source], old.kids[source, layout.HIGH]
        order[end] = old.kids[source, layout.CHILD] >> 1
        new.kids[target + k, layout.CHILD] = 2 * end + (old.kids[source, layout.CHILD] & 1)
        end += 1
    line[layout.FIRST] = target
    head[layout.USED_CUTS] += line[layout.ROOM]
    return end


@kernel
def _copy_cells(old, new, head, order, line, end):
    target, edge = head[layout.USED_CELLS], head[layout.USED_EDGES]
    for k in range(line[layout.ACROSS] * line[layout.DOWN]):
        child = old.cells[line[layout.FIRST] + k]
        new.cells[target + k] = layout.NONE if child == layout.NONE else end
        if child != layout.NONE:
            order[end] = child
            end += 1
    n_edges = line[layout.ACROSS] + line[layout.DOWN] - 2
    for k in range(n_edges):
        new.edges[edge + k] = old.edges[line[layout.EDGES] + k]
    line[layout.FIRST], line[layout.EDGES] = target, edge
    head[layout.USED_CELLS] += line[layout.ACROSS] * line[layout.DOWN]
    head[layout.USED_EDGES] += n_edges
    return end

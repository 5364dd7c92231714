"""Copies the live part of a tree, parents before children and siblings side by side."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.indexes.ap_tree import layout
from nearcast.indexes.ap_tree.change import push_children
from nearcast.indexes.ap_tree.layout import Tree


def is_loose(tree: Tree) -> bool:
    """Whether a third of the entries, or half of another arena, is dead."""
    used, dead = tree.head[: layout.DEAD], tree.head[layout.DEAD :]
    is_worth = int(dead.sum()) > 1024
    return is_worth and bool((2 * dead > used).any() or 3 * dead[layout.USED_ENTRIES] > used[layout.USED_ENTRIES])


def packed(tree: Tree) -> Tree:
    """The same tree without its dead parts. Leaves keep their room."""
    made, live = Tree(), tree.head[: layout.DEAD] - tree.head[layout.DEAD :]
    made.reserve(*live.tolist())
    made.head[: layout.DEAD] = live
    order = np.empty(live[layout.USED_NODES], np.int32)
    _copy(tree.view, made.view, order)
    for old, new in zip(tree.facts[:-1], made.facts[:-1], strict=True):
        new[: len(order)] = old[order]
    return made


@kernel
def _copy(old, new, order):
    """Fill the empty tree `new`, and `order`: the old number of each new node. Children are numbered in order."""
    order[0] = layout.ROOT
    end, entry, cut, cell, edge = 1, 0, 0, 0, 0
    for node in range(len(order)):
        line = new.nodes[node]
        line[:] = old.nodes[order[node]]
        first, count, child = np.int64(line[layout.FIRST]), np.int64(line[layout.COUNT]), end
        if line[layout.KIND] != layout.LEAF:
            end = push_children(old, order[node], order, end)
        if line[layout.DUMMY] != layout.NONE:
            line[layout.DUMMY] = end - 1
        if line[layout.KIND] == layout.LEAF:
            _copy_run(old.entries, first, count, new.entries, entry)
            line[layout.FIRST] = entry
            entry += line[layout.ROOM]
        elif line[layout.KIND] == layout.K_NODE:
            _copy_run(old.lows, first, count, new.lows, cut)
            _copy_run(old.kids, first, count, new.kids, cut)
            for k in range(count):
                new.kids[cut + k, layout.CHILD] = 2 * (child + k) + (old.kids[first + k, layout.CHILD] & 1)
            line[layout.FIRST] = cut
            cut += line[layout.ROOM]
        else:
            for k in range(line[layout.ACROSS] * line[layout.DOWN]):
                new.cells[cell + k] = layout.NONE if old.cells[first + k] == layout.NONE else child
                child += old.cells[first + k] != layout.NONE
            n_edges = line[layout.ACROSS] + line[layout.DOWN] - 2
            _copy_run(old.edges, line[layout.EDGES], n_edges, new.edges, edge)
            line[layout.FIRST], line[layout.EDGES] = cell, edge
            cell, edge = cell + line[layout.ACROSS] * line[layout.DOWN], edge + n_edges


@kernel
def _copy_run(source, first, count, target, at):
    for k in range(count):
        target[at + k] = source[first + k]

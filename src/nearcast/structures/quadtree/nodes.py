"""The arrays of quadtrees, and the kernels that add and drop nodes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.intmap import IntMapArrays
from nearcast.arrays.jit import inline_kernel, kernel
from nearcast.geo.loose_grid import position
from nearcast.structures.arena import free_number
from nearcast.structures.quadtree.cells import FINEST
from nearcast.structures.quadtree.lists import ListArrays

ROOT = 0
NONE = -1
GONE = -1  # the level of a node number that is free
USED, N_FREE, TAU_NUM, LIMIT, COPIES = range(5)  # places in NodeArrays.head


class NodeArrays(NamedTuple):
    """One row per node, except in the last three arrays.

    Node 0 is the root; in a forest the roots have any numbers. Four siblings have consecutive numbers, which are used
    again after the siblings are dropped.
    """

    children: np.ndarray  # int32[n]  the first of four children; NONE in a leaf
    parents: np.ndarray  # int32[n]  NONE for a root
    levels: np.ndarray  # int32[n]  0 for a root, GONE for a free number
    xs: np.ndarray  # int32[n]  the column of the node's cell within its level
    ys: np.ndarray  # int32[n]  the line of the node's cell within its level
    leaves: np.ndarray  # int32[n]  leaves at or below the node
    entries: np.ndarray  # int64[n]  entries in the lists of the node and of all nodes below
    movable: np.ndarray  # int32[n]  in a leaf: entries that would move to its children if it had any; else 0
    tries: np.ndarray  # int32[n]  in a leaf: the number of movable entries at which the next split is tried
    free: np.ndarray  # int32[n]  the first numbers of dropped groups of four
    head: np.ndarray  # int64[5]  numbers ever used, free groups, tau_num, deepest level, copies
    bounds: np.ndarray  # float64[4]


class QuadtreeArrays(NamedTuple):
    """One quadtree or several. Functions that need more room return a new tuple."""

    nodes: NodeArrays
    lists: ListArrays
    table: IntMapArrays  # (node, pivotal term) -> a count: see pivots.py
    size: np.ndarray  # int64[1]  keys in the table


class RowColumns(NamedTuple):
    """The columns, by row, that an insertion or removal reads."""

    boxes: np.ndarray  # float64[n,4]
    pivots: np.ndarray  # int32[n]  pivotal terms; empty in a tree without them
    numbers: np.ndarray  # int64[n]  the order of entries in a list; empty where lists are in the order of rows


def root_nodes(n: int, bounds: np.ndarray, settings: tuple[int, int, int]) -> NodeArrays:
    """n empty roots; settings are tau_num, the deepest level and copies."""
    values = dict.fromkeys(NodeArrays._fields[:-2], 0)
    values |= {"children": NONE, "parents": NONE, "leaves": 1, "tries": settings[0]}
    by_node = {name: np.full(n, value, np.int64 if name == "entries" else np.int32) for name, value in values.items()}
    return NodeArrays(**by_node, head=np.array([n, 0, *settings], np.int64), bounds=bounds)


def with_nodes(nodes: NodeArrays, n: int) -> NodeArrays:
    """Nodes with room for n numbers in all. Those not used so far have the values of empty roots."""
    size = len(nodes.children)
    if n <= size:
        return nodes
    more = root_nodes(max(n, size + size // 2) - size, nodes.bounds, (int(nodes.head[TAU_NUM]), 0, 0))
    by_node = (np.concatenate(pair) for pair in zip(nodes[:-2], more[:-2], strict=True))
    return NodeArrays._make((*by_node, nodes.head, nodes.bounds))


@kernel
def add_to_ancestors(values, parents, node, amount):
    """Add an amount to the value of a node and of every node above it."""
    while node != NONE:
        values[node] += amount
        node = parents[node]


@kernel
def add_children(nodes, node):
    """Give a leaf four empty children; return the first. The caller has made room."""
    head = nodes.head
    if head[N_FREE] > 0:
        head[N_FREE] -= 1
        first = np.int64(nodes.free[head[N_FREE]])
    else:
        first = head[USED]
        head[USED] += 4
    for quarter in range(4):
        child = first + quarter
        nodes.children[child], nodes.parents[child] = NONE, node
        nodes.levels[child] = nodes.levels[node] + 1
        nodes.xs[child], nodes.ys[child] = 2 * nodes.xs[node] + (quarter & 1), 2 * nodes.ys[node] + (quarter >> 1)
        nodes.leaves[child], nodes.entries[child] = 1, 0
        nodes.movable[child], nodes.tries[child] = 0, head[TAU_NUM]
    nodes.children[node] = first
    nodes.movable[node] = 0
    add_to_ancestors(nodes.leaves, nodes.parents, node, 3)
    return first


@kernel
def drop_children(nodes, node):
    """Make a node whose children are leaves a leaf itself."""
    first = nodes.children[node]
    for child in range(first, first + 4):
        nodes.levels[child] = GONE
    free_number(nodes.head, N_FREE, nodes.free, first)
    nodes.children[node] = NONE
    nodes.tries[node] = nodes.head[TAU_NUM]
    add_to_ancestors(nodes.leaves, nodes.parents, node, -3)


class Cell(NamedTuple):
    """The cell of a node."""

    shift: int  # the number of levels between the node and the finest level
    x: int
    y: int


@inline_kernel
def cell_of_node(nodes, node):
    return Cell(FINEST - nodes.levels[node], nodes.xs[node], nodes.ys[node])


@inline_kernel
def reports_pair(cell, bounds, x, y):
    """Whether a cell is the one that reports a pair of row and message, to avoid duplicates.

    (x, y) is the lower left corner of the intersection of the entry's float32 box and the message. The cells that
    have entries of a row are disjoint and cover its span, so exactly one of them contains the corner.
    """
    column, line = position(x, bounds[0], bounds[2], FINEST), position(y, bounds[1], bounds[3], FINEST)
    return (column >> cell.shift) == cell.x and (line >> cell.shift) == cell.y

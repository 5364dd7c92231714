"""The arrays of the tree, and the small steps that every change is made of."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.intmap import IntMapArrays
from nearcast.arrays.jit import kernel
from nearcast.structures.quadtree.lists import ListArrays

ROOT = 0
NONE = -1
GONE = -1  # the level of a node that is no more
USED, N_FREE, TAU_NUM, LIMIT, COPIES = range(5)  # places in NodeArrays.head


class NodeArrays(NamedTuple):
    """By node, but for the last three. The root is node 0, or there are many, each of a tree of its own; children have
    four numbers in a row, which are used again.
    """

    children: np.ndarray  # int32[n]  the first of four, or NONE in a leaf
    parents: np.ndarray  # int32[n]  NONE for the root
    levels: np.ndarray  # int32[n]  0 for the root, GONE for numbers that are free
    xs: np.ndarray  # int32[n]  column of its cell among those of its level
    ys: np.ndarray  # int32[n]
    leaves: np.ndarray  # int32[n]  how many leaves it has below, itself if it is one
    entries: np.ndarray  # int64[n]  how many entries its list has and those below
    movable: np.ndarray  # int32[n]  in a leaf: entries that would go to children if it had any; else 0
    tries: np.ndarray  # int32[n]  in a leaf: cut when so many are movable
    free: np.ndarray  # int32[n]  first numbers of groups of four that went
    head: np.ndarray  # int64[5]  nodes ever numbered, groups free, tau_num, deepest level, copies
    bounds: np.ndarray  # float64[4]


class QuadtreeArrays(NamedTuple):
    """The whole tree. Kernels that make it larger return it anew."""

    nodes: NodeArrays
    lists: ListArrays
    table: IntMapArrays  # (node, token) -> how often: see pivots.py
    size: np.ndarray  # int64[1]  keys in the table


class RowColumns(NamedTuple):
    """What a change has to know of rows, by row. The numbers give the order of lists; where there are none, rows do."""

    boxes: np.ndarray  # float64[n,4]
    tokens: np.ndarray  # int32[n]  the pivotal token; empty in a tree without tokens
    numbers: np.ndarray  # int64[n], or empty


def root_nodes(n: int, bounds: np.ndarray, settings: tuple[int, int, int]) -> NodeArrays:
    """n empty roots; settings are tau_num, the deepest level and copies."""
    return NodeArrays(
        np.full(n, NONE, np.int32),
        np.full(n, NONE, np.int32),
        np.zeros(n, np.int32),
        np.zeros(n, np.int32),
        np.zeros(n, np.int32),
        np.ones(n, np.int32),
        np.zeros(n, np.int64),
        np.zeros(n, np.int32),
        np.full(n, settings[0], np.int32),
        np.zeros(n, np.int32),
        np.array([n, 0, *settings], np.int64),
        bounds,
    )


@kernel
def add_up(values, parents, node, by):
    """Add to a value of a node and of all above it."""
    while node != NONE:
        values[node] += by
        node = parents[node]


@kernel
def cut_in_four(nodes, node):
    """Give a leaf four empty children; return the first. There is room."""
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
    add_up(nodes.leaves, nodes.parents, node, 3)
    return first


@kernel
def drop_children(nodes, node):
    """Make a node a leaf again; its children are leaves."""
    first = nodes.children[node]
    for child in range(first, first + 4):
        nodes.levels[child] = GONE
    nodes.free[nodes.head[N_FREE]] = first
    nodes.head[N_FREE] += 1
    nodes.children[node] = NONE
    nodes.tries[node] = nodes.head[TAU_NUM]
    add_up(nodes.leaves, nodes.parents, node, -3)

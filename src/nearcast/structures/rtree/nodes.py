"""The arrays of an R-tree, and the small steps that every change consists of."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.structures.arena import free_number, take_number

ROOT = 0
NONE = -1
USED, N_FREE, LEAST = 0, 1, 2  # places in TreeArrays.head


class Move(NamedTuple):
    """A step of a change: the entries of `target` from slot `first` on were moved there from its sibling `source`."""

    source: int
    target: int
    first: int


class TreeArrays(NamedTuple):
    """The first five arrays have one row a node. The root is always node 0; numbers of removed nodes are used again.

    A node has one more slot than it may have entries, for the entry that makes it split. The box of an entry lies
    beside the entry, so that a visit to a node reads one stretch of memory. The box of a node is with its parent.
    """

    slots: np.ndarray  # int32[n, B + 1]       rows in a leaf, nodes elsewhere
    boxes: np.ndarray  # float64[n, B + 1, 4]  the box of each entry
    counts: np.ndarray  # int32[n]             entries: the first slots
    levels: np.ndarray  # int32[n]             0 for a leaf; the level of the root is the height
    parents: np.ndarray  # int32[n]            NONE for the root; a removed node keeps its parent until it is used again
    leaves: np.ndarray  # int32[rows]          the leaf of each row, or NONE
    free: np.ndarray  # int32[n]               numbers of removed nodes
    head: np.ndarray  # int64[3]               numbers given so far, numbers in `free`, b


@kernel
def new_node(tree, level):
    """An empty node. The caller has made room."""
    node = take_number(tree.head, USED, N_FREE, tree.free)
    tree.counts[node] = 0
    tree.levels[node] = level
    return node


@kernel
def free_node(tree, node):
    tree.counts[node] = 0
    free_number(tree.head, N_FREE, tree.free, node)


@kernel
def has_room(tree):
    """Whether one more row fits, even if it splits a node on every level."""
    return len(tree.counts) - tree.head[USED] + tree.head[N_FREE] >= tree.levels[ROOT] + 2


@kernel
def slot_of(tree, node, entry):
    """The slot of an entry of this node."""
    slots = tree.slots[node]
    k = 0
    while slots[k] != entry:
        k += 1
    return k


@kernel
def add_entry(tree, node, entry, box):
    """Append an entry to a node, and set the parent or leaf of the entry."""
    k = tree.counts[node]
    tree.slots[node, k] = entry
    for side in range(4):
        tree.boxes[node, k, side] = box[side]
    tree.counts[node] = k + 1
    if tree.levels[node] == 0:
        tree.leaves[entry] = node
    else:
        tree.parents[entry] = node


@kernel
def drop_slot(tree, node, k):
    """Drop the entry in slot k; the last entry takes its slot."""
    last = tree.counts[node] - 1
    tree.slots[node, k] = tree.slots[node, last]
    for side in range(4):
        tree.boxes[node, k, side] = tree.boxes[node, last, side]
    tree.counts[node] = last


@kernel
def box_around(tree, node):
    """The smallest box around all entries of a node, which must have one."""
    around = tree.boxes[node, 0].copy()
    for k in range(1, tree.counts[node]):
        widen(around, tree.boxes[node, k])
    return around


@kernel
def widen(box, other):
    """Enlarge `box` to contain `other`."""
    box[0] = min(box[0], other[0])
    box[1] = min(box[1], other[1])
    box[2] = max(box[2], other[2])
    box[3] = max(box[3], other[3])


@kernel
def tighten_box(tree, node):
    """Tighten the box of a node, which lies with its parent; return whether it changed. Not for the root."""
    parent = tree.parents[node]
    own = tree.boxes[parent, slot_of(tree, parent, node)]
    around = box_around(tree, node)
    changed = False
    for side in range(4):
        changed |= own[side] != around[side]
        own[side] = around[side]
    return changed


@kernel
def margin(xmin, ymin, xmax, ymax):
    """Half the perimeter of a box. It tells thin boxes and points apart, which all have area 0."""
    return (xmax - xmin) + (ymax - ymin)


@kernel
def rows_below(tree, entry, level):
    """The rows below an entry of a node of this level; the entry itself if the node is a leaf."""
    found = np.empty(1, np.int32)
    found[0] = entry
    for _ in range(level):
        found = entries_of(tree, found)
    return found


@kernel
def all_rows(tree):
    """All rows in the order of the tree: the rows below each node are neighbours."""
    return rows_below(tree, ROOT, tree.levels[ROOT] + 1)


@kernel
def entries_of(tree, nodes):
    """The entries of all these nodes."""
    total = 0
    for i in range(len(nodes)):
        total += tree.counts[nodes[i]]
    out = np.empty(total, np.int32)
    n = 0
    for i in range(len(nodes)):
        for k in range(tree.counts[nodes[i]]):
            out[n] = tree.slots[nodes[i], k]
            n += 1
    return out

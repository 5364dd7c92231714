"""The arrays of the tree, and the small steps that every change is made of."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel

ROOT = 0
NONE = -1
USED, N_FREE, LEAST = 0, 1, 2  # places in TreeArrays.head


class TreeArrays(NamedTuple):
    """The first five by node. The root is node 0 for ever; numbers of nodes that went are used again.

    A node has one slot more than entries are allowed, for the entry that makes it split. An entry's box lies beside
    it, so that looking at a node reads one stretch of memory; a node's own box is with its parent.
    """

    slots: np.ndarray  # int32[n, B + 1]       rows in a leaf, nodes elsewhere
    boxes: np.ndarray  # float64[n, B + 1, 4]  the box of each entry
    counts: np.ndarray  # int32[n]             entries in use, the first ones
    levels: np.ndarray  # int32[n]             0 in a leaf; the root's is the height
    parents: np.ndarray  # int32[n]            a node that went keeps its own until its number is used again
    leaves: np.ndarray  # int32[rows]          the leaf of each row, or NONE
    free: np.ndarray  # int32[n]               numbers of nodes that went
    head: np.ndarray  # int64[3]               nodes ever numbered, numbers free, b


@kernel
def new_node(tree, level):
    """An empty node. The caller has made room."""
    if tree.head[N_FREE] > 0:
        tree.head[N_FREE] -= 1
        node = np.int64(tree.free[tree.head[N_FREE]])
    else:
        node = tree.head[USED]
        tree.head[USED] += 1
    tree.counts[node] = 0
    tree.levels[node] = level
    return node


@kernel
def free_node(tree, node):
    tree.counts[node] = 0
    tree.free[tree.head[N_FREE]] = node
    tree.head[N_FREE] += 1


@kernel
def nodes_left(tree):
    return len(tree.counts) - tree.head[USED] + tree.head[N_FREE]


@kernel
def slot_of(tree, node, entry):
    """Where an entry of this node lies."""
    slots = tree.slots[node]
    k = 0
    while slots[k] != entry:
        k += 1
    return k


@kernel
def add_entry(tree, node, entry, box):
    """Put an entry behind the others, and tell it where it is now."""
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
    """Forget the entry in slot k; the last one takes its place."""
    last = tree.counts[node] - 1
    tree.slots[node, k] = tree.slots[node, last]
    for side in range(4):
        tree.boxes[node, k, side] = tree.boxes[node, last, side]
    tree.counts[node] = last


@kernel
def box_around(tree, node):
    """The smallest box around all entries of a node, of which there must be at least one."""
    around = tree.boxes[node, 0].copy()
    for k in range(1, tree.counts[node]):
        widen(around, tree.boxes[node, k])
    return around


@kernel
def widen(box, other):
    """Make `box` large enough for `other` too."""
    box[0] = min(box[0], other[0])
    box[1] = min(box[1], other[1])
    box[2] = max(box[2], other[2])
    box[3] = max(box[3], other[3])


@kernel
def refit(tree, node):
    """Set the box of a node, which its parent holds; return whether it changed. Not for the root."""
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
    """Half the way around a box: unlike its area it tells thin boxes and points apart."""
    return (xmax - xmin) + (ymax - ymin)


@kernel
def rows_below(tree, entry, level):
    """The rows under an entry of a node of this level; the entry itself where the node is a leaf."""
    found = np.empty(1, np.int32)
    found[0] = entry
    for _ in range(level):
        found = entries_of(tree, found)
    return found


@kernel
def all_rows(tree):
    """All rows in the order of the tree: those of a node are neighbours, at every level."""
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

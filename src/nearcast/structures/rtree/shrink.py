"""Removal of rows from an R-tree: a node with too few entries is merged with its nearest sibling, or borrows entries.

Deviates from Guttman's condensing, which inserts the entries of a small node again from the root. A move between
siblings changes nothing for the nodes above them, so their annotations stay as they are.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.structures.rtree.nodes import (
    LEAST,
    NONE,
    ROOT,
    Move,
    add_entry,
    box_around,
    drop_slot,
    free_node,
    margin,
    slot_of,
    tighten_box,
)


@kernel
def take_row(tree, row):
    """Take a row out of its leaf; return the leaf. It may then be underfull: see `merge_or_borrow`."""
    leaf = np.int64(tree.leaves[row])
    drop_slot(tree, leaf, slot_of(tree, leaf, row))
    tree.leaves[row] = NONE
    node = leaf
    while node != ROOT and tighten_box(tree, node):
        node = np.int64(tree.parents[node])
    return leaf


@kernel
def is_underfull(tree, node):
    return node != ROOT and tree.counts[node] < tree.head[LEAST]


@kernel
def merge_or_borrow(tree, node):
    """Move all entries of an underfull node to its nearest sibling, or some of the sibling's to it; return the move."""
    parent = tree.parents[node]
    sibling = np.int64(tree.slots[parent, _nearest_entry(tree, parent, box_around(tree, node), node)])
    most = tree.slots.shape[1] - 1
    if tree.counts[node] + tree.counts[sibling] <= most:
        source, target = node, sibling
        first = np.int64(tree.counts[target])
        for k in range(tree.counts[node]):
            add_entry(tree, sibling, tree.slots[node, k], tree.boxes[node, k])
        drop_slot(tree, parent, slot_of(tree, parent, node))
        free_node(tree, node)
    else:
        source, target = sibling, node
        first = np.int64(tree.counts[target])
        for _ in range((tree.counts[sibling] - tree.counts[node]) // 2):
            k = _nearest_entry(tree, sibling, box_around(tree, node), NONE)
            add_entry(tree, node, tree.slots[sibling, k], tree.boxes[sibling, k])
            drop_slot(tree, sibling, k)
        tighten_box(tree, node)
    tighten_box(tree, sibling)
    return Move(source, target, first)


@kernel
def _nearest_entry(tree, node, box, excluded):
    """The slot of the entry, other than `excluded`, that has the smallest margin together with `box`."""
    best, least_margin = NONE, np.inf
    for k in range(tree.counts[node]):
        own = tree.boxes[node, k]
        around = margin(min(own[0], box[0]), min(own[1], box[1]), max(own[2], box[2]), max(own[3], box[3]))
        if tree.slots[node, k] != excluded and (best == NONE or around < least_margin):
            best, least_margin = k, around
    return best


@kernel
def root_is_thin(tree):
    """Whether the root has a single child and should be lowered."""
    return tree.levels[ROOT] > 0 and tree.counts[ROOT] == 1


@kernel
def lower_root(tree):
    """Replace the root's only child by its entries."""
    child = np.int64(tree.slots[ROOT, 0])
    tree.levels[ROOT] -= 1
    tree.counts[ROOT] = 0
    for k in range(tree.counts[child]):
        add_entry(tree, ROOT, tree.slots[child, k], tree.boxes[child, k])
    free_node(tree, child)

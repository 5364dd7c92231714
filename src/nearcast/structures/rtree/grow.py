"""Rows coming in: the leaf that suits a box, splits, and a root with one more level below it.

Deviates from Guttman's quadratic split: entries are sorted by the middle of their boxes, on each axis, and cut where
the two sides overlap least. 50 entries take two sorts and 54 cuts instead of 1,275 pairs, and boxes overlap less.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.structures.rtree.nodes import LEAST, ROOT, add_entry, box_around, margin, new_node, refit, slot_of, widen


@kernel
def leaf_for(tree, box):
    """The leaf that grows least, going down from the root."""
    node = ROOT
    while tree.levels[node] > 0:
        node = tree.slots[node, _cheapest(tree.boxes[node], tree.counts[node], box)]
    return node


@kernel
def _cheapest(boxes, n, box):
    """The entry whose area grows least for `box`; among equals the one with the smallest margin then.

    Areas of huge boxes may be infinite, and their differences no number: then an early entry is as good as any.
    """
    best, least_growth, least_margin = 0, np.inf, np.inf
    for k in range(n):
        own = boxes[k]
        xmin, ymin = min(own[0], box[0]), min(own[1], box[1])
        xmax, ymax = max(own[2], box[2]), max(own[3], box[3])
        growth = (xmax - xmin) * (ymax - ymin) - (own[2] - own[0]) * (own[3] - own[1])
        around = margin(xmin, ymin, xmax, ymax)
        if growth < least_growth or (growth == least_growth and around < least_margin):
            best, least_growth, least_margin = k, growth, around
    return best


@kernel
def add_row(tree, leaf, row, box):
    """Put a row into a leaf. The leaf may then be overfull: see `is_overfull` and `split`."""
    add_entry(tree, leaf, row, box)
    node = leaf
    while node != ROOT:
        parent = tree.parents[node]
        widen(tree.boxes[parent, slot_of(tree, parent, node)], box)
        node = parent


@kernel
def is_overfull(tree, node):
    return tree.counts[node] == tree.slots.shape[1]


@kernel
def split(tree, node):
    """Divide an overfull node, which is not the root; return the new sibling, all of whose entries come from it."""
    n = tree.counts[node]
    slots, boxes = tree.slots[node].copy(), tree.boxes[node].copy()
    order, cut = best_cut(boxes, n, tree.head[LEAST])
    sibling = new_node(tree, tree.levels[node])
    tree.counts[node] = 0
    for k in range(n):
        add_entry(tree, node if k < cut else sibling, slots[order[k]], boxes[order[k]])
    add_entry(tree, tree.parents[node], sibling, box_around(tree, sibling))
    refit(tree, node)
    return sibling


@kernel
def best_cut(boxes, n, least):
    """An order of n boxes, and how many of them go to the first side: both sides get `least` or more."""
    best, cut = np.arange(n), n // 2
    least_overlap, least_margin = np.inf, np.inf
    left, right = np.empty((n, 4)), np.empty((n, 4))
    for axis in range(2):
        order = np.argsort(boxes[:n, axis] / 2 + boxes[:n, axis + 2] / 2, kind="mergesort")
        _gather_sides(boxes, order, left, right)
        for k in range(least, n - least + 1):
            overlap, around = _quality(left[k - 1], right[k])
            if overlap < least_overlap or (overlap == least_overlap and around < least_margin):
                best, cut, least_overlap, least_margin = order, k, overlap, around
    return best, cut


@kernel
def _gather_sides(boxes, order, left, right):
    """left[k] is around the boxes up to k in this order, right[k] around those from k on."""
    n = len(order)
    left[0], right[n - 1] = boxes[order[0]], boxes[order[n - 1]]
    for k in range(1, n):
        left[k] = left[k - 1]
        widen(left[k], boxes[order[k]])
        right[n - 1 - k] = right[n - k]
        widen(right[n - 1 - k], boxes[order[n - 1 - k]])


@kernel
def _quality(left, right):
    """The area that two boxes share, and the sum of their margins."""
    width = min(left[2], right[2]) - max(left[0], right[0])
    height = min(left[3], right[3]) - max(left[1], right[1])
    around = margin(left[0], left[1], left[2], left[3]) + margin(right[0], right[1], right[2], right[3])
    return max(0.0, width) * max(0.0, height), around


@kernel
def raise_root(tree):
    """Put a level between an overfull root and its entries: two nodes that share them."""
    lower = new_node(tree, tree.levels[ROOT])
    for k in range(tree.counts[ROOT]):
        add_entry(tree, lower, tree.slots[ROOT, k], tree.boxes[ROOT, k])
    tree.counts[ROOT] = 0
    tree.levels[ROOT] += 1
    add_entry(tree, ROOT, lower, box_around(tree, lower))
    split(tree, lower)

"""Estimates of how much of the quadtree a message will read, from the tree's upper levels."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import kernel
from nearcast.structures.quadtree.cells import FINEST, in_cell, span_of
from nearcast.structures.quadtree.nodes import NONE, ROOT


@kernel
def estimate_lists(quad, box, level):
    """The expected number of leaves and entries that a message reads.

    Below a node of this level, or a leaf above it, the share of the cell that the message covers counts. The lists of
    nodes above count in full.
    """
    nodes, counts = quad.nodes, quad.lists.counts
    span = span_of(nodes.bounds, box)
    waiting, n, at = np.empty(64, np.int32), 1, 0
    waiting[0] = ROOT
    leaves = entries = 0.0
    while at < n:
        node = waiting[at]
        at += 1
        first = nodes.children[node]
        if first == NONE or nodes.levels[node] == level:
            part = covered_share(nodes, node, span)
            leaves += max(1.0, part * nodes.leaves[node])
            entries += counts[node] + part * (nodes.entries[node] - counts[node])
            continue
        entries += counts[node]
        waiting = with_room(waiting, n, 4)
        for child in range(first, first + 4):
            if nodes.entries[child] > 0 and in_cell(span, nodes.levels[child], nodes.xs[child], nodes.ys[child]):
                waiting[n] = child
                n += 1
    return leaves, entries


@kernel
def covered_share(nodes, node, span):
    """The share of a node's cell that a span covers, 0 to 1."""
    shift = FINEST - np.int64(nodes.levels[node])
    left, low = np.int64(nodes.xs[node]) << shift, np.int64(nodes.ys[node]) << shift
    across = min(span[2], left + (1 << shift) - 1) - max(span[0], left) + 1
    up = min(span[3], low + (1 << shift) - 1) - max(span[1], low) + 1
    return max(0.0, across / (1 << shift)) * max(0.0, up / (1 << shift))


@kernel
def lists_of_average_point(quad):
    """The number of lists and entries that a point reads, on average over the space."""
    nodes, counts = quad.nodes, quad.lists.counts
    waiting, n, at = np.empty(64, np.int32), 1, 0
    waiting[0] = ROOT
    lists = entries = 0.0
    while at < n:
        node = waiting[at]
        at += 1
        share = 0.25 ** nodes.levels[node]
        lists += share if counts[node] > 0 else 0.0
        entries += share * counts[node]
        first = nodes.children[node]
        if first != NONE:
            waiting = with_room(waiting, n, 4)
            for child in range(first, first + 4):
                waiting[n] = child
                n += 1
    return lists, entries

"""How much of the tree a message will meet, told from its upper levels."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import kernel
from nearcast.structures.quadtree.cells import FINEST, in_cell, span_of
from nearcast.structures.quadtree.nodes import NONE, ROOT


@kernel
def expected(quad, box, level):
    """(leaves, entries) that a message may meet: those below each node of a level, or leaf above it, in proportion to
    how much of its cell the message covers; lists of nodes above count in full.
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
            part = share_of(nodes, node, span)
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
def share_of(nodes, node, span):
    """How much of a node's cell a span covers, 0 to 1."""
    shift = FINEST - np.int64(nodes.levels[node])
    left, low = np.int64(nodes.xs[node]) << shift, np.int64(nodes.ys[node]) << shift
    across = min(span[2], left + (1 << shift) - 1) - max(span[0], left) + 1
    up = min(span[3], low + (1 << shift) - 1) - max(span[1], low) + 1
    return max(0.0, across / (1 << shift)) * max(0.0, up / (1 << shift))


@kernel
def usual_point(quad):
    """(lists, entries) that a point meets, on average over the space."""
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

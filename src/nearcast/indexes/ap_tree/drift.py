"""Finds nodes whose division no longer fits: the weights of their children have diverged since it was made."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import kernel
from nearcast.indexes.ap_tree import layout
from nearcast.indexes.ap_tree.change import children_of, push_children

_UNSEEN = 1.0  # every count is raised by one, so that an empty child does not make the divergence infinite


@kernel
def divergence(view, facts, children):
    """The Kullback-Leibler divergence of the children's present weights from those at the division, less random drift.

    If o rows then and w rows now were drawn from one distribution over k children, the divergence would be
    (k - 1) / 2 x |1 / o - 1 / w| on average; twice that is subtracted. Without it, nodes of a thousand rows and 200
    cuts would be rebuilt at every check.
    """
    then = now = 0.0
    for k in range(len(children)):
        then += facts.built[children[k]] + _UNSEEN
        now += view.nodes[children[k], layout.WEIGHT] + _UNSEEN
    total = 0.0
    for k in range(len(children)):
        old = (facts.built[children[k]] + _UNSEEN) / then
        new = (view.nodes[children[k], layout.WEIGHT] + _UNSEEN) / now
        total += old * np.log(old / new)
    return total - (len(children) - 1) * abs(1.0 / then - 1.0 / now)


@kernel
def drifted(view, facts, least, theta, budget):
    """The nodes with at least `least` rows that diverge by more than theta, topmost first; none is below another.

    Each takes its rows from the budget. Where a node has more rows than are left, its children are checked instead.
    """
    queue, found = np.empty(256, np.int32), np.empty(16, np.int32)
    queue[0] = layout.ROOT
    at, end, n = 0, 1, 0
    while at < end:
        node = queue[at]
        at += 1
        weight = view.nodes[node, layout.WEIGHT]
        if view.nodes[node, layout.KIND] == layout.LEAF or weight < least:
            continue
        queue = with_room(queue, end, children_of(view, node))
        stop = push_children(view, node, queue, end)
        if weight <= budget and divergence(view, facts, queue[end:stop]) > theta:
            found = with_room(found, n, 1)
            found[n] = node
            n += 1
            budget -= weight
        else:
            end = stop
    return found[:n].copy()

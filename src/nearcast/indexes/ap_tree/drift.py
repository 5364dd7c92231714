"""Which nodes no longer fit their rows: the weights of their children diverge from what they were divided for."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import kernel
from nearcast.indexes.ap_tree.change import children_of, push_children
from nearcast.indexes.ap_tree.nodes import KIND, LEAF, ROOT, WEIGHT

_UNSEEN = 1.0  # every count is raised by one: an empty child shall not make it infinite


@kernel
def divergence(shape, facts, children):
    """The Kullback-Leibler divergence of the children's weights of now from those at the division, less what chance
    alone would bring.

    Of o rows then and w now, drawn alike into k children, the divergence is (k - 1) / 2 x |1 / o - 1 / w| on average;
    twice that is taken off. Without it, nodes of a thousand rows and 200 cuts would be built anew at every look.
    """
    then = now = 0.0
    for k in range(len(children)):
        then += facts.built[children[k]] + _UNSEEN
        now += shape.nodes[children[k], WEIGHT] + _UNSEEN
    total = 0.0
    for k in range(len(children)):
        old = (facts.built[children[k]] + _UNSEEN) / then
        new = (shape.nodes[children[k], WEIGHT] + _UNSEEN) / now
        total += old * np.log(old / new)
    return total - (len(children) - 1) * abs(1.0 / then - 1.0 / now)


@kernel
def drifted(shape, facts, least, theta, budget):
    """The nodes of at least `least` rows, topmost first, that diverge by more than theta and have no more rows than the
    budget, which each takes from; below one that is too large its children are looked at. None is below another.
    """
    queue, found = np.empty(256, np.int32), np.empty(16, np.int32)
    queue[0] = ROOT
    at, end, n = 0, 1, 0
    while at < end:
        node = queue[at]
        at += 1
        weight = shape.nodes[node, WEIGHT]
        if shape.nodes[node, KIND] == LEAF or weight < least:
            continue
        queue = with_room(queue, end, children_of(shape, node))
        stop = push_children(shape, node, queue, end)
        if weight <= budget and divergence(shape, facts, queue[end:stop]) > theta:
            found = with_room(found, n, 1)
            found[n] = node
            n += 1
            budget -= weight
        else:
            end = stop
    return found[:n].copy()

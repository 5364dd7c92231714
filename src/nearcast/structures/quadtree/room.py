"""Room for what comes: more nodes, a longer arena, a larger table."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.intmap import IntMap
from nearcast.structures.quadtree.lists import with_arena
from nearcast.structures.quadtree.nodes import GONE, N_FREE, NONE, TAU_NUM, USED, QuadtreeArrays


def with_entries(quad: QuadtreeArrays, space: int, keys: int) -> QuadtreeArrays:
    """The tree with `space` at the arena's end, and slots for so many more keys of pivotal tokens."""
    table = IntMap()
    table.arrays, table.size = quad.table, int(quad.size[0])
    table.reserve(table.size + keys)
    return quad._replace(lists=with_arena(quad.lists, space), table=table.arrays)


def with_four_nodes(quad: QuadtreeArrays) -> QuadtreeArrays:
    """The tree with numbers for four more nodes."""
    return quad if quad.nodes.head[N_FREE] > 0 else with_nodes(quad, 4)


def with_roots(quad: QuadtreeArrays, n: int) -> tuple[QuadtreeArrays, np.ndarray]:
    """The trees and n more, empty ones; and the numbers of their roots."""
    quad = with_nodes(quad, n)
    nodes = quad.nodes
    first = int(nodes.head[USED])
    made = np.arange(first, first + n, dtype=np.int32)
    nodes.levels[made] = nodes.xs[made] = nodes.ys[made] = 0
    nodes.leaves[made], nodes.tries[made] = 1, nodes.head[TAU_NUM]
    nodes.head[USED] += n
    return quad, made


def with_nodes(quad: QuadtreeArrays, n: int) -> QuadtreeArrays:
    """The tree with room for n numbers that were never used."""
    nodes, lists = quad.nodes, quad.lists
    needed = int(nodes.head[USED]) + n
    if needed <= len(nodes.children):
        return quad
    more = nodes._replace(
        children=grown(nodes.children, needed, fill=NONE),
        parents=grown(nodes.parents, needed, fill=NONE),
        levels=grown(nodes.levels, needed, fill=GONE),
        xs=grown(nodes.xs, needed),
        ys=grown(nodes.ys, needed),
        leaves=grown(nodes.leaves, needed, fill=0),
        entries=grown(nodes.entries, needed, fill=0),
        movable=grown(nodes.movable, needed, fill=0),
        tries=grown(nodes.tries, needed, fill=0),
        free=grown(nodes.free, needed),
    )
    longer = lists._replace(
        offsets=grown(lists.offsets, needed, fill=0),
        counts=grown(lists.counts, needed, fill=0),
        rooms=grown(lists.rooms, needed, fill=0),
    )
    return quad._replace(nodes=more, lists=longer)

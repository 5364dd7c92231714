"""Quadtree arrays with more room: for nodes, list entries, or keys of the table."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.intmap import IntMap
from nearcast.structures.quadtree.lists import with_arena, with_lists
from nearcast.structures.quadtree.nodes import GONE, N_FREE, NONE, TAU_NUM, USED, QuadtreeArrays


def with_entries(quad: QuadtreeArrays, space: int, keys: int) -> QuadtreeArrays:
    """The trees with `space` at the arena's end and slots for `keys` more keys."""
    table = IntMap()
    table.arrays, table.size = quad.table, int(quad.size[0])
    table.reserve(table.size + keys)
    return quad._replace(lists=with_arena(quad.lists, space), table=table.arrays)


def with_four_nodes(quad: QuadtreeArrays) -> QuadtreeArrays:
    """The trees with numbers for four more nodes."""
    return quad if quad.nodes.head[N_FREE] > 0 else with_nodes(quad, 4)


def with_roots(quad: QuadtreeArrays, n: int) -> tuple[QuadtreeArrays, np.ndarray]:
    """The trees and n more empty ones, and the numbers of the new roots."""
    quad = with_nodes(quad, n)
    nodes = quad.nodes
    first = int(nodes.head[USED])
    roots = np.arange(first, first + n, dtype=np.int32)
    nodes.levels[roots] = nodes.xs[roots] = nodes.ys[roots] = 0
    nodes.leaves[roots], nodes.tries[roots] = 1, nodes.head[TAU_NUM]
    nodes.head[USED] += n
    return quad, roots


_FILL = {"children": NONE, "parents": NONE, "levels": GONE, "leaves": 0, "entries": 0, "movable": 0, "tries": 0}


def with_nodes(quad: QuadtreeArrays, n: int) -> QuadtreeArrays:
    """The trees with room for n node numbers that were never used."""
    nodes = quad.nodes
    needed = int(nodes.head[USED]) + n
    if needed <= len(nodes.children):
        return quad
    by_node = {name: array for name, array in nodes._asdict().items() if name not in ("head", "bounds")}
    longer = {name: grown(array, needed, fill=_FILL.get(name)) for name, array in by_node.items()}
    return quad._replace(nodes=nodes._replace(**longer), lists=with_lists(quad.lists, needed))

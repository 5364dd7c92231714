"""Room for what comes: more nodes, a longer arena, a larger table."""

from __future__ import annotations

from nearcast.arrays.growable import grown
from nearcast.arrays.intmap import IntMap
from nearcast.matching.quadtree.lists import with_arena
from nearcast.matching.quadtree.nodes import GONE, N_FREE, NONE, USED, Quad


def with_entries(quad: Quad, space: int, keys: int) -> Quad:
    """The tree with `space` at the arena's end, and slots for so many more keys of pivotal tokens."""
    table = IntMap()
    table.arrays, table.size = quad.table, int(quad.size[0])
    table.reserve(table.size + keys)
    return quad._replace(lists=with_arena(quad.lists, space), table=table.arrays)


def with_four_nodes(quad: Quad) -> Quad:
    """The tree with numbers for four more nodes."""
    nodes, lists = quad.nodes, quad.lists
    needed = int(nodes.head[USED]) + 4
    if nodes.head[N_FREE] > 0 or needed <= len(nodes.children):
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

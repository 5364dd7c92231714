"""Pivotal terms of nodes: each row has one, and every node knows those of the rows at or below it.

One flat hash table maps (node, term) to 8 x (entries of the node's own list with that pivotal term) + (number of
children that have the term). A node covers a term that four children have. It is still counted in the children, for
later removals, but no search looks it up there. A change goes up only as far as a set changes.
"""

from __future__ import annotations

from nearcast.arrays.intmap import ABSENT, find_slot, remove_one
from nearcast.arrays.jit import kernel
from nearcast.structures.node_table import term_key
from nearcast.structures.quadtree.nodes import NONE
from nearcast.structures.term_order import NO_TERM

ENTRY = 8
_CHILDREN = 7


@kernel
def covers(value):
    """Whether a value of the table belongs to a term that all four children have."""
    return value & _CHILDREN == 4


@kernel
def has_slots(table, size, extra):
    """Whether `extra` more keys fit."""
    return (size[0] + extra) * 10 <= len(table.keys) * 7


@kernel
def pivot_of(pivots, row):
    """The pivotal term of a row; NO_TERM in a tree without pivotal terms."""
    return pivots[row] if len(pivots) > 0 else NO_TERM


@kernel
def enter(table, size, parents, node, term):
    """Count one more entry with this pivotal term in a node's list. The caller has made slots."""
    if term == NO_TERM:
        return
    amount = ENTRY
    while node != NONE:
        key = term_key(node, term)
        slot = find_slot(table, key)
        if table.values[slot] != ABSENT:
            table.values[slot] += amount
            return
        table.keys[slot], table.values[slot] = key, amount
        size[0] += 1
        amount, node = 1, parents[node]


@kernel
def leave(table, size, parents, node, term):
    """Count one entry less with this pivotal term in a node's list."""
    if term == NO_TERM:
        return
    amount = ENTRY
    while node != NONE:
        key = term_key(node, term)
        slot = find_slot(table, key)
        table.values[slot] -= amount
        if table.values[slot] > 0:
            return
        size[0] -= remove_one(table, key)
        amount, node = 1, parents[node]


@kernel
def enter_some(quad, pivots, node, place):
    """Enter the entries of all lists, from a place in the list of one node down to node 0, until slots run out.

    Return the node and place to continue from; the node is NONE at the end.
    """
    lists, levels, parents = quad.lists, quad.nodes.levels, quad.nodes.parents
    while node != NONE:
        first = lists.offsets[node]
        while place < lists.counts[node]:
            if not has_slots(quad.table, quad.size, levels[node] + 1):
                return node, place
            enter(quad.table, quad.size, parents, node, pivots[lists.rows[first + place]])
            place += 1
        node, place = node - 1, 0
    return node, place

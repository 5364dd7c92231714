"""Pivotal tokens on nodes: which are there, and which cover.

One flat hash table (node, token) -> 8 x entries of the node's own list that stand with the token, plus how many of its
children have the token at all. All four make it a token of the cover set, anything else one of the non-cover set, and
a number that falls to 0 is forgotten. A change thus goes up only as far as a set changes: a leaf that has a token
already tells nobody that one more row stands with it.

A token of a cover set keeps its count in the children, for later removals; no search asks them for it.
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
    """Whether a value of the table is that of a token which all four children have."""
    return value & _CHILDREN == 4


@kernel
def has_slots(table, size, extra):
    """Whether `extra` more keys fit."""
    return (size[0] + extra) * 10 <= len(table.keys) * 7


@kernel
def token_of(tokens, row):
    """The pivotal token of a row; NO_TERM in a tree without tokens."""
    return tokens[row] if len(tokens) > 0 else NO_TERM


@kernel
def enter(table, size, parents, node, token):
    """One entry more of a node's list stands with a token; above, only what is new is told. There are slots."""
    if token == NO_TERM:
        return
    by = ENTRY
    while node != NONE:
        key = term_key(node, token)
        slot = find_slot(table, key)
        if table.values[slot] != ABSENT:
            table.values[slot] += by
            return
        table.keys[slot], table.values[slot] = key, by
        size[0] += 1
        by, node = 1, parents[node]


@kernel
def leave(table, size, parents, node, token):
    """One entry less."""
    if token == NO_TERM:
        return
    by = ENTRY
    while node != NONE:
        key = term_key(node, token)
        slot = find_slot(table, key)
        table.values[slot] -= by
        if table.values[slot] > 0:
            return
        size[0] -= remove_one(table, key)
        by, node = 1, parents[node]


@kernel
def enter_some(quad, tokens, node, place):
    """Enter the entries of all lists, from a place in the list of one node on and down to the root, until slots run
    out; return where to go on, which is node NONE at the end.
    """
    lists, levels, parents = quad.lists, quad.nodes.levels, quad.nodes.parents
    while node != NONE:
        first = lists.offsets[node]
        while place < lists.counts[node]:
            if not has_slots(quad.table, quad.size, levels[node] + 1):
                return node, place
            enter(quad.table, quad.size, parents, node, tokens[lists.rows[first + place]])
            place += 1
        node, place = node - 1, 0
    return node, place

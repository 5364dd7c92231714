"""Kernels of an AP+-tree: messages arrive, leave, and go down into leaves that are new."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import kernel
from nearcast.moving.ap_plus_tree.route import entered_children, sorted_ranks
from nearcast.moving.ap_plus_tree.tree import (
    ACROSS,
    BORDERS,
    DUMMY,
    INNER,
    K_NODE,
    KIDS,
    KIND,
    LEAF,
    NONE,
    PARENT,
    ROOT,
)
from nearcast.moving.entry_lists.copies import lists_have_room, scan_rows
from nearcast.moving.entry_lists.lists import Entry, append
from nearcast.moving.entry_lists.place_codes import corner_code, signature


@kernel
def visit_messages(tree, rows, messages, slots, most_copies, done):
    """(packed pairs, n, messages done): the rows that hold on each message. Posts the messages if most_copies > 0."""
    out, n = np.empty(1024, np.int64), 0
    stack, kids = np.empty(256, np.int32), np.empty(256, np.int32)
    for i in range(done, len(slots)):
        slot = np.int64(slots[i])
        ranks, entry = _ranks_and_entry(tree, messages, slot)
        box, start = messages.boxes[slot], (ROOT, 0)
        stack, kids, holders, is_leafy = holders_of(tree, ranks, box, most_copies, start, (stack, kids))
        if most_copies:
            if not lists_have_room(tree.messages, stack, holders):
                return out, n, i
            _append_to(tree, stack, holders, entry)
            if not is_leafy:
                stack, kids, holders, _ = holders_of(tree, ranks, box, 0, start, (stack, kids))
        for k in range(holders):
            out, n = scan_rows(tree.rows, np.int64(stack[k]), entry, (rows, messages), out, n)
    return out, n, len(slots)


@kernel
def push_messages(tree, messages, slots, node, most_copies, done):
    """List messages, from position `done` on, below a node that they enter; return how many are done."""
    stack, kids = np.empty(256, np.int32), np.empty(256, np.int32)
    chain = chain_to(tree, node)
    for i in range(done, len(slots)):
        slot = np.int64(slots[i])
        ranks, entry = _ranks_and_entry(tree, messages, slot)
        start = (node, position_below(ranks, chain))
        stack, kids, n, _ = holders_of(tree, ranks, messages.boxes[slot], most_copies, start, (stack, kids))
        if not lists_have_room(tree.messages, stack, n):
            return i
        _append_to(tree, stack, n, entry)
    return len(slots)


@kernel
def _ranks_and_entry(tree, messages, slot):
    first, count, box = messages.offsets[slot], np.int64(messages.n_terms[slot]), messages.boxes[slot]
    low, high = corner_code(tree.codes, box[0], box[1]), corner_code(tree.codes, box[2], box[3])
    entry = Entry(low, high, signature(messages.terms, first, count), np.uint32(slot))
    return sorted_ranks(tree.ranks, messages.terms, first, count), entry


@kernel
def _append_to(tree, nodes, n, entry):
    for k in range(n):
        at = np.int64(nodes[k])
        append(tree.messages, tree.messages.heads, at, entry)
        if tree.nodes[at, KIND] != LEAF:
            tree.used[INNER] += 1


@kernel
def holders_of(tree, ranks, box, most_copies, start, arrays):
    """(stack, kids, n, is_leafy): stack[:n] are the nodes that list a message, at most about most_copies.

    A node lists the message itself where a child that the message enters is absent, or where its children would be too
    many. With most_copies 0: the leaves that the message enters. `start` is a node and how many ranks are used up.
    """
    stack, kids = arrays
    queue = np.empty(256, np.int32)
    n, waiting, at, is_leafy = 0, 1, 0, True
    queue[0], queue[1] = start[0], start[1]
    while at < waiting:
        node, position = np.int64(queue[2 * at]), np.int64(queue[2 * at + 1])
        at += 1
        stops = tree.nodes[node, KIND] == LEAF
        if not stops:
            kids, found, is_whole = entered_children(tree, node, position, ranks, box, kids)
            stops = most_copies > 0 and (not is_whole or n + waiting - at + found > most_copies)
            is_leafy = is_leafy and not stops
            if not stops:
                queue = with_room(queue, 2 * waiting, 2 * found)
                for k in range(2 * found):
                    queue[2 * waiting + k] = kids[k]
                waiting += found
        if stops:
            stack = with_room(stack, n, 1)
            stack[n] = node
            n += 1
    return stack, kids, n, is_leafy


@kernel
def chain_to(tree, node):
    """float64[n,2]: the lowest rank, and the first above, of each cut on the way to a node."""
    depth, above = 0, np.int64(tree.nodes[node, PARENT])
    while above != NONE:
        depth += 1
        above = np.int64(tree.nodes[above, PARENT])
    chain, at = np.empty((depth, 2)), depth
    while tree.nodes[node, PARENT] != NONE:
        above = np.int64(tree.nodes[node, PARENT])
        if tree.nodes[above, KIND] == K_NODE and tree.nodes[above, DUMMY] != node:
            first, cuts, cut = np.int64(tree.nodes[above, BORDERS]), np.int64(tree.nodes[above, ACROSS]), 0
            while tree.kids[np.int64(tree.nodes[above, KIDS]) + cut] != node:
                cut += 1
            at -= 1
            chain[at, 0] = tree.borders[first + cut - 1] if cut > 0 else -np.inf
            chain[at, 1] = tree.borders[first + cut] if cut < cuts - 1 else np.inf
        node = above
    return chain[at:]


@kernel
def position_below(ranks, chain):
    """How many ranks a message has used up at the end of a chain that it follows."""
    position = 0
    for k in range(len(chain)):
        while position < len(ranks) and not chain[k, 0] <= ranks[position] < chain[k, 1]:
            position += 1
        position += 1
    return position


@kernel
def positions_below(ranks, starts, chain):
    """int64[n]: the position of each message of a sample. `starts` say where the ascending ranks of each begin."""
    out = np.zeros(len(starts) - 1, np.int64)
    for i in range(len(out)):
        out[i] = position_below(ranks[starts[i] : starts[i + 1]], chain)
    return out

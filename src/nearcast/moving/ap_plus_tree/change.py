"""Kernels of an AP+-tree: rows come, go and move. One that lacks room stops early."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import kernel, lean_kernel
from nearcast.moving.ap_plus_tree.leaves import (
    can_set_leaves,
    is_among,
    is_within_bounds,
    leaves_of,
    set_bounds,
    set_leaves,
    with_inner_nodes,
)
from nearcast.moving.ap_plus_tree.route import leaves_of_row, sorted_ranks
from nearcast.moving.ap_plus_tree.tree import CODES_OF_BOUNDS, NONE
from nearcast.moving.entry_lists.copies import (
    drop_row,
    lists_have_room,
    place_of_row,
    same_within,
    scan_changes,
)
from nearcast.moving.entry_lists.lists import (
    COUNT,
    IN_PLACE,
    REFILED,
    Entry,
    append,
    entry_at,
    overwrite,
)
from nearcast.moving.entry_lists.place_codes import coded_box, corner_code, signature
from nearcast.moving.entry_lists.scans import BEGINNING, CEASING, NO_BOX, RowMove, changes_in_list


class Routes(NamedTuple):
    """The nodes of a row before and after a move: leaves first, then inner nodes that may list messages."""

    old: np.ndarray  # int32[...]
    n_old: int
    old_leaves: int
    new: np.ndarray  # int32[...]
    n_new: int
    new_leaves: int


@kernel
def insert_rows(tree, rows, wanted, lacking, done):
    """Insert rows from position `done` on; return how many are in.

    `lacking` is (node, first): leaves other than this node, and with smaller numbers, have the rows already.
    """
    route, bounds = np.empty(64, np.int32), np.empty(CODES_OF_BOUNDS, np.int64)
    for i in range(done, len(wanted)):
        row = np.int64(wanted[i])
        first, count, box = rows.offsets[row], np.int64(rows.n_terms[row]), rows.boxes[row]
        ranks = sorted_ranks(tree.ranks, rows.terms, first, count)
        route, n = leaves_of_row(tree, ranks, box, route, bounds)
        if n == NONE or not lists_have_room(tree.rows, route, n) or not can_set_leaves(tree.leaves, row, n):
            return i
        low, high = corner_code(tree.codes, box[0], box[1]), corner_code(tree.codes, box[2], box[3])
        entry = Entry(low, high, signature(rows.terms, first, count), np.uint32(row))
        for k in range(n):
            if route[k] == lacking[0] or route[k] >= lacking[1]:
                append(tree.rows, tree.rows.heads, np.int64(route[k]), entry)
        set_leaves(tree.leaves, row, route, n)
        set_bounds(tree.bounds, row, bounds)
    return len(wanted)


@kernel
def remove_rows(tree, wanted):
    """Remove rows from their leaves."""
    leaves = np.empty(64, np.int32)
    for row in wanted:
        leaves, n = leaves_of(tree, row, leaves)
        for k in range(n):
            drop_row(tree.rows, np.int64(leaves[k]), row)
        set_leaves(tree.leaves, row, leaves, 0)


@kernel
def find_messages(tree, rows, messages, wanted):
    """(packed pairs, n): the live messages of these rows. Range messages may come more than once."""
    out, n = np.empty(1024, np.int64), 0
    nodes = np.empty(64, np.int32)
    for i in range(len(wanted)):
        row = np.int64(wanted[i])
        box = rows.boxes[row]
        nodes, length = leaves_of(tree, row, nodes)
        nodes, length = with_inner_nodes(tree, nodes, length)
        low, high = corner_code(tree.codes, box[0], box[1]), corner_code(tree.codes, box[2], box[3])
        bits = signature(rows.terms, rows.offsets[row], np.int64(rows.n_terms[row]))
        move = RowMove(rows, row, rows.boxes, row, NO_BOX, coded_box(low, high), bits, False)
        for k in range(length):
            out, n = scan_changes(tree.messages, np.int64(nodes[k]), move, messages, BEGINNING, out, n)
    return out, n


@kernel
def move_rows(tree, rows, messages, wanted, boxes, done):
    """(packed pairs, n, moves done): the four cases of the paper, leaf by leaf of the old and the new route."""
    out, n = np.empty(1024, np.int64), 0
    old, new = np.empty(64, np.int32), np.empty(64, np.int32)
    bounds = np.empty(CODES_OF_BOUNDS, np.int64)
    for i in range(done, len(wanted)):
        row, box = np.int64(wanted[i]), boxes[i]
        low, high = corner_code(tree.codes, box[0], box[1]), corner_code(tree.codes, box[2], box[3])
        old, old_leaves = leaves_of(tree, row, old)
        was = _entry_of(tree, np.int64(old[0]), row)
        entry = Entry(low, high, was.signature, was.number)
        place = coded_box(was.low, was.high)
        move = RowMove(rows, row, boxes, i, place, coded_box(low, high), was.signature, False)
        old, n_old = with_inner_nodes(tree, old, old_leaves)
        out = with_room(out, n, _messages_in(tree, old, n_old))
        if is_within_bounds(tree.bounds, row, low, high):
            n = _stay(tree, entry, move, messages, Routes(old, n_old, old_leaves, old, n_old, old_leaves), out, n)
            tree.leaves.control[IN_PLACE] += 1
        else:
            first, count = rows.offsets[row], np.int64(rows.n_terms[row])
            ranks = sorted_ranks(tree.ranks, rows.terms, first, count)
            new, new_leaves = leaves_of_row(tree, ranks, box, new, bounds)
            if new_leaves == NONE or not lists_have_room(tree.rows, new, new_leaves):
                return out, n, i
            if not can_set_leaves(tree.leaves, row, new_leaves):
                return out, n, i
            new, n_new = with_inner_nodes(tree, new, new_leaves)
            out = with_room(out, n, _messages_in(tree, old, n_old) + _messages_in(tree, new, n_new))
            routes = Routes(old, n_old, old_leaves, new, n_new, new_leaves)
            n = _leave_and_stay(tree, move, messages, routes, out, n)
            n = _enter(tree, entry, move, messages, routes, out, n)
            set_leaves(tree.leaves, row, new, new_leaves)
            set_bounds(tree.bounds, row, bounds)
            tree.leaves.control[REFILED] += 1
        for k in range(4):
            rows.boxes[row, k] = boxes[i, k]
    return out, n, len(wanted)


@lean_kernel
def _entry_of(tree, leaf, row):
    """The entry of a row in a leaf."""
    return entry_at(tree.rows, tree.rows.heads, leaf, place_of_row(tree.rows, leaf, row))


@lean_kernel
def _messages_in(tree, nodes, n):
    """How many entries of messages some nodes have."""
    total = np.int64(0)
    for k in range(n):
        total += tree.messages.heads[nodes[k], COUNT]
    return total


@lean_kernel
def _stay(tree, entry, move, messages, routes, out, n):
    """Cases 1 and 3 alone: a move that leaves and enters no leaf."""
    for k in range(routes.n_old):
        at = np.int64(routes.old[k])
        if tree.messages.heads[at, COUNT] and not same_within(tree.regions, at, move):
            n = changes_in_list(tree.messages, at, move, messages, CEASING + BEGINNING, out, n)
        if k < routes.old_leaves:
            overwrite(tree.rows, tree.rows.heads, at, place_of_row(tree.rows, at, move.row), entry)
    return n


@lean_kernel
def _leave_and_stay(tree, move, messages, routes, out, n):
    """Cases 1 to 3: nodes of the old route."""
    for k in range(routes.n_old):
        at = np.int64(routes.old[k])
        if is_among(routes.new, routes.n_new, at):
            if tree.messages.heads[at, COUNT] and not same_within(tree.regions, at, move):
                n = changes_in_list(tree.messages, at, move, messages, CEASING + BEGINNING, out, n)
            continue
        n = changes_in_list(tree.messages, at, move, messages, CEASING, out, n)
        if k < routes.old_leaves:
            drop_row(tree.rows, at, move.row)
    return n


@lean_kernel
def _enter(tree, entry, move, messages, routes, out, n):
    """Case 4: nodes of the new route alone. Leaves of both routes learn the new box."""
    for k in range(routes.n_new):
        at = np.int64(routes.new[k])
        was_there = is_among(routes.old, routes.n_old, at)
        if not was_there:
            n = changes_in_list(tree.messages, at, move, messages, BEGINNING, out, n)
        if k < routes.new_leaves:
            if was_there:
                overwrite(tree.rows, tree.rows.heads, at, place_of_row(tree.rows, at, move.row), entry)
            else:
                append(tree.rows, tree.rows.heads, at, entry)
    return n

"""Kernels of an AP+-tree: rows come, go and move; messages arrive and leave. One that lacks room stops early."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import kernel, lean_kernel
from nearcast.moving.ap_plus_tree.route import entered_children, route_of_row, sorted_ranks
from nearcast.moving.ap_plus_tree.tree import KIND, LEAF, NONE, ROOT
from nearcast.moving.entry_lists.copies import (
    BEGINNING,
    CEASING,
    RowMove,
    changes_in_list,
    drop_row,
    lists_have_room,
    place_of_row,
    same_within,
    scan_changes,
    scan_rows,
)
from nearcast.moving.entry_lists.lists import COUNT, Entry, append, overwrite
from nearcast.moving.entry_lists.place_codes import coded_box, corner_code, signature


class Routes(NamedTuple):
    """The nodes of a row before and after a move, in arrays that may be longer."""

    old: np.ndarray  # int32[...]
    n_old: int
    new: np.ndarray  # int32[...]
    n_new: int


@kernel
def insert_rows(tree, rows, wanted, top, done):
    """Insert rows below the node `top`, from position `done` on; return how many are in."""
    route = np.empty(64, np.int32)
    for i in range(done, len(wanted)):
        row = wanted[i]
        first, count, box = rows.offsets[row], np.int64(rows.n_terms[row]), rows.boxes[row]
        route[0] = top
        route, n = route_of_row(tree, sorted_ranks(tree.ranks, rows.terms, first, count), box, route)
        if n == NONE or not lists_have_room(tree.rows, route, n):
            return i
        low, high = corner_code(tree.codes, box[0], box[1]), corner_code(tree.codes, box[2], box[3])
        entry = Entry(low, high, signature(rows.terms, first, count), np.uint32(row))
        for k in range(n):
            if tree.nodes[route[k], KIND] == LEAF:
                append(tree.rows, tree.rows.heads, np.int64(route[k]), entry)
    return len(wanted)


@kernel
def remove_rows(tree, rows, wanted, done):
    """Remove rows from position `done` on; return how many are out."""
    route = np.empty(64, np.int32)
    for i in range(done, len(wanted)):
        row = wanted[i]
        ranks = sorted_ranks(tree.ranks, rows.terms, rows.offsets[row], np.int64(rows.n_terms[row]))
        route[0] = ROOT
        route, n = route_of_row(tree, ranks, rows.boxes[row], route)
        if n == NONE:
            return i
        for k in range(n):
            if tree.nodes[route[k], KIND] == LEAF:
                drop_row(tree.rows, np.int64(route[k]), row)
    return len(wanted)


@kernel
def find_messages(tree, rows, messages, wanted):
    """(packed pairs, n, rows done): the live messages of these rows. Range messages may come more than once."""
    out, n = np.empty(1024, np.int64), 0
    route = np.empty(64, np.int32)
    for i in range(len(wanted)):
        row = np.int64(wanted[i])
        first, count, box = rows.offsets[row], np.int64(rows.n_terms[row]), rows.boxes[row]
        route[0] = ROOT
        route, length = route_of_row(tree, sorted_ranks(tree.ranks, rows.terms, first, count), box, route)
        if length == NONE:
            return out, n, i
        low, high = corner_code(tree.codes, box[0], box[1]), corner_code(tree.codes, box[2], box[3])
        place, bits = coded_box(low, high), signature(rows.terms, first, count)
        move = RowMove(rows, row, rows.boxes, row, place, place, bits, True)
        for k in range(length):
            out, n = scan_changes(tree.messages, np.int64(route[k]), move, messages, BEGINNING, out, n)
    return out, n, len(wanted)


@kernel
def move_rows(tree, rows, messages, wanted, boxes, done):
    """(packed pairs, n, moves done): the four cases of the paper, node by node of the old and the new route."""
    out, n = np.empty(1024, np.int64), 0
    old_route, new_route = np.empty(64, np.int32), np.empty(64, np.int32)
    for i in range(done, len(wanted)):
        row, old_box, new_box = np.int64(wanted[i]), rows.boxes[wanted[i]], boxes[i]
        first, count = rows.offsets[row], np.int64(rows.n_terms[row])
        ranks = sorted_ranks(tree.ranks, rows.terms, first, count)
        old_route[0] = new_route[0] = ROOT
        old_route, n_old = route_of_row(tree, ranks, old_box, old_route)
        new_route, n_new = route_of_row(tree, ranks, new_box, new_route)
        if n_old == NONE or n_new == NONE or not lists_have_room(tree.rows, new_route, n_new):
            return out, n, i
        low, high = corner_code(tree.codes, new_box[0], new_box[1]), corner_code(tree.codes, new_box[2], new_box[3])
        was = corner_code(tree.codes, old_box[0], old_box[1]), corner_code(tree.codes, old_box[2], old_box[3])
        bits = signature(rows.terms, first, count)
        entry = Entry(low, high, bits, np.uint32(row))
        move = RowMove(rows, row, boxes, i, coded_box(was[0], was[1]), coded_box(low, high), bits, False)
        out = with_room(out, n, _messages_in(tree, old_route, n_old) + _messages_in(tree, new_route, n_new))
        routes = Routes(old_route, n_old, new_route, n_new)
        n = _leave_and_stay(tree, move, messages, routes, out, n)
        n = _enter(tree, entry, move, messages, routes, out, n)
        rows.boxes[row] = new_box
    return out, n, len(wanted)


@lean_kernel
def _messages_in(tree, route, length):
    """How many entries of messages the nodes of a route have."""
    total = np.int64(0)
    for k in range(length):
        total += tree.messages.heads[route[k], COUNT]
    return total


@lean_kernel
def _is_on(route, length, node):
    """Whether a node is on a route. Routes are short: 3 to 10 nodes are compared faster than marked."""
    for k in range(length):
        if route[k] == node:
            return True
    return False


@lean_kernel
def _leave_and_stay(tree, move, messages, routes, out, n):
    """Cases 1 to 3: nodes of the old route."""
    for k in range(routes.n_old):
        at = np.int64(routes.old[k])
        if _is_on(routes.new, routes.n_new, at):
            if tree.messages.heads[at, COUNT] and not same_within(tree.regions, at, move):
                n = changes_in_list(tree.messages, at, move, messages, CEASING + BEGINNING, out, n)
            continue
        n = changes_in_list(tree.messages, at, move, messages, CEASING, out, n)
        if tree.nodes[at, KIND] == LEAF:
            drop_row(tree.rows, at, move.row)
    return n


@lean_kernel
def _enter(tree, entry, move, messages, routes, out, n):
    """Case 4: nodes of the new route alone. Leaves of both routes learn the new box."""
    for k in range(routes.n_new):
        at = np.int64(routes.new[k])
        was_there = _is_on(routes.old, routes.n_old, at)
        if not was_there:
            n = changes_in_list(tree.messages, at, move, messages, BEGINNING, out, n)
        if tree.nodes[at, KIND] == LEAF:
            if was_there:
                overwrite(tree.rows, tree.rows.heads, at, place_of_row(tree.rows, at, move.row), entry)
            else:
                append(tree.rows, tree.rows.heads, at, entry)
    return n


@kernel
def visit_messages(tree, rows, messages, slots, most_copies, done):
    """(packed pairs, n, messages done): the rows that hold on each message. Posts the messages if most_copies > 0."""
    out, n = np.empty(1024, np.int64), 0
    stack, kids = np.empty(256, np.int32), np.empty(256, np.int32)
    for i in range(done, len(slots)):
        slot = np.int64(slots[i])
        first, count, box = messages.offsets[slot], np.int64(messages.n_terms[slot]), messages.boxes[slot]
        ranks = sorted_ranks(tree.ranks, messages.terms, first, count)
        low, high = corner_code(tree.codes, box[0], box[1]), corner_code(tree.codes, box[2], box[3])
        entry = Entry(low, high, signature(messages.terms, first, count), np.uint32(slot))
        if most_copies:
            stack, kids, holders = _holders(tree, ranks, box, most_copies, stack, kids)
            if not lists_have_room(tree.messages, stack, holders):
                return out, n, i
            for k in range(holders):
                append(tree.messages, tree.messages.heads, np.int64(stack[k]), entry)
        stack, kids, leaves = _holders(tree, ranks, box, 0, stack, kids)
        for k in range(leaves):
            out, n = scan_rows(tree.rows, np.int64(stack[k]), entry, (rows, messages), out, n)
    return out, n, len(slots)


@kernel
def _holders(tree, ranks, box, most_copies, stack, kids):
    """(stack, kids, n): stack[:n] are the nodes that list a message, at most about most_copies of them.

    A node lists the message itself where a child that the message enters is absent, or where its children would be too
    many. With most_copies 0: the leaves that the message enters.
    """
    n, waiting = 0, 1
    queue = np.empty(512, np.int32)
    queue[0], queue[1] = ROOT, 0
    at = 0
    while at < waiting:
        node, position = np.int64(queue[2 * at]), np.int64(queue[2 * at + 1])
        at += 1
        stops = tree.nodes[node, KIND] == LEAF
        if not stops:
            kids, found, is_whole = entered_children(tree, node, position, ranks, box, kids)
            stops = most_copies > 0 and (not is_whole or n + waiting - at + found > most_copies)
            if not stops:
                queue = with_room(queue, 2 * waiting, 2 * found)
                queue[2 * waiting : 2 * (waiting + found)] = kids[: 2 * found]
                waiting += found
        if stops:
            stack = with_room(stack, n, 1)
            stack[n] = node
            n += 1
    return stack, kids, n

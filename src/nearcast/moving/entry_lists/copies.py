"""Rows and messages that are copied into several lists: the place of a row in a list, and lists that grow as needed."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import kernel, lean_kernel
from nearcast.arrays.vector import WIDTH, lowest_bit, masked_equal
from nearcast.moving.entry_lists.lists import (
    BOX_WIDTH,
    COUNT,
    NUMBER,
    ROOM,
    ROOMS,
    START,
    entry_at,
    has_room,
    overwrite,
    release,
    size_for,
)
from nearcast.moving.entry_lists.scans import changes_in_list, rows_in_list

_ALL_BITS = 0xFFFF_FFFF


@lean_kernel
def lists_have_room(lists, nodes, n):
    """Whether one more entry fits into the list of each of these nodes."""
    words, heads = 0, lists.heads
    for k in range(n):
        node = nodes[k]
        if heads[node, COUNT] == heads[node, ROOM]:
            words += BOX_WIDTH * ROOMS[size_for(np.int64(heads[node, ROOM]) + 1)]
    return has_room(lists, words, 0)


@lean_kernel
def place_of_row(lists, node, row):
    """The place of a row in a list that has it."""
    first = np.int64(lists.heads[node, START]) + NUMBER * np.int64(lists.heads[node, ROOM])
    k = 0
    while True:
        bits = masked_equal(lists.words, first + k, _ALL_BITS, row)
        if bits:
            return k + lowest_bit(bits)
        k += WIDTH


@lean_kernel
def drop_row(lists, node, row):
    k, last = place_of_row(lists, node, row), lists.heads[node, COUNT] - 1
    if k != last:
        overwrite(lists, lists.heads, node, k, entry_at(lists, lists.heads, node, last))
    lists.heads[node, COUNT] = last
    if last == 0:
        release(lists, lists.heads, node)


@lean_kernel
def same_within(regions, node, move):
    """Whether the old and the new box cut the same part out of a region: nothing changes there for points inside."""
    old, new, row, number = move.rows.boxes, move.boxes, move.row, move.number
    return (
        max(old[row, 0], regions[node, 0]) == max(new[number, 0], regions[node, 0])
        and max(old[row, 1], regions[node, 1]) == max(new[number, 1], regions[node, 1])
        and min(old[row, 2], regions[node, 2]) == min(new[number, 2], regions[node, 2])
        and min(old[row, 3], regions[node, 3]) == min(new[number, 3], regions[node, 3])
    )


@kernel
def scan_changes(lists, node, move, messages, reported, out, n):
    """(out, n): with the changes among the messages of a node."""
    out = with_room(out, n, lists.heads[node, COUNT])
    return out, changes_in_list(lists, node, move, messages, reported, out, n)


@kernel
def scan_rows(lists, node, entry, stores, out, n):
    """(out, n): with the rows of a leaf that hold on a message."""
    out = with_room(out, n, lists.heads[node, COUNT])
    return out, rows_in_list(lists, node, entry, stores, out, n)

"""Lists of point messages: one list for each (term, cell), where a crowded term has 4^level cells."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import inline_kernel, lean_kernel
from nearcast.moving.entry_lists.lists import (
    CELLS,
    COUNT,
    FINEST,
    HEADS,
    LEVEL,
    REGRIDS,
    TARGET,
    TOTAL,
    USED_HEADS,
    append,
    entry_at,
    has_room,
    release,
)
from nearcast.moving.entry_lists.place_codes import BITS, x_of, y_of


@inline_kernel
def cell_of(level, word):
    """The cell of a corner, line by line."""
    shift = BITS - level
    return ((y_of(word) >> shift) << level) + (x_of(word) >> shift)


@inline_kernel
def list_of_point(lists, term, word):
    """The list of a corner under a term: a head, or ~term."""
    level = lists.terms[term, LEVEL]
    return ~np.int64(term) if level == 0 else np.int64(lists.terms[term, HEADS]) + cell_of(level, word)


@lean_kernel
def put_point(lists, term, entry):
    """Add a point under a term; return False, and change nothing that counts, if the arena lacks room."""
    own = lists.terms[term]
    level = own[LEVEL]
    if own[TOTAL] >= (4 * lists.control[TARGET]) << (2 * level) and level < lists.control[FINEST]:
        if not _divide(lists, term):
            return False
        level = own[LEVEL]
    table, at = (lists.terms, np.int64(term)) if level == 0 else (lists.heads, own[HEADS] + cell_of(level, entry.low))
    if not append(lists, table, at, entry):
        return False
    own[TOTAL] += 1
    return True


@lean_kernel
def _divide(lists, term):
    """Give a term four times the cells; return False without room for them."""
    own = lists.terms[term]
    level, first = np.int64(own[LEVEL]), np.int64(own[HEADS])
    cells = np.int64(1) << (2 * (level + 1))
    # Lists grow as they are filled: together they never take more than four times their entries and 16 for each cell.
    if not has_room(lists, 3 * (4 * np.int64(own[TOTAL]) + 16 * cells), cells):
        return False
    base = lists.control[USED_HEADS]
    lists.control[USED_HEADS] += cells
    lists.control[REGRIDS] += 1
    lists.heads[base : base + cells] = 0
    for cell in range(np.int64(1) << (2 * level)):
        table, at = (lists.terms, np.int64(term)) if level == 0 else (lists.heads, first + cell)
        for k in range(table[at, COUNT]):
            entry = entry_at(lists, table, at, k)
            append(lists, lists.heads, base + cell_of(level + 1, entry.low), entry)
        release(lists, table, at)
    own[HEADS], own[LEVEL], own[CELLS] = base, level + 1, cells
    return True

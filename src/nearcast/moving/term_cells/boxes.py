"""Lists of boxes: rows under their rarest term, and range messages under all of theirs, in loose cells.

Level l of a term has 2^l x 2^l cells. A box belongs to the finest level whose cells are at least as wide and high as
the box, and there to the cell of its middle. It thus reaches at most half a cell beyond its cell, and a search reads
the cells that reach its place in this way. Level 0 is one list for the whole space.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import inline_kernel, lean_kernel
from nearcast.moving.entry_lists.lists import (
    BOX_WIDTH,
    CELLS,
    CORNER,
    COUNT,
    FINEST,
    HEADS,
    IN_PLACE,
    LEVEL,
    MASK,
    OTHER_CORNER,
    REFILED,
    REGRIDS,
    ROOM,
    ROOMS,
    START,
    TARGET,
    TOTAL,
    USED_HEADS,
    append,
    entry_at,
    has_room,
    overwrite,
    release,
    size_for,
)
from nearcast.moving.entry_lists.place_codes import BITS, x_of, y_of
from nearcast.moving.entry_lists.scans import ROW_NUMBER

LIST, PLACE, KEY = range(3)
"""Columns of spots: a row's list (the head of a cell, or ~term for level 0), its place there, and its term."""


@inline_kernel
def cells_below(level):
    """The number of cells of levels 1 .. level - 1."""
    return ((np.int64(1) << (2 * level)) - 4) // 3


FINEST_BOXES = 6
"""The finest level that a term may have."""

MOST_NEAR = 1 + int(cells_below(FINEST_BOXES + 1))
"""No place has more lists near it."""


@lean_kernel
def level_of(low, high, finest):
    """The level of a box, at most `finest`."""
    size = max(x_of(high) - x_of(low), y_of(high) - y_of(low))
    level = finest
    while level > 0 and size > (1 << (BITS - level)):
        level -= 1
    return level


@inline_kernel
def head_of(own, level, low, high):
    """The head of the cell where a box of this level belongs, level 1 or more."""
    shift = BITS - level
    column, line = (x_of(low) + x_of(high)) >> (shift + 1), (y_of(low) + y_of(high)) >> (shift + 1)
    return np.int64(own[HEADS]) + cells_below(level) + (line << level) + column


@lean_kernel
def put_box(lists, term, entry, spots):
    """Add a box under a term; return False, and change nothing that counts, if the arena lacks room.

    `spots` (int32[n,3]), unless empty, learns where the entry of a row is.
    """
    own = lists.terms[term]
    top = np.int64(own[LEVEL])
    if own[TOTAL] >= (4 * lists.control[TARGET]) << (2 * top) and top < lists.control[FINEST]:
        if not _divide(lists, term, spots):
            return False
        top += 1
    if not _file(lists, term, level_of(entry.low, entry.high, top), entry, spots):
        return False
    own[TOTAL] += 1
    return True


@lean_kernel
def _file(lists, term, level, entry, spots):
    own = lists.terms[term]
    at = np.int64(term) if level == 0 else head_of(own, level, entry.low, entry.high)
    table = lists.terms if level == 0 else lists.heads
    if not append(lists, table, at, entry):
        return False
    if level > 0:
        own[MASK] |= np.int32(1 << level)
    if len(spots):
        row = entry.number & ROW_NUMBER
        spots[row, LIST] = at if level > 0 else ~at
        spots[row, PLACE] = table[at, COUNT] - 1
        spots[row, KEY] = term
    return True


@lean_kernel
def _divide(lists, term, spots):
    """Give a term one more level; return False without room for it."""
    own = lists.terms[term]
    top, first, total = np.int64(own[LEVEL]), np.int64(own[HEADS]), np.int64(own[TOTAL])
    cells = cells_below(top + 2)
    # Lists grow as they are filled: together they never take more than four times their entries and 16 for each cell.
    if not has_room(lists, BOX_WIDTH * (4 * total + 16 * (cells + 1)), cells):
        return False
    base = lists.control[USED_HEADS]
    lists.control[USED_HEADS] += cells
    lists.control[REGRIDS] += 1
    lists.heads[base : base + cells] = 0
    own[HEADS], own[LEVEL], own[MASK], own[CELLS] = base, top + 1, 0, cells
    _lower(lists, term, spots)
    for head in range(first, first + (cells_below(top + 1) if top else 0)):
        for k in range(lists.heads[head, COUNT]):
            entry = entry_at(lists, lists.heads, head, k)
            _file(lists, term, level_of(entry.low, entry.high, top + 1), entry, spots)
        release(lists, lists.heads, head)
    return True


@lean_kernel
def _lower(lists, term, spots):
    """Move the boxes of level 0 that are small enough to the new level 1."""
    kept = 0
    for k in range(lists.terms[term, COUNT]):
        entry = entry_at(lists, lists.terms, term, k)
        if level_of(entry.low, entry.high, 1) > 0:
            _file(lists, term, level_of(entry.low, entry.high, np.int64(lists.terms[term, LEVEL])), entry, spots)
            continue
        overwrite(lists, lists.terms, term, kept, entry)
        if len(spots):
            spots[entry.number & ROW_NUMBER, PLACE] = kept
        kept += 1
    lists.terms[term, COUNT] = kept
    if kept == 0:
        release(lists, lists.terms, term)


@lean_kernel
def remove_box(lists, row, spots):
    """Remove the entry of a row: the last entry of its list takes its place."""
    at, k = np.int64(spots[row, LIST]), spots[row, PLACE]
    table, at = (lists.terms, ~at) if at < 0 else (lists.heads, at)
    last = table[at, COUNT] - 1
    if k != last:
        entry = entry_at(lists, table, at, last)
        overwrite(lists, table, at, k, entry)
        spots[entry.number & ROW_NUMBER, PLACE] = k
    table[at, COUNT] = last
    lists.terms[spots[row, KEY], TOTAL] -= 1
    if last == 0:
        release(lists, table, at)


@lean_kernel
def move_box(lists, row, entry, spots):
    """Change the box of a row's entry, in place where its cell still fits; return False, and change nothing, without
    room.
    """
    term = np.int64(spots[row, KEY])
    own, at = lists.terms[term], np.int64(spots[row, LIST])
    level = level_of(entry.low, entry.high, np.int64(own[LEVEL]))
    if _fits(own, at, level, entry):
        words = lists.words
        words[spot_word(lists, row, spots, CORNER)] = entry.low
        words[spot_word(lists, row, spots, OTHER_CORNER)] = entry.high
        lists.control[IN_PLACE] += 1
        return True
    lists.control[REFILED] += 1
    target = term if level == 0 else head_of(own, level, entry.low, entry.high)
    table = lists.terms if level == 0 else lists.heads
    if table[target, COUNT] == table[target, ROOM]:
        if not has_room(lists, BOX_WIDTH * ROOMS[size_for(np.int64(table[target, ROOM]) + 1)], 0):
            return False
    remove_box(lists, row, spots)
    own[TOTAL] += 1
    return _file(lists, term, level, entry, spots)


@lean_kernel
def _fits(own, at, level, entry):
    """Whether a box may stay in its list: it reaches no further than loose cells may, and is not much too small."""
    if at < 0:
        return level < 2
    offset, present = at - np.int64(own[HEADS]), np.int64(1)
    while offset >= cells_below(present + 1):
        present += 1
    if level > present + 1:
        return False
    offset -= cells_below(present)
    shift = BITS - present
    half = 1 << (shift - 1)
    left, below = (offset & ((1 << present) - 1)) << shift, (offset >> present) << shift
    return (
        x_of(entry.low) >= left - half
        and x_of(entry.high) < left + 3 * half
        and y_of(entry.low) >= below - half
        and y_of(entry.high) < below + 3 * half
    )


@lean_kernel
def spot_word(lists, row, spots, field):
    """The position in `words` of a field of a row's entry."""
    at, k = np.int64(spots[row, LIST]), np.int64(spots[row, PLACE])
    table, at = (lists.terms, ~at) if at < 0 else (lists.heads, at)
    return np.int64(table[at, START]) + field * np.int64(table[at, ROOM]) + k


@lean_kernel
def lists_near(lists, term, box, out, n):
    """Append the lists under a term whose boxes may overlap a coded box: heads, or ~term; return the new n."""
    own = lists.terms[term]
    if own[COUNT]:
        out[n] = ~np.int64(term)
        n += 1
    mask = own[MASK]
    for level in range(1, own[LEVEL] + 1):
        if not (mask >> level) & 1:
            continue
        shift, last = BITS - level, (1 << level) - 1
        half = 1 << (shift - 1)
        left, right = max(0, (box.left - half) >> shift), min(last, (box.right + half) >> shift)
        first = np.int64(own[HEADS]) + cells_below(level)
        for line in range(max(0, (box.below - half) >> shift), min(last, (box.above + half) >> shift) + 1):
            for head in range(first + (line << level) + left, first + (line << level) + right + 1):
                if lists.heads[head, COUNT]:
                    out[n] = head
                    n += 1
    return n

"""Lists of entries by (term, cell) in one arena of words.

An entry is three or four words: the corner of its place, a signature, a number, and the other corner where the entries
are boxes. A list of room r keeps each kind of word together: corners at start .. start + r, signatures behind them, and
so on. A list that is full moves to a larger room; rooms that become free are reused by lists of their size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.jit import inline_kernel, lean_kernel
from nearcast.arrays.vector import WIDTH

START, COUNT, ROOM = 0, 1, 2
"""Columns of terms and heads: where the list begins, its entries, and how many fit."""

LEVEL, HEADS, TOTAL, MASK, CELLS = 3, 4, 5, 6, 7
"""Columns of terms: the finest level of cells, the first head of the cells, all entries, the levels in use, how many
heads of cells there are.
"""

USED_WORDS, USED_HEADS, ENTRY_WIDTH, TARGET, FINEST, LACKING_WORDS, LACKING_HEADS, REGRIDS = range(8)
IN_PLACE, REFILED, FREE = 8, 9, 10
"""Positions in `control`: sizes and settings, counts of work. From FREE on: the first free room of each size, or -1."""

CORNER, SIGNATURE, NUMBER, OTHER_CORNER = range(4)
"""The words of an entry."""

POINT_WIDTH, BOX_WIDTH = 3, 4

FULL = -1
"""What a scan returns when its output has no room for a whole list more."""

_SIZES = 52
ROOMS = np.array([(4 << (k // 2)) if k % 2 == 0 else (6 << (k // 2)) for k in range(_SIZES)], np.int64)
"""The rooms of lists: 4, 6, 8, 12, 16, 24 ... entries."""

_END = np.uint32(0xFFFFFFFF)

_BEHIND = WIDTH - 1
"""Words behind the last list: scans read eight entries at a time."""


class Lists(NamedTuple):
    """The lists of all terms, as kernels see them."""

    terms: np.ndarray  # int32[terms,8]  one list for the whole space, and where the cells' lists are
    heads: np.ndarray  # int32[heads,4]  one list for each cell
    words: np.ndarray  # uint32[...]
    control: np.ndarray  # int64[...]


class Entry(NamedTuple):
    """An entry to be put into a list. The corners of a point are equal."""

    low: int
    high: int
    signature: int
    number: int


def empty_lists(width: int, target: int, finest: int) -> Lists:
    """No terms. A term gets finer cells when its cells have more than 4 * target entries on average."""
    control = np.full(FREE + _SIZES, -1, np.int64)
    control[:FREE] = 0
    control[ENTRY_WIDTH], control[TARGET], control[FINEST] = width, target, finest
    return Lists(np.zeros((0, 8), np.int32), np.zeros((0, 4), np.int32), np.zeros(0, np.uint32), control)


def with_terms(lists: Lists, n_terms: int) -> Lists:
    """The lists with room for so many terms."""
    return lists._replace(terms=grown(lists.terms, n_terms, fill=0))


def with_lacking_room(lists: Lists) -> Lists:
    """The lists with the room that the last call of a kernel lacked."""
    control = lists.control
    words = grown(lists.words, int(control[USED_WORDS] + control[LACKING_WORDS] + _BEHIND))
    heads = grown(lists.heads, int(control[USED_HEADS] + control[LACKING_HEADS]), fill=0)
    control[LACKING_WORDS] = control[LACKING_HEADS] = 0
    return lists._replace(words=words, heads=heads)


def list_bytes(lists: Lists) -> int:
    return sum(int(array.nbytes) for array in lists)


@lean_kernel
def size_for(count):
    """The smallest size of room for so many entries."""
    size = 0
    while ROOMS[size] < count:
        size += 1
    return size


@lean_kernel
def has_room(lists, words, heads):
    """Whether so many words and heads can be taken; notes what is lacking otherwise."""
    control = lists.control
    has_words = control[USED_WORDS] + words + _BEHIND <= len(lists.words)
    fits = has_words and control[USED_HEADS] + heads <= len(lists.heads)
    if not fits:
        control[LACKING_WORDS], control[LACKING_HEADS] = words, heads
    return fits


@lean_kernel
def take_room(lists, size):
    """The start of a free room of this size. The caller knows that there is room."""
    control = lists.control
    start = control[FREE + size]
    if start >= 0:
        following = lists.words[start]
        control[FREE + size] = -1 if following == _END else np.int64(following)
        return start
    start = control[USED_WORDS]
    control[USED_WORDS] += control[ENTRY_WIDTH] * ROOMS[size]
    return start


@lean_kernel
def release(lists, table, at):
    """Empty a list and give its room back."""
    room = np.int64(table[at, ROOM])
    if room > 0:
        size, start = size_for(room), np.int64(table[at, START])
        first = lists.control[FREE + size]
        lists.words[start] = _END if first < 0 else np.uint32(first)
        lists.control[FREE + size] = start
    table[at, COUNT] = table[at, ROOM] = 0


@lean_kernel
def _enlarge(lists, table, at):
    """Move a full list to the next larger room; return False if there is none."""
    room, start, count = np.int64(table[at, ROOM]), np.int64(table[at, START]), table[at, COUNT]
    size = size_for(room + 1)
    width, larger = lists.control[ENTRY_WIDTH], ROOMS[size]
    if not has_room(lists, width * larger, 0):
        return False
    target = take_room(lists, size)
    for field in range(width):
        for k in range(count):
            lists.words[target + field * larger + k] = lists.words[start + field * room + k]
    release(lists, table, at)
    table[at, START], table[at, COUNT], table[at, ROOM] = target, count, larger
    return True


@lean_kernel
def append(lists, table, at, entry):
    """Append an entry to a list of a table (terms or heads); return False, and change nothing, without room."""
    if table[at, COUNT] == table[at, ROOM] and not _enlarge(lists, table, at):
        return False
    count, room = table[at, COUNT], np.int64(table[at, ROOM])
    place = np.int64(table[at, START]) + count
    lists.words[place] = entry.low
    lists.words[place + room] = entry.signature
    lists.words[place + 2 * room] = entry.number
    if lists.control[ENTRY_WIDTH] == BOX_WIDTH:
        lists.words[place + 3 * room] = entry.high
    table[at, COUNT] = count + 1
    return True


@lean_kernel
def entry_at(lists, table, at, k):
    """Entry k of a list."""
    room, place = np.int64(table[at, ROOM]), np.int64(table[at, START]) + k
    words = lists.words
    high = words[place + 3 * room] if lists.control[ENTRY_WIDTH] == BOX_WIDTH else words[place]
    return Entry(words[place], high, words[place + room], words[place + 2 * room])


@lean_kernel
def overwrite(lists, table, at, k, entry):
    """Replace entry k of a list of boxes."""
    room, place = np.int64(table[at, ROOM]), np.int64(table[at, START]) + k
    lists.words[place] = entry.low
    lists.words[place + room] = entry.signature
    lists.words[place + 2 * room] = entry.number
    lists.words[place + 3 * room] = entry.high


@lean_kernel
def drop_dead(lists, table, at, is_live):
    """Remove the entries of dead messages from a list; return how many. An empty list gives its room back."""
    room, start, count = np.int64(table[at, ROOM]), np.int64(table[at, START]), table[at, COUNT]
    words, width = lists.words, lists.control[ENTRY_WIDTH]
    kept = 0
    for k in range(count):
        if is_live[words[start + 2 * room + k]]:
            if kept != k:
                for field in range(width):
                    words[start + field * room + kept] = words[start + field * room + k]
            kept += 1
    table[at, COUNT] = kept
    if kept == 0:
        release(lists, table, at)
    return count - kept


@inline_kernel
def other_corner(lists, room):
    """How far behind its corner an entry has its other corner, in a list of this room. A point has one corner."""
    return OTHER_CORNER * room if lists.control[ENTRY_WIDTH] == BOX_WIDTH else np.int64(0)


@lean_kernel
def sweep_terms(lists, is_live):
    """Remove the entries of dead messages from the lists of all terms and of their cells."""
    for term in range(len(lists.terms)):
        own = lists.terms[term]
        if own[TOTAL] == 0:
            continue
        own[TOTAL] -= drop_dead(lists, lists.terms, term, is_live)
        for head in range(own[HEADS], own[HEADS] + own[CELLS]):
            own[TOTAL] -= drop_dead(lists, lists.heads, np.int64(head), is_live)


@lean_kernel
def drop_dead_of_heads(lists, n_heads, is_live):
    """Remove the entries of dead messages from the first lists of `heads`."""
    for head in range(n_heads):
        if lists.heads[head, COUNT]:
            drop_dead(lists, lists.heads, head, is_live)

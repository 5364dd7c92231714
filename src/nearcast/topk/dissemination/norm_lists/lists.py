"""Lists of rows by (term, number of later terms), in buckets by the least message norm that can matter.

The terms of a row are ranked, heaviest first. A row has one slot for each of its terms, in the list of that term and of
the class of the number of its later terms. A message is found under the first of the row's terms that it has. There

    score <= alpha * place + own * weight + later * norm

with the weight of the term in the message, and the norm of the largest message weights that the later terms can meet.
`least` is theta - alpha, so a slot passes if left = own * weight + later * norm - least is at least alpha times the
distance: left >= 0 and left^2 >= alpha^2 * distance^2, without a division by alpha and without a root.

All numbers of a slot are whole numbers of 16 bits, rounded to the side that lets more messages pass: a slot takes 20
bytes instead of 34.

Long lists are in buckets by the least norm of the message's weights from the term on for which `left` can be 0 at all;
a search stops at the bucket of its message's norm. Slots of rows that no message can reach are in the bucket NEVER.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import inline_kernel, lean_kernel

CLASSES = 5
"""Later terms: 0, 1, 2, 3, or more."""

BUCKETS = 32
NEVER = BUCKETS
BUCKETED = 64
"""A list gets buckets when it is moved with so many slots."""

ONE, HALF = 65535.0, 32767.0
"""The units of numbers in slots."""

NONE = -1
N_LISTS, N_TABLES, END, USED = range(4)
"""Positions in `head`: lists and tables of buckets so far, the end of the slots, slots in rooms that are in use."""


class Slots(NamedTuple):
    """One slot a row and term."""

    own: np.ndarray  # uint16[n]  (1 - alpha) * weight of the term / norm of the row, in units of 1 / ONE
    later: np.ndarray  # uint16[n]  (1 - alpha) * norm of the later terms / norm of the row, in units of 1 / ONE
    least: np.ndarray  # int16[n]  theta - alpha, less the slack of rounding, at least -1, in units of 1 / HALF
    place: np.ndarray  # uint16[n]  alpha^2, in units of 1 / ONE
    xs: np.ndarray  # int16[n]  the point of the row, in units of reach / HALF
    ys: np.ndarray  # int16[n]
    zs: np.ndarray  # int16[n]
    rows: np.ndarray  # int32[n]
    ranks: np.ndarray  # uint16[n]  of the term within the row


class Lists(NamedTuple):
    """One list a term and class."""

    directory: np.ndarray  # int32[n_terms * CLASSES]  the number of the list, or NONE
    starts: np.ndarray  # int64[n]  the first slot
    rooms: np.ndarray  # int32[n]  slots that fit
    counts: np.ndarray  # int32[n]
    tables: np.ndarray  # int32[n]  a row of `ends`, or NONE
    ends: np.ndarray  # int32[m, BUCKETS + 1]  slots up to the end of each bucket
    own: np.ndarray  # int32[...]  the slot of each row and rank, parallel to the terms of `TopRows`


@lean_kernel
def rounded_least(theta, alpha, slack):
    """The `least` of a slot, rounded down. From -1 down, every slot passes."""
    return math.floor(max(-1.0, min(1.0, theta - alpha - slack)) * HALF)


@inline_kernel
def room_for(count):
    return count + count // 2 + 2


@lean_kernel
def bucket_of(slots, slot):
    """The bucket of a slot: the least message norm that can matter, in steps of 1 / BUCKETS, rounded down."""
    least = slots.least[slot] / HALF
    if least <= 0.0:
        return 0
    reach = np.sqrt((slots.own[slot] / ONE) ** 2 + (slots.later[slot] / ONE) ** 2)
    if least > 1.0001 * reach:
        return NEVER
    return max(0, min(BUCKETS - 1, int(least / reach * BUCKETS - 0.001)))


@lean_kernel
def copy_columns(slots, source, target):
    slots.own[target] = slots.own[source]
    slots.later[target] = slots.later[source]
    slots.least[target] = slots.least[source]
    slots.place[target] = slots.place[source]
    slots.xs[target] = slots.xs[source]
    slots.ys[target] = slots.ys[source]
    slots.zs[target] = slots.zs[source]
    slots.rows[target] = slots.rows[source]
    slots.ranks[target] = slots.ranks[source]


@lean_kernel
def move_slot(lists, slots, offsets, source, target):
    """Copy a slot, and tell its row where it is. `offsets` are those of `RowArrays`."""
    if source != target:
        copy_columns(slots, source, target)
        lists.own[offsets[slots.rows[target]] + slots.ranks[target]] = target


@lean_kernel
def open_gap(lists, slots, offsets, number, bucket):
    """A free slot in the bucket of a list that has room: every later bucket moves its first slot to its end."""
    start, table = lists.starts[number], lists.tables[number]
    lists.counts[number] += 1
    if table == NONE:
        return start + lists.counts[number] - 1
    ends = lists.ends[table]
    for b in range(NEVER, bucket, -1):
        if ends[b] > ends[b - 1]:
            move_slot(lists, slots, offsets, start + ends[b - 1], start + ends[b])
        ends[b] += 1
    ends[bucket] += 1
    return start + ends[bucket] - 1


@lean_kernel
def close_gap(lists, slots, offsets, number, slot):
    """Remove a slot from a list: its bucket and every later one move their last slot into the gap."""
    start, table = lists.starts[number], lists.tables[number]
    lists.counts[number] -= 1
    if table == NONE:
        move_slot(lists, slots, offsets, start + lists.counts[number], slot)
        return
    ends, gap = lists.ends[table], slot
    for b in range(NEVER + 1):
        if start + ends[b] > slot:
            first = ends[b - 1] if b > 0 else 0
            if ends[b] > first and start + ends[b] - 1 >= gap:
                move_slot(lists, slots, offsets, start + ends[b] - 1, gap)
                gap = start + ends[b] - 1
            ends[b] -= 1


@lean_kernel
def widen(lists, slots, offsets, head, number):
    """Move a full list to a larger room at the end; a long list gets buckets. There is space for it."""
    count, old = lists.counts[number], lists.starts[number]
    room = room_for(count + 1)
    start = head[END]
    head[END] += room
    head[USED] += room - lists.rooms[number]
    lists.starts[number] = start
    lists.rooms[number] = room
    if count >= BUCKETED and lists.tables[number] == NONE:
        lists.tables[number] = head[N_TABLES]
        head[N_TABLES] += 1
        _sort_into(lists, slots, offsets, number, old)
        return
    for k in range(count):
        move_slot(lists, slots, offsets, old + k, start + k)


@lean_kernel
def _sort_into(lists, slots, offsets, number, old):
    """Copy the slots of a list from `old` to its new place, by bucket, and set the ends of its buckets."""
    ends, count = lists.ends[lists.tables[number]], lists.counts[number]
    ends[:] = 0
    for k in range(count):
        ends[bucket_of(slots, old + k)] += 1
    total = 0
    for b in range(NEVER + 1):
        n = ends[b]
        ends[b] = total  # the start of the bucket, until its slots have moved
        total += n
    for k in range(count):
        b = bucket_of(slots, old + k)
        move_slot(lists, slots, offsets, old + k, lists.starts[number] + ends[b])
        ends[b] += 1

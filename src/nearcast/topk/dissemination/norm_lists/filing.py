"""Files rows in lists, removes them, and moves them when their theta changes."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel, lean_kernel
from nearcast.topk.dissemination.norm_lists.lists import (
    BUCKETED,
    CLASSES,
    END,
    HALF,
    N_LISTS,
    N_TABLES,
    NEVER,
    NONE,
    ONE,
    USED,
    bucket_of,
    close_gap,
    copy_columns,
    open_gap,
    room_for,
    rounded_least,
    widen,
)
from nearcast.topk.embedding import Embedding, embed
from nearcast.topk.score import ALPHA, NORM, THETA, X, Y


class Scales(NamedTuple):
    """What slots are computed with."""

    weights: np.ndarray  # float64[n_terms]
    embedding: Embedding


@lean_kernel
def slack_of(embedding):
    """What rounding can add to a score: that of the embedding, and half a unit in each of three coordinates.

    Half a unit in three dimensions is 2.7e-5 of the reach; the bend makes it longer by less than a half.
    """
    return embedding.slack + 4e-5 * embedding.reach


@lean_kernel
def ranked_terms(rows, row, weights, out_terms):
    """Write the terms of a row, heaviest first; equal weights by ascending term."""
    first = rows.offsets[row]
    for k in range(rows.n_terms[row]):
        term, i = rows.terms[first + k], k
        while i > 0 and weights[out_terms[i - 1]] < weights[term]:
            out_terms[i] = out_terms[i - 1]
            i -= 1
        out_terms[i] = term


@kernel
def has_space(lists, slots, head, terms):
    """Whether a row with these ranked terms can be filed without an array growing."""
    n, needed = len(terms), 0
    for rank in range(n):
        number = lists.directory[terms[rank] * CLASSES + min(n - 1 - rank, CLASSES - 1)]
        if number == NONE:
            needed += room_for(1)
        elif lists.counts[number] == lists.rooms[number]:
            needed += room_for(lists.counts[number] + 1)
    is_wide = head[END] + needed < len(slots.rows)
    return is_wide and head[N_LISTS] + n <= len(lists.starts) and head[N_TABLES] + n <= len(lists.ends)


@kernel
def list_for(lists, head, term, class_):
    """The list of a term and class, made if there is none."""
    number = lists.directory[term * CLASSES + class_]
    if number != NONE:
        return np.int64(number)
    number = head[N_LISTS]
    head[N_LISTS] += 1
    lists.directory[term * CLASSES + class_] = number
    lists.rooms[number] = 0
    lists.counts[number] = 0
    lists.tables[number] = NONE
    return number


@kernel
def set_slot(slots, at, numbers, row, weight, later, embedding):
    """Write a slot of a row: the weight of its term, and the norm of its later terms."""
    alpha, norm = numbers[row, ALPHA], numbers[row, NORM]
    per_norm = 1.0 / norm if norm > 0.0 else 0.0
    px, py, pz = embed(embedding, numbers[row, X], numbers[row, Y])
    slots.own[at] = math.ceil((1.0 - alpha) * min(1.0, weight * per_norm) * ONE)
    slots.later[at] = math.ceil((1.0 - alpha) * min(1.0, later * per_norm) * ONE)
    slots.least[at] = rounded_least(numbers[row, THETA], alpha, slack_of(embedding))
    slots.place[at] = math.floor(alpha * alpha * ONE)
    scale = HALF / embedding.reach
    slots.xs[at] = round(px * scale)
    slots.ys[at] = round(py * scale)
    slots.zs[at] = round(pz * scale)
    slots.rows[at] = row


@kernel
def file_row(lists, slots, head, rows, row, terms, scales):
    """File a row under its ranked terms. `has_space` said that it fits."""
    weights = scales.weights
    n, square = len(terms), 0.0
    spare = len(slots.rows) - 1  # a slot behind all lists, written before its bucket is known
    for rank in range(n - 1, -1, -1):
        number = list_for(lists, head, terms[rank], min(n - 1 - rank, CLASSES - 1))
        if lists.counts[number] == lists.rooms[number]:
            widen(lists, slots, rows.offsets, head, number)
        weight = weights[terms[rank]]
        set_slot(slots, spare, rows.numbers, row, weight, np.sqrt(square), scales.embedding)
        bucket = bucket_of(slots, spare)
        at = open_gap(lists, slots, rows.offsets, number, bucket)
        copy_columns(slots, spare, at)
        slots.ranks[at] = rank
        lists.own[rows.offsets[row] + rank] = at
        square += weight**2


@kernel
def file_rows(lists, slots, head, rows, numbers, scales):
    """File rows until one does not fit; return how many were filed."""
    terms = np.empty(16, np.int32)
    for i in range(len(numbers)):
        row = numbers[i]
        if rows.n_terms[row] > len(terms):
            terms = np.empty(rows.n_terms[row], np.int32)
        ranked_terms(rows, row, scales.weights, terms)
        ranked = terms[: rows.n_terms[row]]
        if not has_space(lists, slots, head, ranked):
            return i
        file_row(lists, slots, head, rows, row, ranked, scales)
    return len(numbers)


@kernel
def unfile_rows(lists, slots, rows, numbers, weights):
    """Remove the slots of rows."""
    terms = np.empty(16, np.int32)
    for row in numbers:
        n = rows.n_terms[row]
        if n > len(terms):
            terms = np.empty(n, np.int32)
        ranked_terms(rows, row, weights, terms)
        for rank in range(n):
            number = lists.directory[terms[rank] * CLASSES + min(n - 1 - rank, CLASSES - 1)]
            close_gap(lists, slots, rows.offsets, number, lists.own[rows.offsets[row] + rank])


@lean_kernel
def refile_row(lists, slots, rows, row, weights, slack, terms):
    """Set `least` of a row whose theta changed. A slot moves if its bucket is too high, or much too low.

    `terms` (int32) is scratch with room for the terms of a row.
    """
    n = rows.n_terms[row]
    ranked_terms(rows, row, weights, terms)
    least = rounded_least(rows.numbers[row, THETA], rows.numbers[row, ALPHA], slack)
    for rank in range(n):
        number = lists.directory[terms[rank] * CLASSES + min(n - 1 - rank, CLASSES - 1)]
        slot = lists.own[rows.offsets[row] + rank]
        slots.least[slot] = least
        if lists.tables[number] != NONE:
            _move_between_buckets(lists, slots, rows.offsets, number, slot)


@lean_kernel
def refile_rows(lists, slots, rows, numbers, weights, slack, terms):
    """As `refile_row`, for rows."""
    for row in numbers:
        refile_row(lists, slots, rows, row, weights, slack, terms)


@lean_kernel
def _move_between_buckets(lists, slots, offsets, number, slot):
    ends, place = lists.ends[lists.tables[number]], slot - lists.starts[number]
    wanted, bucket = bucket_of(slots, slot), 0
    while ends[bucket] <= place:
        bucket += 1
    start = lists.starts[number]
    while bucket > wanted:  # swap with the first slot of the bucket, which becomes the last one of the bucket before
        swap_slots(lists, slots, offsets, slot, start + ends[bucket - 1])
        slot = start + ends[bucket - 1]
        ends[bucket - 1] += 1
        bucket -= 1
    if wanted < bucket + 2:
        return
    while bucket < wanted:
        swap_slots(lists, slots, offsets, slot, start + ends[bucket] - 1)
        slot = start + ends[bucket] - 1
        ends[bucket] -= 1
        bucket += 1


@lean_kernel
def swap_slots(lists, slots, offsets, first, second):
    """Exchange two slots, by way of the spare slot behind all lists."""
    if first == second:
        return
    spare = len(slots.rows) - 1
    copy_columns(slots, first, spare)
    copy_columns(slots, second, first)
    copy_columns(slots, spare, second)
    lists.own[offsets[slots.rows[first]] + slots.ranks[first]] = first
    lists.own[offsets[slots.rows[second]] + slots.ranks[second]] = second


@kernel
def count_slots(lists, rows, numbers, weights, head):
    """Make the lists that these rows need, and count their slots; return False if lists or tables lack."""
    terms = np.empty(16, np.int32)
    for row in numbers:
        n = rows.n_terms[row]
        if n > len(terms):
            terms = np.empty(n, np.int32)
        ranked_terms(rows, row, weights, terms)
        if head[N_LISTS] + n > len(lists.starts):
            return False
        for rank in range(n):
            number = list_for(lists, head, terms[rank], min(n - 1 - rank, CLASSES - 1))
            lists.counts[number] += 1
    return True


@kernel
def allot(lists, head):
    """Give each list a room for the slots counted, a sixteenth more, and a table if it is long; then empty it."""
    head[END] = head[N_TABLES] = head[USED] = 0
    for number in range(head[N_LISTS]):
        count = lists.counts[number]
        room = count + count // 16
        lists.starts[number] = head[END]
        lists.rooms[number] = room
        lists.counts[number] = 0
        head[END] += room
        if count >= BUCKETED:
            lists.tables[number] = head[N_TABLES]
            head[N_TABLES] += 1
    head[USED] = head[END]


@kernel
def clear_tables(lists, head):
    """Set the ends of all buckets to 0, before the slots of `allot` are filed."""
    for table in range(head[N_TABLES]):
        for b in range(NEVER + 1):
            lists.ends[table, b] = 0

"""One step in kernels: expiry, arrival, and the changes that they cause.

A row that loses a message by expiry is *touched*: its best k are copied first, and compared with the best k at the end
of the step. A row that only gains a message reports its changes at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.jit import lean_kernel
from nearcast.arrays.vector import prefetch
from nearcast.topk.buffered.buffers import drop_expired, insert_entry, shrink
from nearcast.topk.buffered.exact import exact_score
from nearcast.topk.buffered.wheel import UNLINKED, link, link_oldest
from nearcast.topk.dissemination.verify import AHEAD
from nearcast.topk.score import THETA


class Touched(NamedTuple):
    """The touched rows of a step, and their best k before it."""

    is_touched: np.ndarray  # uint8[rows]
    rows: np.ndarray  # int32[...]
    starts: np.ndarray  # int64[...]  one more than rows
    arrivals: np.ndarray  # int32[...]
    rows_to_refill: np.ndarray  # int32[...]  scratch, as long as `rows`


class Log(NamedTuple):
    """Changes. Those of one row in one step are in their final order; rows are not."""

    rows: np.ndarray  # int32[...]
    arrivals: np.ndarray  # int32[...]
    signs: np.ndarray  # int8[...]
    scores: np.ndarray  # float64[...]


def empty_touched() -> Touched:
    types = (np.uint8, np.int32, np.int64, np.int32, np.int32)
    return Touched(*(np.zeros(0, dtype) for dtype in types))


def empty_log() -> Log:
    return Log(*(np.empty(0, dtype) for dtype in (np.int32, np.int32, np.int8, np.float64)))


def with_log_room(log: Log, used: int, extra: int) -> Log:
    """The log with room for `extra` more changes."""
    return Log(*(grown(column, used + extra) for column in log)) if used + extra > len(log.rows) else log


def with_touched_room(touched: Touched, n_rows: int, n_touched: int, n_entries: int) -> Touched:
    return Touched(
        grown(touched.is_touched, n_rows, fill=0),
        grown(touched.rows, n_touched),
        grown(touched.starts, n_touched + 1),
        grown(touched.arrivals, n_entries),
        grown(touched.rows_to_refill, n_touched),
    )


@lean_kernel
def prefetch_entries(buffers, row):
    """Prefetch the entries of a short buffer, or the first ones."""
    start, count = buffers.starts[row], buffers.counts[row]
    for k in range(0, min(count, 64), 32):
        prefetch(buffers.rounded, start + k)
    for k in range(0, min(count, 64), 16):
        prefetch(buffers.arrivals, start + k)


@lean_kernel
def prefetch_last(buffers, inputs, rows, first, stop):
    """Prefetch the buffers of rows[first:stop], and the message that is the last of each row's best k."""
    ring = inputs.ring
    mask, term_mask = len(ring.ids) - 1, len(ring.terms) - 1
    for i in range(first, stop):
        prefetch_entries(buffers, rows[i])
    for i in range(first, stop):
        n = min(inputs.rows.ks[rows[i]], buffers.counts[rows[i]])
        if n > 0:
            at = buffers.arrivals[buffers.starts[rows[i]] + n - 1] & mask
            prefetch(ring.starts, at)
            prefetch(ring.counts, at)
            prefetch(ring.places, 2 * at)
    for i in range(first, stop):
        n = min(inputs.rows.ks[rows[i]], buffers.counts[rows[i]])
        if n > 0:
            at = buffers.arrivals[buffers.starts[rows[i]] + n - 1] & mask
            prefetch(ring.terms, ring.starts[at] & term_mask)
            prefetch(ring.values, ring.starts[at] & term_mask)


@lean_kernel
def count_holders(wheel, buffers, rows, first, new_first):
    """(rows to look at when messages first .. new_first-1 expire, entries of their best k)."""
    n, entries = 0, 0
    for arrival in range(first, new_first):
        row = wheel.heads[arrival & (len(wheel.heads) - 1)]
        while row >= 0:
            n += 1
            entries += min(rows.ks[row], buffers.counts[row])
            prefetch_entries(buffers, row)
            row = wheel.nexts[row]
    return n, entries


@lean_kernel
def expire(wheel, buffers, rows, first, new_first, touched):
    """Touch the rows that have one of the messages first .. new_first-1, and drop those messages; return how many."""
    n = 0
    touched.starts[0] = 0
    for arrival in range(first, new_first):
        at = arrival & (len(wheel.heads) - 1)
        row = wheel.heads[at]
        wheel.heads[at] = UNLINKED
        while row >= 0:
            following = wheel.nexts[row]
            wheel.nexts[row] = UNLINKED
            wheel.previous[row] = UNLINKED
            touched.rows[n] = row
            touched.is_touched[row] = 1
            end, start = touched.starts[n], buffers.starts[row]
            for k in range(min(rows.ks[row], buffers.counts[row])):
                touched.arrivals[end] = buffers.arrivals[start + k]
                end += 1
            n += 1
            touched.starts[n] = end
            drop_expired(buffers, row, new_first)
            row = following
    return n


@lean_kernel
def write_change(log, n, row, arrival, sign, score):
    log.rows[n] = row
    log.arrivals[n] = arrival
    log.signs[n] = sign
    log.scores[n] = score


@lean_kernel
def arrive(buffers, head, inputs, concerned, arrival, touched, log):
    """Put a message into the buffers of the rows that it concerns. `log` has room from its start.

    Returns how many changes were written. Rows whose theta rose are left in concerned.rows, the others become -1.
    """
    n = 0
    for i in range(len(concerned.rows)):
        row, score = concerned.rows[i], concerned.scores[i]
        before, k = buffers.counts[row], inputs.rows.ks[row]
        at = insert_entry(buffers, head, inputs, row, score, arrival)
        if at < k and touched.is_touched[row] == 0:
            if before >= k:
                last = buffers.arrivals[buffers.starts[row] + k]
                write_change(log, n, row, last, -1, exact_score(inputs, row, last))
                n += 1
            write_change(log, n, row, arrival, 1, score)
            n += 1
        if not shrink(buffers, head, inputs, row):
            concerned.rows[i] = -1
    return n


@lean_kernel
def link_new(wheel, buffers, concerned_rows, arrival, touched):
    """Link untouched rows whose buffer has only the new message."""
    for row in concerned_rows:
        if buffers.counts[row] == 1 and wheel.previous[row] == UNLINKED and touched.is_touched[row] == 0:
            link(wheel, row, arrival)


@lean_kernel
def rows_to_refill(buffers, rows, touched, n, out_rows):
    """Write the touched rows that have fewer than k messages and are not complete; return how many."""
    found = 0
    for i in range(n):
        row = touched.rows[i]
        if buffers.counts[row] < rows.ks[row] and rows.numbers[row, THETA] >= 0.0:
            out_rows[found] = row
            found += 1
    return found


@lean_kernel
def finish(wheel, buffers, inputs, touched, n, log, used):
    """Write the changes of touched rows behind the first `used`, and link the rows again; return the new end."""
    for i in range(n):
        if i % AHEAD == 0:
            prefetch_last(buffers, inputs, touched.rows, i, min(i + AHEAD, n))
        row = touched.rows[i]
        touched.is_touched[row] = 0
        start, stop = buffers.starts[row], buffers.starts[row] + min(inputs.rows.ks[row], buffers.counts[row])
        near = start
        for k in range(touched.starts[i], touched.starts[i + 1]):
            at = _position_of(buffers.arrivals, start, stop, near, touched.arrivals[k])
            near = max(near, at + 1)
            if at < 0:
                score = exact_score(inputs, row, touched.arrivals[k])
                write_change(log, used, row, touched.arrivals[k], -1, score)
                used += 1
        near = touched.starts[i]
        for k in range(start, stop):
            at = _position_of(touched.arrivals, touched.starts[i], touched.starts[i + 1], near, buffers.arrivals[k])
            near = max(near, at + 1)
            if at < 0:
                write_change(log, used, row, buffers.arrivals[k], 1, exact_score(inputs, row, buffers.arrivals[k]))
                used += 1
        link_oldest(wheel, buffers, row)
    return used


@lean_kernel
def _position_of(arrivals, start, stop, near, arrival):
    """The position of an arrival number among arrivals[start:stop], looked for at `near` and behind it first; or -1.

    Two lists of one row have their common messages in one order, so that most are found at once.
    """
    for k in range(near, min(near + 2, stop)):
        if arrivals[k] == arrival:
            return k
    for k in range(start, stop):
        if arrivals[k] == arrival:
            return k
    return -1

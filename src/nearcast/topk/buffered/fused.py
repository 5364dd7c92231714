"""Many steps in one kernel call, for norm-lists: a call costs some 20 µs for its arrays, as much as a step.

The kernel returns to Python when an array must grow or rows must be refilled; Python completes the step and goes on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel, lean_kernel
from nearcast.topk.buffered.buffered_method import ARRIVED, EXPIRED, INSERTS, TOUCHED
from nearcast.topk.buffered.buffers import BufferArrays, insert_entry, room_needed, shrink
from nearcast.topk.buffered.exact import ScoreInputs, exact_score
from nearcast.topk.buffered.steps import (
    Log,
    Touched,
    count_holders,
    expire,
    finish,
    prefetch_last,
    rows_to_refill,
    write_change,
)
from nearcast.topk.buffered.wheel import UNLINKED, WheelArrays, link
from nearcast.topk.dissemination.norm_lists.filing import refile_row, slack_of
from nearcast.topk.dissemination.norm_lists.scan import NormIndex, find_rows
from nearcast.topk.dissemination.verify import AHEAD
from nearcast.topk.refill.postings import Postings, Stretches, append_from

DONE, GROW, APPEND, FINISH = range(4)
"""Why the kernel returns: all steps are done; an array must grow before the step; the message's postings lack room;
rows must be refilled, or the log must grow, before the step is finished.
"""

(FIRST, ARRIVAL, STOP, USED, N_MESSAGES, PERIOD, N_TOUCHED, N_POSTED) = range(8)
"""Positions in `clock`: the first live message, the next one, the end of the batch, changes in the log, the size of the
window, and where a step was interrupted.
"""

ROOM_BUFFERS, ROOM_LOG, ROOM_TOUCHED, ROOM_ENTRIES = range(4)
"""Positions in `needs`: what GROW asks room for."""


class Core(NamedTuple):
    """All that a step reads and writes. No array is in it twice: passing one to the kernel costs 0.2 µs."""

    inputs: ScoreInputs
    buffers: BufferArrays
    buffer_head: np.ndarray
    wheel: WheelArrays
    touched: Touched
    log: Log
    lists: NormIndex
    stretches: Stretches
    postings: Postings
    postings_head: np.ndarray
    bounds: np.ndarray  # int64[3]  scratch of `append_from`
    counts: np.ndarray  # int64[4]


@kernel
def run_steps(core, clock, ends, needs):
    """Let the messages from clock[ARRIVAL] to clock[STOP] arrive; return why it stopped.

    `ends` (by message, from the end of the batch backwards: ends[len - (STOP - arrival)]) get the end of each step.
    """
    while clock[ARRIVAL] < clock[STOP]:
        arrival = clock[ARRIVAL]
        first = first_live(core.inputs.ring, clock)
        n = find_rows(core.lists, core.inputs, arrival)
        if not _has_room(core, clock, first, n, needs):
            for i in range(n):
                core.lists.scratch.seen[core.lists.scratch.candidates[i]] = UNLINKED
            return GROW
        expire_step(core, clock, first)
        arrive_step(core, clock, n)
        clock[ARRIVAL] += 1
        core.bounds[0], core.bounds[1], core.bounds[2] = arrival, first, 0
        clock[N_POSTED] = append_postings(core)
        if clock[N_POSTED] >= 0:
            return APPEND
        if clock[N_TOUCHED] > 0 and not finish_step(core, clock):
            return FINISH
        ends[len(ends) - (clock[STOP] - arrival)] = clock[USED]
    return DONE


@kernel
def append_postings(core):
    lists, postings = core.lists, core.postings
    ring, bounds, head = core.inputs.ring, core.bounds, core.postings_head
    return append_from(ring, bounds, lists.weights, lists.embedding, core.stretches, postings, head)


@lean_kernel
def first_live(ring, clock):
    """The first message that is live when the next one arrives."""
    first, arrival = clock[FIRST], clock[ARRIVAL]
    if clock[N_MESSAGES] > 0:
        return max(first, arrival + 1 - clock[N_MESSAGES])
    mask = len(ring.times) - 1
    limit = ring.times[arrival & mask] - clock[PERIOD]
    while first < arrival and ring.times[first & mask] <= limit:
        first += 1
    return first


@lean_kernel
def _has_room(core, clock, first, n, needs):
    """Whether all arrays have room for a step; if not, `needs` says for what."""
    n_touched, n_entries = count_holders(core.wheel, core.buffers, core.inputs.rows, clock[FIRST], first)
    needs[ROOM_BUFFERS] = room_needed(core.buffers, core.lists.scratch.candidates[:n], 1)
    needs[ROOM_LOG] = 2 * n
    needs[ROOM_TOUCHED], needs[ROOM_ENTRIES] = n_touched, n_entries
    has_entries = core.buffer_head[0] + needs[ROOM_BUFFERS] <= len(core.buffers.rounded)
    has_log = clock[USED] + 2 * n <= len(core.log.rows)
    return has_entries and has_log and n_touched < len(core.touched.starts) and n_entries <= len(core.touched.arrivals)


@lean_kernel
def expire_step(core, clock, first):
    clock[N_TOUCHED] = expire(core.wheel, core.buffers, core.inputs.rows, clock[FIRST], first, core.touched)
    core.counts[EXPIRED] += first - clock[FIRST]
    core.counts[TOUCHED] += clock[N_TOUCHED]
    clock[FIRST] = first


@lean_kernel
def arrive_step(core, clock, n):
    """Put the message into the buffers of the first n candidates."""
    rows, buffers, lists, used, arrival = core.inputs.rows, core.buffers, core.lists, clock[USED], clock[ARRIVAL]
    candidates, slack = lists.scratch.candidates, slack_of(lists.embedding)
    for i in range(n):
        if i % AHEAD == 0:
            prefetch_last(buffers, core.inputs, candidates, i, min(i + AHEAD, n))
        row, score = candidates[i], lists.scores[i]
        before, k = buffers.counts[row], rows.ks[row]
        at = insert_entry(buffers, core.buffer_head, core.inputs, row, score, arrival)
        if core.touched.is_touched[row] == 0:
            if at < k and before >= k:
                last = buffers.arrivals[buffers.starts[row] + k]
                write_change(core.log, used, row, last, -1, exact_score(core.inputs, row, last))
                used += 1
            if at < k:
                write_change(core.log, used, row, arrival, 1, score)
                used += 1
            if before == 0 and core.wheel.previous[row] == UNLINKED:
                link(core.wheel, row, arrival)
        if shrink(buffers, core.buffer_head, core.inputs, row):
            refile_row(lists.lists, lists.slots, rows, row, lists.weights, slack, lists.row_terms)
    clock[USED] = used
    core.counts[ARRIVED] += 1
    core.counts[INSERTS] += n


@lean_kernel
def finish_step(core, clock):
    """Write the changes of touched rows; False if a row must be refilled or the log is too short."""
    n = clock[N_TOUCHED]
    if rows_to_refill(core.buffers, core.inputs.rows, core.touched, n, core.touched.rows_to_refill) > 0:
        return False
    most = core.touched.starts[n]
    for i in range(n):
        row = core.touched.rows[i]
        most += min(core.inputs.rows.ks[row], core.buffers.counts[row])
    if clock[USED] + most > len(core.log.rows):
        return False
    clock[USED] = finish(core.wheel, core.buffers, core.inputs, core.touched, n, core.log, clock[USED])
    return True

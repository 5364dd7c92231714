"""Searches the lists for one message."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import lean_kernel
from nearcast.topk.dissemination.norm_lists.filing import slack_of
from nearcast.topk.dissemination.norm_lists.lists import BUCKETS, CLASSES, HALF, NONE, ONE, Lists, Slots
from nearcast.topk.dissemination.verify import AHEAD, prefetch_rows
from nearcast.topk.embedding import Embedding, embed
from nearcast.topk.score import ALPHA, NORM, THETA, clear_values, combined, cosine, set_values, shared_value

STRIDE = 64
"""Slots that are tested at a time, so that their tests are vector instructions."""

N_PROBE = 8
WEIGHT, REST, PX, PY, PZ, BEND, STEP, MARGIN = range(N_PROBE)
"""Positions in a probe: the weight of the term and the norm of what later terms can meet, both divided by ONE; the
point, the bend, the unit of the coordinates of slots, and the slack of rounding.
"""

SCANNED, SCORED = range(2)


class MessageTerms(NamedTuple):
    """The terms of one message, heaviest first."""

    terms: np.ndarray  # int32[n]
    values: np.ndarray  # float64[n]
    weights: np.ndarray  # float64[n]  in the message's vector of length 1
    rests: np.ndarray  # float64[n, CLASSES]  the norm of the largest weights behind each term: 0, 1, 2, 3, or all


def message_of(n: int) -> MessageTerms:
    """Room for a message of up to n terms."""
    return MessageTerms(np.empty(n, np.int32), np.empty(n), np.empty(n), np.empty((n, CLASSES)))


class Scratch(NamedTuple):
    """Working memory of a search."""

    probe: np.ndarray  # float32[N_PROBE]
    is_hit: np.ndarray  # uint8[STRIDE]
    seen: np.ndarray  # int32[rows]  the last message for which a row was a candidate
    candidates: np.ndarray  # int32[rows]
    squares: np.ndarray  # float32[rows]  at most the squared distance of each candidate, in units of max_dist
    counters: np.ndarray  # int64[2]


class NormIndex(NamedTuple):
    """What a search reads besides the message and the rows, and its working memory."""

    lists: Lists
    slots: Slots
    weights: np.ndarray  # float64[n_terms]
    embedding: Embedding
    message: MessageTerms
    scratch: Scratch
    values: np.ndarray  # float64[n_terms]  all ABSENT
    scores: np.ndarray  # float64[rows]  of the rows found
    row_terms: np.ndarray  # int32[longest row]  scratch of `refile_row`


@lean_kernel
def find_rows(index, inputs, arrival):
    """Leave the rows that a message concerns in scratch.candidates, and their scores; return how many.

    `inputs` are ScoreInputs.
    """
    ring, scratch = inputs.ring, index.scratch
    at = arrival & (len(ring.ids) - 1)
    n_terms = read_message(ring, arrival, index.weights, index.message)
    set_probe(index.embedding, ring.places[at, 0], ring.places[at, 1], scratch.probe)
    n = search_lists(index.lists, index.slots, index.message, n_terms, arrival, scratch)
    scratch.counters[SCORED] += n
    set_values(ring, arrival, index.values)
    n = keep_concerned(index, inputs, ring.places[at], n)
    clear_values(ring, arrival, index.values)
    return n


@lean_kernel
def read_message(ring, arrival, weights, out_message):
    """Write the terms of a message, heaviest first, equal weights by ascending term; return how many."""
    at, mask = arrival & (len(ring.ids) - 1), len(ring.terms) - 1
    n = ring.counts[at]
    for k in range(n):
        source = (ring.starts[at] + k) & mask
        term, i = ring.terms[source], k
        while i > 0 and weights[out_message.terms[i - 1]] < weights[term]:
            out_message.terms[i] = out_message.terms[i - 1]
            out_message.values[i] = out_message.values[i - 1]
            i -= 1
        out_message.terms[i] = term
        out_message.values[i] = ring.values[source]
    for i in range(n):
        weight = weights[out_message.terms[i]]
        out_message.weights[i] = out_message.values[i] / weight if weight > 0.0 else 0.0
    _set_rests(out_message, n)
    return n


@lean_kernel
def _set_rests(message, n):
    first, second, third, total = 0.0, 0.0, 0.0, 0.0  # the three largest squares so far, and the sum of all
    for i in range(n - 1, -1, -1):
        rests = message.rests[i]
        rests[0] = 0.0
        rests[1] = np.sqrt(first)
        rests[2] = np.sqrt(first + second)
        rests[3] = np.sqrt(first + second + third)
        rests[4] = np.sqrt(total)
        square = message.weights[i] ** 2
        total += square
        if square > first:
            first, second, third = square, first, second
        elif square > second:
            second, third = square, second
        elif square > third:
            third = square


@lean_kernel
def search_lists(lists, slots, message, n, arrival, scratch):
    """Collect the rows whose slots pass, each once; return how many."""
    found = 0
    for i in range(n):
        base = message.terms[i] * CLASSES
        scratch.probe[WEIGHT] = message.weights[i] / ONE
        for later in range(CLASSES):
            number = lists.directory[base + later]
            if number == NONE or lists.counts[number] == 0:
                continue
            rest = message.rests[i, later]
            stop = lists.counts[number]
            if lists.tables[number] != NONE:
                norm = np.sqrt(message.weights[i] ** 2 + rest * rest)
                stop = lists.ends[lists.tables[number], min(BUCKETS - 1, int(norm * BUCKETS + 0.001))]
            scratch.probe[REST] = rest / ONE
            scratch.counters[SCANNED] += stop
            found = _scan(slots, lists.starts[number], lists.starts[number] + stop, scratch, arrival, found)
    return found


@lean_kernel
def _scan(slots, first, stop, scratch, arrival, found):
    """Add the rows of the slots first .. stop-1 that pass, each once; return how many there are now."""
    is_hit, seen, candidates = scratch.is_hit, scratch.seen, scratch.candidates
    words = is_hit.view(np.uint64)
    for base in range(first, stop, STRIDE):
        n = min(STRIDE, stop - base)
        _test(slots, base, n, scratch.probe, is_hit)
        for word in range((n + 7) >> 3):
            if words[word] == 0:
                continue
            for k in range(8 * word, min(8 * word + 8, n)):
                if is_hit[k] != 0:
                    row = slots.rows[base + k]
                    if seen[row] != arrival:
                        seen[row] = arrival
                        candidates[found] = row
                        scratch.squares[found] = _square_of(slots, base + k, scratch.probe)
                        found += 1
    return found


@lean_kernel
def _square_of(slots, slot, probe):
    """The squared distance between a slot and the message, at most 1, as `_test` has it."""
    step = probe[STEP]
    dx = np.float32(slots.xs[slot]) * step - probe[PX]
    dy = np.float32(slots.ys[slot]) * step - probe[PY]
    dz = np.float32(slots.zs[slot]) * step - probe[PZ]
    square = dx * dx + dy * dy + dz * dz
    return min(square * (np.float32(1.0) + probe[BEND] * square), np.float32(1.0))


@lean_kernel
def keep_concerned(index, inputs, place, n):
    """Keep, of the first n candidates, those whose score is at least their theta; return how many are kept.

    `place` (float64[2]) is that of the message whose values are set. Most candidates fail by their exact words and the
    distance of their slot, so that no arc on the sphere is computed for them.
    """
    rows, scratch, values = inputs.rows, index.scratch, index.values
    kept, candidates, slack = 0, scratch.candidates, scratch.probe[MARGIN]
    for first in range(0, n, AHEAD):
        stop = min(first + AHEAD, n)
        prefetch_rows(rows, candidates, first, stop)
        for i in range(first, stop):
            row = candidates[i]
            total = shared_value(rows, row, values)
            alpha, theta = rows.numbers[row, ALPHA], rows.numbers[row, THETA]
            left = alpha + (1.0 - alpha) * cosine(total, rows.numbers[row, NORM]) - theta + slack
            if total < 0.0 or left < 0.0 or left * left < alpha * alpha * scratch.squares[i]:
                continue
            score = combined(rows.numbers, row, inputs.metric, total, place[0], place[1])
            if score >= theta:
                candidates[kept] = row
                index.scores[kept] = score
                kept += 1
    return kept


@lean_kernel
def _test(slots, base, n, probe, out_is_hit):
    """Set out_is_hit of n slots from `base` on. All in float32: `least` includes the slack for it."""
    own, later = slots.own[base : base + n], slots.later[base : base + n]
    least, place = slots.least[base : base + n], slots.place[base : base + n]
    xs, ys, zs = slots.xs[base : base + n], slots.ys[base : base + n], slots.zs[base : base + n]
    weight, rest, bend, step = probe[WEIGHT], probe[REST], probe[BEND], probe[STEP]
    px, py, pz = probe[PX], probe[PY], probe[PZ]
    one, zero = np.float32(1.0), np.float32(0.0)
    per_one, per_half = np.float32(1.0 / ONE), np.float32(1.0 / HALF)
    for k in range(n):
        left = np.float32(own[k]) * weight + np.float32(later[k]) * rest - np.float32(least[k]) * per_half
        dx, dy, dz = np.float32(xs[k]) * step - px, np.float32(ys[k]) * step - py, np.float32(zs[k]) * step - pz
        square = dx * dx + dy * dy + dz * dz
        square = min(square * (one + bend * square), one)
        out_is_hit[k] = (left >= zero) & (left * left >= np.float32(place[k]) * per_one * square)


@lean_kernel
def set_probe(embedding, x, y, out_probe):
    """Set the point of a message."""
    px, py, pz = embed(embedding, x, y)
    out_probe[PX] = px
    out_probe[PY] = py
    out_probe[PZ] = pz
    out_probe[BEND] = embedding.bend
    out_probe[STEP] = embedding.reach / HALF
    out_probe[MARGIN] = 1.0001 * slack_of(embedding)

"""A flat hash table from the bytes of a token to its term: open addressing, linear probing, a power of two of slots.

A slot is a uint64. Its upper half is the upper half of the token's hash, its lower half is term + 1. An empty slot is
0. The bytes of term t are arena[starts[t]:starts[t+1]]. Bytes are compared only if the half hashes agree. A lookup
therefore reads slots, starts and arena once each, and for an unknown token usually only slots.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import copy_values
from nearcast.arrays.jit import inline_kernel, kernel
from nearcast.arrays.ragged import drop_repeats, sort_in_place
from nearcast.arrays.vector import finish_writes

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
FINISHER = np.uint64(0xD6E8FEB86659FD93)
HALF = np.uint64(32)
LOW_HALF = np.uint64(0xFFFFFFFF)
EMPTY = np.uint64(0)

MAX_LOAD = 0.5
"""The largest share of slots in use. A half means 1.5 probes for a known token and 2.5 for an unknown one."""

BLOCK = 64
"""The number of tokens that `lookup_tokens` looks up together, so that their cache misses overlap."""


@inline_kernel
def load4(raw, i):
    """Four bytes as a number. The index is unsigned so that the compiler can merge the four loads."""
    i = np.uint64(i)
    low = np.uint64(raw[i]) | np.uint64(raw[i + np.uint64(1)]) << np.uint64(8)
    high = np.uint64(raw[i + np.uint64(2)]) << np.uint64(16) | np.uint64(raw[i + np.uint64(3)]) << np.uint64(24)
    return low | high


@inline_kernel
def load8(raw, i):
    return load4(raw, i) | load4(raw, i + 4) << HALF


@inline_kernel
def load_short(raw, i, n):
    """A number that differs for any two strings of the same length n < 8. From 4 bytes on, two loads overlap."""
    if n >= 4:
        return load4(raw, i) | load4(raw, i + n - 4) << HALF
    if n == 0:
        return np.uint64(0)
    outer = np.uint64(raw[i]) | np.uint64(raw[i + n - 1]) << np.uint64(16)
    return outer | np.uint64(raw[i + n // 2]) << np.uint64(8)


@inline_kernel
def mixed(state, word):
    state = (state ^ word) * MULTIPLIER
    return state ^ state >> HALF


@inline_kernel
def hash_of(raw, start, stop):
    n = stop - start
    state = np.uint64(n) * FINISHER
    if n < 8:
        state = mixed(state, load_short(raw, start, n))
    else:
        for i in range(start, stop - 8, 8):
            state = mixed(state, load8(raw, i))
        state = mixed(state, load8(raw, stop - 8))
    state *= FINISHER
    return state ^ state >> np.uint64(29)


@inline_kernel
def is_same(raw, start, arena, at, n):
    """Whether the n bytes at raw[start] and at arena[at] are the same."""
    if n < 8:
        return load_short(raw, start, n) == load_short(arena, at, n)
    for k in range(0, n - 8, 8):
        if load8(raw, start + k) != load8(arena, at + k):
            return False
    return load8(raw, start + n - 8) == load8(arena, at + n - 8)


@kernel
def term_from(slots, starts, arena, hashed, raw, start, stop):
    """(term or -1, slot where the search ended) of the token raw[start:stop] with this hash.

    Terms that `starts` does not have are passed over: another thread is just adding them.
    """
    mask = np.uint64(len(slots) - 1)
    slot = hashed & mask
    while slots[slot] != EMPTY:
        if slots[slot] >> HALF == hashed >> HALF:
            term = min(np.int64(slots[slot] & LOW_HALF) - 1, len(starts) - 1)
            at = starts[term]
            if (
                term < len(starts) - 1
                and starts[term + 1] - at == stop - start
                and is_same(raw, start, arena, at, stop - start)
            ):
                return term, slot
        slot = (slot + np.uint64(1)) & mask
    return np.int64(-1), slot


@kernel
def lookup_tokens(slots, starts, arena, raw, offsets, out_terms):
    """Write the term of each token, or -1.

    The kernel hashes a block of tokens, then reads their slots, then their starts, then their bytes. The cache misses
    of one step overlap: with a million terms this is 2.4 times as fast as one token after the other.
    """
    hashes = np.empty(BLOCK, np.uint64)
    found = np.empty(BLOCK, np.uint64)
    ats = np.empty(BLOCK, np.int64)
    mask, last = np.uint64(len(slots) - 1), len(starts) - 1
    for first in range(0, len(out_terms), BLOCK):
        n = min(BLOCK, len(out_terms) - first)
        for k in range(n):
            hashes[k] = hash_of(raw, offsets[first + k], offsets[first + k + 1])
        for k in range(n):
            found[k] = slots[hashes[k] & mask]
        for k in range(n):
            term = np.int64(found[k] & LOW_HALF)  # term + 1, or 0 for an empty slot
            ats[k] = starts[min(max(term - 1, 0), last)]
        for k in range(n):
            start, stop = offsets[first + k], offsets[first + k + 1]
            term = np.int64(found[k] & LOW_HALF) - 1
            is_likely = 0 <= term < last and found[k] >> HALF == hashes[k] >> HALF
            if (
                is_likely
                and starts[term + 1] - ats[k] == stop - start
                and is_same(raw, start, arena, ats[k], stop - start)
            ):
                out_terms[first + k] = term
            else:
                out_terms[first + k] = term_from(slots, starts, arena, hashes[k], raw, start, stop)[0]


@kernel
def lookup_message(slots, starts, arena, joined, end, out_terms):
    """Write the known terms of one message's tokens, sorted and distinct; return their number.

    `joined` is the bytes of len(out_terms) tokens with the byte `end` between them. Returns -1 if splitting at `end`
    gives another number of tokens. Works in steps as `lookup_tokens` does, but does not copy the tokens and allocates
    once: a call takes 2.4 us instead of 2.9 (short, distinct messages; 144,000 terms).
    """
    n = len(out_terms)
    if n == 0:
        return 0
    mask, last = np.uint64(len(slots) - 1), len(starts) - 1
    words = np.empty(4 * n + 1, np.uint64)
    begins, hashes, found, ats = (
        words[: n + 1],
        words[n + 1 : 2 * n + 1],
        words[2 * n + 1 : 3 * n + 1],
        words[3 * n + 1 :],
    )
    if not _split(joined, end, begins):
        return -1
    for k in range(n):
        hashes[k] = hash_of(joined, np.int64(begins[k]), np.int64(begins[k + 1]) - 1)
    for k in range(n):
        found[k] = slots[hashes[k] & mask]
    for k in range(n):
        ats[k] = starts[min(max(np.int64(found[k] & LOW_HALF) - 1, 0), last)]
    n_known = 0
    for k in range(n):
        start, stop = np.int64(begins[k]), np.int64(begins[k + 1]) - 1
        term, at = np.int64(found[k] & LOW_HALF) - 1, np.int64(ats[k])
        is_likely = 0 <= term < last and found[k] >> HALF == hashes[k] >> HALF and starts[term + 1] - at == stop - start
        if not (is_likely and is_same(joined, start, arena, at, stop - start)):
            term = term_from(slots, starts, arena, hashes[k], joined, start, stop)[0]
        if term >= 0:
            out_terms[n_known] = term
            n_known += 1
    sort_in_place(out_terms, 0, n_known)
    return drop_repeats(out_terms, 0, n_known)


@kernel
def _split(joined, end, out_begins):
    """Write the start of each token and one past the end of the last; return whether their number fits."""
    most = len(out_begins) - 1
    out_begins[0] = 0
    n = 1
    for i in range(len(joined)):
        out_begins[min(n, most)] = i + 1  # overwritten unless this byte ends a token: avoids a branch
        n += joined[i] == end
    out_begins[most] = len(joined) + 1
    return n == most


@kernel
def add_tokens(slots, starts, arena, n_terms, raw, offsets, out_terms):
    """Look up or append each token; return (tokens done, number of terms). Stops early when an array is full."""
    for i in range(len(out_terms)):
        start, stop = offsets[i], offsets[i + 1]
        hashed = hash_of(raw, start, stop)
        term, slot = term_from(slots, starts, arena, hashed, raw, start, stop)
        if term < 0:
            at = starts[n_terms]
            is_full = n_terms + 1 >= len(starts) or n_terms >= len(slots) * MAX_LOAD
            if is_full or at + stop - start > len(arena):
                return i, n_terms
            copy_values(arena, at, raw, start, stop)
            term = n_terms
            n_terms += 1
            starts[n_terms] = at + stop - start
            finish_writes()  # other threads may be looking tokens up
            slots[slot] = hashed >> HALF << HALF | np.uint64(n_terms)
        out_terms[i] = term
    return len(out_terms), n_terms


@kernel
def fill_slots(slots, starts, arena, n_terms):
    """Enter all terms into a table of empty slots."""
    mask = np.uint64(len(slots) - 1)
    for term in range(n_terms):
        hashed = hash_of(arena, starts[term], starts[term + 1])
        slot = hashed & mask
        while slots[slot] != EMPTY:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = hashed >> HALF << HALF | np.uint64(term + 1)

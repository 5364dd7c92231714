"""Hash tables keyed by (node, term), for use in kernels."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.intmap import ABSENT, IntMapArrays, home_slot, probe
from nearcast.arrays.jit import inline_kernel, kernel
from nearcast.arrays.vector import prefetch


@kernel
def term_key(node, term):
    return (np.int64(node) << 32) | np.int64(term)


@kernel
def value_of(keys, values, key):
    """The value of a key, or ABSENT. Takes arrays, not their tuple: a search calls it for each node and term."""
    return values[probe(keys, values, key)]


@inline_kernel
def prefetch_slot(keys, values, key):
    """Prefetch the slot where the search for a key begins."""
    slot = home_slot(key, len(keys) - 1)
    prefetch(keys, slot)
    prefetch(values, slot)


@kernel
def with_slots(table, size, extra):
    """The table itself if `extra` more keys fit, else a larger copy, of at least twice the size."""
    capacity = len(table.keys)
    if (size + extra) * 10 <= capacity * 7:
        return table
    while (size + extra) * 10 > capacity * 7:
        capacity *= 2
    keys, values = np.zeros(capacity, np.int64), np.full(capacity, ABSENT, table.values.dtype)
    old_keys, old_values = table.keys, table.values
    for k in range(len(old_keys)):
        if old_values[k] != ABSENT:
            slot = probe(keys, values, old_keys[k])
            keys[slot], values[slot] = old_keys[k], old_values[k]
    return IntMapArrays(keys, values)


@kernel
def known_terms(terms, counts):
    """The terms whose count is above 0, by falling count: a search finds frequent terms soonest."""
    n = 0
    for k in range(len(terms)):
        n += counts[k] > 0
    return terms[np.argsort(-counts, kind="mergesort")[:n]]

"""Hash tables keyed by (node, token): the key, the test and the growth, in kernels."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.intmap import ABSENT, IntMapArrays, home_slot
from nearcast.arrays.jit import kernel


@kernel
def term_key(node, token):
    return (np.int64(node) << 32) | np.int64(token)


@kernel
def value_of(keys, values, key):
    """The value of a key, or ABSENT. Takes arrays, not their tuple: searches ask for each node and term."""
    mask = len(keys) - 1
    slot = home_slot(key, mask)
    while values[slot] != ABSENT and keys[slot] != key:
        slot = (slot + 1) & mask
    return values[slot]


@kernel
def with_slots(table, size, extra):
    """The table itself if `extra` more keys fit, else one of twice the size or more. For use in kernels."""
    capacity = len(table.keys)
    if (size + extra) * 10 <= capacity * 7:
        return table
    while (size + extra) * 10 > capacity * 7:
        capacity *= 2
    keys, values = np.zeros(capacity, np.int64), np.full(capacity, ABSENT, table.values.dtype)
    old_keys, old_values = table.keys, table.values
    for k in range(len(old_keys)):
        if old_values[k] != ABSENT:
            slot = home_slot(old_keys[k], capacity - 1)
            while values[slot] != ABSENT:
                slot = (slot + 1) & (capacity - 1)
            keys[slot], values[slot] = old_keys[k], old_values[k]
    return IntMapArrays(keys, values)

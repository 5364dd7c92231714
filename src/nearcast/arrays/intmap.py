"""A flat hash table from int64 keys to non-negative int32 values.

Open addressing with linear probing. Removal shifts later entries back, so that updates leave no tombstones. A slot
takes 12 bytes and at most 70 % of the slots are used: a million entries take 25 bytes each, a Python dict takes 102.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.arrays.vector import finish_writes

ABSENT = -1
_SMALLEST = 16
_C1 = np.uint64(0xBF58476D1CE4E5B9)
_C2 = np.uint64(0x94D049BB133111EB)
_S1, _S2, _S3 = np.uint64(30), np.uint64(27), np.uint64(31)


class IntMapArrays(NamedTuple):
    """One slot a row. A slot with the value ABSENT is empty."""

    keys: np.ndarray  # int64[capacity], capacity a power of two
    values: np.ndarray  # int32[capacity]


class IntMap:
    """A hash table that reads and changes many keys at a time."""

    def __init__(self, capacity: int = _SMALLEST) -> None:
        self.arrays = _empty(capacity)
        self.size = 0

    @classmethod
    def from_arrays(cls, arrays: IntMapArrays) -> IntMap:
        made = cls()
        made.arrays = arrays
        made.size = int(np.count_nonzero(arrays.values != ABSENT))
        return made

    def get(self, keys: np.ndarray) -> np.ndarray:
        """The value of each key, or ABSENT."""
        out = np.empty(len(keys), np.int32)
        get_all(self.arrays, keys, out)
        return out

    def put(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Set the value of each key. If a key occurs twice in one call, the last value wins."""
        self.reserve(self.size + len(keys))
        self.size += put_all(self.arrays, keys, values)

    def remove(self, keys: np.ndarray) -> None:
        """Remove these keys; an unknown key is ignored. The table shrinks once less than an eighth of it is used."""
        self.size -= remove_all(self.arrays, keys)
        capacity = len(self.arrays.keys)
        if capacity > _SMALLEST and self.size < capacity // 8:
            self._resize(capacity_for(self.size))

    def reserve(self, size: int) -> None:
        """Make room for `size` keys in total."""
        if size * 10 > len(self.arrays.keys) * 7:
            self._resize(capacity_for(size + size // 4))

    def _resize(self, capacity: int) -> None:
        old, self.arrays = self.arrays, _empty(capacity)
        used = old.values != ABSENT
        put_all(self.arrays, old.keys[used], old.values[used])

    @property
    def nbytes(self) -> int:
        return int(self.arrays.keys.nbytes + self.arrays.values.nbytes)


def capacity_for(size: int) -> int:
    """The smallest power of two of which `size` keys fill at most 70 %."""
    return max(_SMALLEST, 1 << int(np.ceil(np.log2(max(1, size) / 0.7))))


def _empty(capacity: int) -> IntMapArrays:
    return IntMapArrays(np.zeros(capacity, np.int64), np.full(capacity, ABSENT, np.int32))


@kernel
def home_slot(key, mask):
    """The slot where the search for a key begins. The mixer also spreads ids in arithmetic progression."""
    mixed = np.uint64(np.int64(key))  # a compiled kernel returns Python's integers to an interpreted one
    mixed = (mixed ^ (mixed >> _S1)) * _C1
    mixed = (mixed ^ (mixed >> _S2)) * _C2
    return np.int64((mixed ^ (mixed >> _S3)) & np.uint64(mask))


@kernel
def probe(keys, values, key):
    """The slot that holds `key`, or the empty slot where it would go. Hot loops pass the arrays, not their tuple."""
    mask = len(keys) - 1
    slot = home_slot(key, mask)
    while values[slot] != ABSENT and keys[slot] != key:
        slot = (slot + 1) & mask
    return slot


@kernel
def claim_slot(keys, values, key):
    """(slot, is_new): the slot that holds `key`. A new key takes its slot with value 0. The caller has made room."""
    slot = probe(keys, values, key)
    is_new = values[slot] == ABSENT
    if is_new:
        keys[slot] = key
        values[slot] = 0
    return slot, is_new


@kernel
def find_slot(table, key):
    """The slot that holds `key`, or the empty slot where it would go."""
    return probe(table.keys, table.values, key)


@kernel
def find(table, key):
    """The value of `key`, or ABSENT."""
    return table.values[find_slot(table, key)]


@kernel
def get_all(table, keys, out):
    for i in range(len(keys)):
        out[i] = find(table, keys[i])


@kernel
def put_one(table, key, value):
    """Set one key; return whether it is new. The caller has made room.

    Other threads may look keys up meanwhile: the value, which makes the slot count, is written last.
    """
    slot = find_slot(table, key)
    is_new = table.values[slot] == ABSENT
    table.keys[slot] = key
    finish_writes()
    table.values[slot] = value
    return is_new


@kernel
def put_all(table, keys, values):
    added = 0
    for i in range(len(keys)):
        added += put_one(table, keys[i], values[i])
    return added


@kernel
def remove_one(table, key):
    """Remove one key and close the gap behind it; return 1 if the key was there."""
    mask = len(table.keys) - 1
    gap = find_slot(table, key)
    if table.values[gap] == ABSENT:
        return 0
    slot = (gap + 1) & mask
    while table.values[slot] != ABSENT:
        home = home_slot(table.keys[slot], mask)
        # An entry may move back into the gap only if the gap lies between its home slot and its slot.
        if ((slot - home) & mask) >= ((slot - gap) & mask):
            table.keys[gap] = table.keys[slot]
            table.values[gap] = table.values[slot]
            gap = slot
        slot = (slot + 1) & mask
    table.values[gap] = ABSENT
    return 1


@kernel
def count_up(table, key):
    """Add 1 to the value of a key; return whether the key is new. The caller has made room."""
    slot, is_new = claim_slot(table.keys, table.values, key)
    table.values[slot] += 1
    return is_new


@kernel
def count_down(table, key):
    """Subtract 1 from the value of a key, and remove the key at 0; return 1 if it was removed."""
    slot = find_slot(table, key)
    if table.values[slot] > 1:
        table.values[slot] -= 1
        return 0
    return remove_one(table, key)


@kernel
def remove_all(table, keys):
    removed = 0
    for i in range(len(keys)):
        removed += remove_one(table, keys[i])
    return removed

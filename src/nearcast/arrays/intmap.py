"""A flat hash table from int64 keys to non-negative int32 values.

Open addressing with linear probing and backward-shift removal, so nothing piles up under updates. 12 bytes a slot, at
most 70 % full: a million entries take 25 bytes each, where a Python dict takes 102.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel

ABSENT = -1
_SMALLEST = 16
_C1 = np.uint64(0xBF58476D1CE4E5B9)
_C2 = np.uint64(0x94D049BB133111EB)
_S1, _S2, _S3 = np.uint64(30), np.uint64(27), np.uint64(31)


class IntMapArrays(NamedTuple):
    """A row is a slot; a slot is empty where its value is ABSENT."""

    keys: np.ndarray  # int64[capacity], capacity a power of two
    values: np.ndarray  # int32[capacity]


class IntMap:
    """int64 -> int32, in batches."""

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
        """The value of each key, ABSENT where there is none."""
        out = np.empty(len(keys), np.int32)
        get_all(self.arrays, keys, out)
        return out

    def put(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Set each key's value; of equal keys in one call the last wins."""
        self.reserve(self.size + len(keys))
        self.size += put_all(self.arrays, keys, values)

    def remove(self, keys: np.ndarray) -> None:
        """Forget these keys; an unknown one is no error. Memory is given back once under an eighth is in use."""
        self.size -= remove_all(self.arrays, keys)
        capacity = len(self.arrays.keys)
        if capacity > _SMALLEST and self.size < capacity // 8:
            self._resize(capacity_for(self.size))

    def reserve(self, size: int) -> None:
        """Make room for `size` keys in all."""
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
    """The power of two that holds `size` keys at most 70 % full."""
    return max(_SMALLEST, 1 << int(np.ceil(np.log2(max(1, size) / 0.7))))


def _empty(capacity: int) -> IntMapArrays:
    return IntMapArrays(np.zeros(capacity, np.int64), np.full(capacity, ABSENT, np.int32))


@kernel
def home_slot(key, mask):
    """Where a key would like to live. The mixer spreads ids in arithmetic progression too."""
    mixed = np.uint64(key)
    mixed = (mixed ^ (mixed >> _S1)) * _C1
    mixed = (mixed ^ (mixed >> _S2)) * _C2
    return np.int64((mixed ^ (mixed >> _S3)) & np.uint64(mask))


@kernel
def find_slot(table, key):
    """The slot that holds `key`, or else the empty slot where it would go."""
    mask = len(table.keys) - 1
    slot = home_slot(key, mask)
    while table.values[slot] != ABSENT and table.keys[slot] != key:
        slot = (slot + 1) & mask
    return slot


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
    """Set one key; return 1 if it is new. The caller has made room."""
    slot = find_slot(table, key)
    new = 1 if table.values[slot] == ABSENT else 0
    table.keys[slot] = key
    table.values[slot] = value
    return new


@kernel
def put_all(table, keys, values):
    added = 0
    for i in range(len(keys)):
        added += put_one(table, keys[i], values[i])
    return added


@kernel
def remove_one(table, key):
    """Forget one key and close the gap behind it; return 1 if it was there."""
    mask = len(table.keys) - 1
    gap = find_slot(table, key)
    if table.values[gap] == ABSENT:
        return 0
    slot = (gap + 1) & mask
    while table.values[slot] != ABSENT:
        home = home_slot(table.keys[slot], mask)
        # An entry may move back into the gap only if the gap lies on its way from home.
        if ((slot - home) & mask) >= ((slot - gap) & mask):
            table.keys[gap] = table.keys[slot]
            table.values[gap] = table.values[slot]
            gap = slot
        slot = (slot + 1) & mask
    table.values[gap] = ABSENT
    return 1


@kernel
def count_up(table, key):
    """One more of a key that is counted; return 1 if it is the first. The caller has made room."""
    slot = find_slot(table, key)
    new = 1 if table.values[slot] == ABSENT else 0
    table.keys[slot] = key
    table.values[slot] = 1 if new else table.values[slot] + 1
    return new


@kernel
def count_down(table, key):
    """One less of a key that is counted, which is forgotten with the last; return 1 if that was it."""
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

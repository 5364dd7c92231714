"""Rules shared by lists that lie one behind the other in an arena: when a list moves, and when the arena is packed."""

from __future__ import annotations

from nearcast.arrays.jit import inline_kernel, kernel

_SMALLEST_PACKED = 1024


@kernel
def room_for(count):
    """The capacity of a list that moves to the arena's end because it must hold `count` entries."""
    return count + count // 2 + 2


def is_loose(in_use: int, end: int) -> bool:
    """Whether more than a third of an arena, whose used part stops at `end`, belongs to no list."""
    return end > _SMALLEST_PACKED and 3 * in_use < 2 * end


@inline_kernel
def first_from(keys, items, low, high, key):
    """The first position k from `low` to `high` where keys[items[k]] is not below `key`; these keys ascend."""
    while low < high:
        middle = (low + high) >> 1
        if keys[items[middle]] < key:
            low = middle + 1
        else:
            high = middle
    return low

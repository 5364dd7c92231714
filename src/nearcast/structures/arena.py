"""Parts shared by arenas of lists and tables of nodes: numbers that are reused, room to grow, holes, and search.

`head` is a small array of counters. Two of its positions count the numbers given so far and the numbers in `free`.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import inline_kernel, kernel


@kernel
def take_number(head, n_given, n_free, free):
    """A number that is not in use: the one freed last, or else the next one. The caller has made room for it."""
    if head[n_free] > 0:
        head[n_free] -= 1
        return np.int64(free[head[n_free]])
    head[n_given] += 1
    return head[n_given] - 1


@kernel
def free_number(head, n_free, free, number):
    """Remember a number for `take_number`."""
    free[head[n_free]] = number
    head[n_free] += 1


@kernel
def larger_room(count):
    """The room of a list that moves because `count` entries fill it: half as much again."""
    return count + count // 2 + 2


@kernel
def add_to_parents(values, parents, n):
    """Add the values of the first n nodes to their parents', which have lower numbers. A root has no parent: -1."""
    for node in range(n - 1, -1, -1):
        if parents[node] >= 0:
            values[parents[node]] += values[node]


def has_many_holes(end: int, in_use: int) -> bool:
    """Whether more than a third of an arena that ends at `end` is holes, which moved and removed lists left."""
    return end > 1024 and 3 * in_use < 2 * end


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

"""Where rows and messages go: leaves of a k-d tree over the plane, and parts of a leaf by text.

A cut at c sends what lies below c to one side and what reaches c to the other. A point is thus in one leaf, a box in
every leaf of which it holds a point, and two boxes that touch have a leaf in common.

A leaf is one shard, or, where too many messages are at one spot, several *parts*, each a shard. A message visits its
home part, by its id. Rows either lie in all parts, or (a *divided* leaf) in the part of their key, their rarest
token: then a message also visits the parts of those of its tokens that are keys. Rows whose boxes reach over too many
leaves are divided by key over all shards in the same way. Rows without a key, and keys that are too frequent to be
one shard's business, are never divided.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.intmap import ABSENT, find
from nearcast.arrays.jit import kernel
from nearcast.text.token_table import hash_of

LEAF = 2
EVERYWHERE_AREA = 0  # of rows that reach over too many leaves; leaf k is area k + 1
NO_KEY = np.int64(-1)
_ONE = np.uint64(1)
_C1 = np.uint64(0x9E3779B97F4A7C15)
_C2 = np.uint64(0xBF58476D1CE4E5B9)
_C3 = np.uint64(0x94D049BB133111EB)
_S1, _S2 = np.uint64(29), np.uint64(32)


class Areas(NamedTuple):
    """Nodes of the tree, the root first, and the shards of each leaf's parts."""

    axes: np.ndarray  # int8[n]     0: the cut is an x, 1: a y, LEAF: none
    cuts: np.ndarray  # float64[n]
    below: np.ndarray  # int32[n]   the node of what lies below the cut; of a leaf its number
    above: np.ndarray  # int32[n]
    part_starts: np.ndarray  # int64[n_leaves + 1]
    part_shards: np.ndarray  # int32[...]
    is_divided: np.ndarray  # uint8[n_leaves]
    limits: np.ndarray  # int64[2]  rows over more leaves than limits[0] go by key; limits[1] shards in all


class Rows(NamedTuple):
    """What the tree asks of rows of subscriptions."""

    boxes: np.ndarray  # float64[n,4]
    keys: np.ndarray  # int64[n]  the hash of the rarest token, or NO_KEY


@kernel
def hash_tokens(raw, offsets, out):
    """A hash of 63 bits for each string: never negative, so that NO_KEY is none."""
    for i in range(len(out)):
        out[i] = np.int64(hash_of(raw, offsets[i], offsets[i + 1]) >> _ONE)


@kernel
def mix_hash(number, salt):
    """63 bits that depend on both."""
    state = (np.uint64(number) ^ (np.uint64(salt) * _C1)) * _C2
    state = (state ^ (state >> _S1)) * _C3
    return np.int64((state ^ (state >> _S2)) >> _ONE)


@kernel
def rarest_keys(terms, starts, hashes, counts, out):
    """The hash of each row's rarest term; of equally rare ones the smallest hash."""
    for row in range(len(out)):
        best = -1
        for k in range(starts[row], starts[row + 1]):
            term = terms[k]
            if (
                best < 0
                or counts[term] < counts[best]
                or (counts[term] == counts[best] and hashes[term] < hashes[best])
            ):
                best = term
        out[row] = NO_KEY if best < 0 else hashes[best]


@kernel
def leaves_of(areas, box, stack, out):
    """The leaves in which a closed box has a point; return how many."""
    n = 0
    depth = 1
    stack[0] = 0
    while depth > 0:
        depth -= 1
        node = stack[depth]
        axis = areas.axes[node]
        if axis == LEAF:
            out[n] = areas.below[node]
            n += 1
            continue
        if box[axis + 2] >= areas.cuts[node]:
            stack[depth] = areas.above[node]
            depth += 1
        if box[axis] < areas.cuts[node]:
            stack[depth] = areas.below[node]
            depth += 1
    return n


@kernel
def placed_by_key(areas, placements, key, area):
    """(shard, filed key) of a row that is to be divided by its key; the shard is -1 where this key is not divided."""
    filed = mix_hash(key, area)
    known = find(placements, filed)
    n_shards = areas.limits[1]
    if known != ABSENT:
        return (np.int64(known) if known < n_shards else np.int64(-1)), filed
    if area == EVERYWHERE_AREA:
        return filed % n_shards, filed
    first, stop = areas.part_starts[area - 1], areas.part_starts[area]
    return np.int64(areas.part_shards[first + filed % (stop - first)]), filed


@kernel
def shards_of_row(areas, placements, box, key, stack, leaves, out):
    """Write (shard, filed key or NO_KEY) pairs of one row to out[:, 0] and out[:, 1]; return how many."""
    n_leaves = leaves_of(areas, box, stack, leaves)
    if n_leaves > areas.limits[0] and key != NO_KEY:
        shard, filed = placed_by_key(areas, placements, key, EVERYWHERE_AREA)
        if shard >= 0:
            out[0, 0] = shard
            out[0, 1] = filed
            return 1
    n = 0
    for k in range(n_leaves):
        leaf = leaves[k]
        if areas.is_divided[leaf] and key != NO_KEY:
            shard, filed = placed_by_key(areas, placements, key, leaf + 1)
            if shard >= 0:
                out[n, 0] = shard
                out[n, 1] = filed
                n += 1
                continue
        for part in range(areas.part_starts[leaf], areas.part_starts[leaf + 1]):
            out[n, 0] = areas.part_shards[part]
            out[n, 1] = NO_KEY
            n += 1
    return n


@kernel
def assign_rows(areas, placements, rows):
    """int64[k,3]: (row, shard, filed key or NO_KEY), rows ascending."""
    n_shards = areas.limits[1]
    stack = np.empty(len(areas.axes) + 1, np.int64)
    leaves = np.empty(len(areas.axes), np.int64)
    own = np.empty((n_shards, 2), np.int64)
    out = np.empty((len(rows.keys) + n_shards, 3), np.int64)
    n = 0
    for row in range(len(rows.keys)):
        found = shards_of_row(areas, placements, rows.boxes[row], rows.keys[row], stack, leaves, own)
        if n + found > len(out):
            larger = np.empty((2 * len(out) + n_shards, 3), np.int64)
            larger[:n] = out[:n]
            out = larger
        for k in range(found):
            out[n, 0] = row
            out[n, 1] = own[k, 0]
            out[n, 2] = own[k, 1]
            n += 1
    return out[:n].copy()

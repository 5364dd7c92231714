"""Routing by place: the leaves of a k-d tree over the plane, and the parts of a leaf.

A cut at c separates what lies below c from what reaches c. A point is thus in one leaf, a box is in every leaf that
contains one of its points, and two boxes that touch have a leaf in common.

A leaf is one shard or, where too many messages are at one spot, several *parts*, each of which is a shard. A message
visits one part of its leaf, its home, chosen by its id. Rows are stored in all parts of a leaf, unless the leaf is
*divided*: then a row is stored in the part of its key, which is its rarest token, and a message also visits the parts
of those of its tokens that are keys. Rows whose boxes reach over too many leaves are divided by key over all shards in
the same way. Rows without a key, and keys too frequent for one shard, are never divided.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.intmap import ABSENT, find
from nearcast.arrays.jit import kernel
from nearcast.text.token_table import hash_of

LEAF = 2
EVERYWHERE_AREA = 0  # the area of rows that reach over too many leaves; leaf k is area k + 1
NO_KEY = np.int64(-1)
_ONE = np.uint64(1)
_C1 = np.uint64(0x9E3779B97F4A7C15)
_C2 = np.uint64(0xBF58476D1CE4E5B9)
_C3 = np.uint64(0x94D049BB133111EB)
_S1, _S2 = np.uint64(29), np.uint64(32)


class Areas(NamedTuple):
    """The nodes of the tree, root first, and the shards of each leaf's parts."""

    axes: np.ndarray  # int8[n]     0: the cut is an x, 1: a y, LEAF: none
    cuts: np.ndarray  # float64[n]
    below: np.ndarray  # int32[n]   the node below the cut; for a leaf, the number of the leaf
    above: np.ndarray  # int32[n]
    part_starts: np.ndarray  # int64[n_leaves + 1]
    part_shards: np.ndarray  # int32[...]
    is_divided: np.ndarray  # uint8[n_leaves]
    limits: np.ndarray  # int64[2]  [0]: rows over more leaves are divided by key; [1]: the number of shards


class Rows(NamedTuple):
    """The columns of subscription rows that the tree reads."""

    boxes: np.ndarray  # float64[n,4]
    keys: np.ndarray  # int64[n]  the hash of the rarest token, or NO_KEY


@kernel
def hash_tokens(raw, offsets, out):
    """out[i]: a hash of 63 bits of string i. It is never negative, so it never equals NO_KEY."""
    for i in range(len(out)):
        out[i] = np.int64(hash_of(raw, offsets[i], offsets[i + 1]) >> _ONE)


@kernel
def mix_hash(number, salt):
    """A hash of 63 bits of a number and a salt."""
    state = (np.uint64(number) ^ (np.uint64(salt) * _C1)) * _C2
    state = (state ^ (state >> _S1)) * _C3
    return np.int64((state ^ (state >> _S2)) >> _ONE)


@kernel
def rarest_keys(terms, starts, hashes, counts, out):
    """out[row]: the hash of the row's rarest term; among equally rare terms, the smallest hash."""
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
    """Write the leaves that contain a point of a closed box to out; return how many."""
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
    """(shard, filed key) of a row in an area divided by key. The shard is -1 if this key is not divided."""
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
    """Write the (shard, filed key or NO_KEY) pairs of one row to out; return how many."""
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

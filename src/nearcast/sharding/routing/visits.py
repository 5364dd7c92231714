"""Which shards messages visit: the shards of their places, and the shards where one of their tokens is a key."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.intmap import ABSENT, find
from nearcast.arrays.jit import kernel
from nearcast.sharding.routing.areas import EVERYWHERE_AREA, leaves_of, mix_hash
from nearcast.sharding.routing.keyword_shards import SPREAD_OVER_ALL, filed_keyword, span_of


class Messages(NamedTuple):
    """The columns of messages that the router reads."""

    ids: np.ndarray  # int64[n]
    boxes: np.ndarray  # float64[n,4]
    hashes: np.ndarray  # int64[...]  of all tokens; empty where nothing is routed by text
    starts: np.ndarray  # int64[n+1]


@kernel
def note_shard(shard, message, last_seen, out, n):
    """Append (message, shard) unless the message visits the shard already; return the new n."""
    if last_seen[shard] == message:
        return n
    last_seen[shard] = message
    out[n, 0] = message
    out[n, 1] = shard
    return n + 1


@kernel
def note_keys(keys, messages, m, area, last_seen, out, n):
    """Append the shards where this message's tokens are keys of an area; return the new n."""
    for k in range(messages.starts[m], messages.starts[m + 1]):
        shard = find(keys, mix_hash(messages.hashes[k], area))
        if shard != ABSENT:
            n = note_shard(shard, m, last_seen, out, n)
    return n


@kernel
def note_keywords(keys, messages, m, last_seen, out, n):
    """Append the shards where ranked rows are filed under this message's keywords; return the new n.

    Among shards that store the same rows, one is enough: one that is visited anyway, else one chosen by message id.
    """
    n_shards = len(last_seen)
    has_spans = False
    for k in range(messages.starts[m], messages.starts[m + 1]):
        code = find(keys, filed_keyword(messages.hashes[k]))
        if code >= n_shards:
            has_spans = True
        elif code != ABSENT:
            n = note_shard(code, m, last_seen, out, n)
    if has_spans:
        for k in range(messages.starts[m], messages.starts[m + 1]):
            code = find(keys, filed_keyword(messages.hashes[k]))
            if code >= n_shards:
                choice = mix_hash(messages.ids[m], messages.hashes[k])
                first, size = span_of(np.int64(code), n_shards)
                n = note_span(first, size, choice, m, last_seen, out, n)
    return n


@kernel
def note_span(first, size, choice, message, last_seen, out, n):
    """Append the shards of one span that the message must visit; return the new n."""
    n_shards = len(last_seen)
    if size == SPREAD_OVER_ALL:
        for shard in range(n_shards):
            n = note_shard(shard, message, last_seen, out, n)
        return n
    for k in range(size):
        if last_seen[(first + k) % n_shards] == message:
            return n
    return note_shard((first + choice % size) % n_shards, message, last_seen, out, n)


@kernel
def route_messages(areas, keys, by_keyword, messages):
    """int64[k,2]: (message row, shard), rows ascending, no pair twice. `by_keyword`: ranked rows are filed so."""
    n_shards = areas.limits[1]
    stack = np.empty(len(areas.axes) + 1, np.int64)
    leaves = np.empty(len(areas.axes), np.int64)
    last_seen = np.full(n_shards, -1, np.int64)
    out = np.empty((len(messages.ids) + n_shards, 2), np.int64)
    n = 0
    for m in range(len(messages.ids)):
        if n + n_shards > len(out):
            larger = np.empty((2 * len(out) + n_shards, 2), np.int64)
            larger[:n] = out[:n]
            out = larger
        n = note_keys(keys, messages, m, EVERYWHERE_AREA, last_seen, out, n)
        for k in range(leaves_of(areas, messages.boxes[m], stack, leaves)):
            leaf = leaves[k]
            first, stop = areas.part_starts[leaf], areas.part_starts[leaf + 1]
            home = first + mix_hash(messages.ids[m], leaf) % (stop - first)
            n = note_shard(areas.part_shards[home], m, last_seen, out, n)
            if areas.is_divided[leaf]:
                n = note_keys(keys, messages, m, leaf + 1, last_seen, out, n)
        if by_keyword:
            n = note_keywords(keys, messages, m, last_seen, out, n)
    return out[:n].copy()

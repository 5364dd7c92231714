"""Subscriptions replicated on several shards, and the rule that makes exactly one of those shards report a match.

A shard stores its subscriptions whole, so it finds a pair whenever the message visits it and it stores the
subscription. The shards that find a pair are therefore those that both the message and the subscription name, and the
first of these reports it. No shard needs to know what the others found.
"""

from __future__ import annotations

import os
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import starts_of
from nearcast.storage.bundles import read_bundle, write_bundle

FORMAT = ("nearcast-copies", 1)


class Replicas(NamedTuple):
    """The subscriptions of one shard that other shards store too."""

    ids: np.ndarray  # int64[n]    ascending, as the index of the shard numbers them
    starts: np.ndarray  # int64[n+1]
    shards: np.ndarray  # int32[...]  all shards of each subscription, ascending


class Visits(NamedTuple):
    """The shards that each message of a batch visits, ascending; an empty list where it visits this shard alone."""

    starts: np.ndarray  # int64[n+1]
    shards: np.ndarray  # int32[...]


def save_replicas(path: str | os.PathLike[str], replicas: Replicas) -> None:
    write_bundle(path, FORMAT, replicas._asdict(), {})


def open_replicas(path: str | os.PathLike[str]) -> Replicas:
    arrays, _ = read_bundle(path, FORMAT)
    return Replicas(**arrays)


def shard_lists(rows: np.ndarray, shards: np.ndarray, n_rows: int) -> pa.ListArray:
    """list<int32>[n_rows]: the shards of each row, null where there is at most one. Pairs are sorted by row."""
    n_shards = np.bincount(rows, minlength=n_rows)
    starts = pa.array(starts_of(n_shards).astype(np.int32))
    return pa.ListArray.from_arrays(starts, pa.array(shards), mask=pa.array(n_shards < 2))


@kernel
def mark_reported_pairs(shard, replicas, visits, starts, found_ids, out):
    """out[k]: whether this shard reports pair k. Message m has the pairs found_ids[starts[m]:starts[m+1]]."""
    for m in range(len(starts) - 1):
        first, stop = visits.starts[m], visits.starts[m + 1]
        for k in range(starts[m], starts[m + 1]):
            out[k] = True
            if stop - first < 2:
                continue
            at = np.searchsorted(replicas.ids, found_ids[k])
            if at < len(replicas.ids) and replicas.ids[at] == found_ids[k]:
                own = replicas.shards[replicas.starts[at] : replicas.starts[at + 1]]
                out[k] = first_common(own, visits.shards[first:stop]) == shard


@kernel
def first_common(left, right):
    """The smallest value in both ascending arrays, or -1."""
    i = k = 0
    while i < len(left) and k < len(right):
        if left[i] == right[k]:
            return left[i]
        if left[i] < right[k]:
            i += 1
        else:
            k += 1
    return -1

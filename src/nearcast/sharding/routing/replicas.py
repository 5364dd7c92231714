"""Subscriptions that several shards hold, and the rule by which a pair that several find is told once.

A shard finds a pair whenever the message visits it and it holds the subscription, since it holds it whole. So the
shards that find a pair are those in both lists, and the first of them tells it. No shard needs to know what the
others found.
"""

from __future__ import annotations

import os
from typing import NamedTuple

import numpy as np

from nearcast.arrays.bundle import read_bundle, write_bundle
from nearcast.arrays.jit import kernel

FORMAT = ("nearcast-copies", 1)


class Replicas(NamedTuple):
    """Of one shard: its subscriptions that other shards hold too."""

    ids: np.ndarray  # int64[n]    ascending
    starts: np.ndarray  # int64[n+1]
    shards: np.ndarray  # int32[...]  all shards of each, ascending


class Visits(NamedTuple):
    """The shards that each message of a batch visits, ascending; none where it visits this one alone."""

    starts: np.ndarray  # int64[n+1]
    shards: np.ndarray  # int32[...]


def save_replicas(path: str | os.PathLike[str], copies: Replicas) -> None:
    write_bundle(path, FORMAT, copies._asdict(), {})


def open_replicas(path: str | os.PathLike[str]) -> Replicas:
    arrays, _ = read_bundle(path, FORMAT)
    return Replicas(**arrays)


@kernel
def mark_reported_pairs(shard, copies, visits, starts, found_ids, out):
    """out[k]: whether it is this shard that tells pair k. Message m has found_ids[starts[m]:starts[m+1]]."""
    for m in range(len(starts) - 1):
        first, stop = visits.starts[m], visits.starts[m + 1]
        for k in range(starts[m], starts[m + 1]):
            out[k] = True
            if stop - first < 2:
                continue
            at = np.searchsorted(copies.ids, found_ids[k])
            if at < len(copies.ids) and copies.ids[at] == found_ids[k]:
                own = copies.shards[copies.starts[at] : copies.starts[at + 1]]
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

"""Builds and saves one shard from all of its subscriptions."""

from __future__ import annotations

import uuid
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nearcast.arrays.arrow import list_parts
from nearcast.arrays.ragged import take
from nearcast.engine.build_part import build_part
from nearcast.sharding.normalise import SUBSCRIPTIONS_SCHEMA, ids_with_repeats
from nearcast.sharding.routing.replicas import Replicas, save_replicas
from nearcast.sharding.sharded_index import ShardedIndex, index_weights, planned_router
from nearcast.storage.location import locate
from nearcast.tables.faults import Faults
from nearcast.tables.ids import Names
from nearcast.text.analyser import Analyser

SHARDS = "_shards"
"""A column of routed subscriptions: all shards that store a subscription, or null where one does."""

NO_SUBSCRIPTIONS = SUBSCRIPTIONS_SCHEMA.append(pa.field(SHARDS, pa.list_(pa.int32()))).empty_table()
SAMPLE = "sample.parquet"
KEYS = "keys.bin"


class BuildSettings(NamedTuple):
    """Where and how shards are built."""

    folder: str  # of the unfinished version, or its URL
    method: str
    space: tuple[float, ...] | None
    analyser: Analyser


class BuiltShard(NamedTuple):
    """The outcome of building one shard."""

    shard: int
    attempt: str  # the folder of the shard, until the driver gives it its final name where it can
    subscriptions: int
    bytes: int
    plan: str
    rejects: pa.Table
    attributes: tuple[str, ...]  # the columns of messages that filters name


def build_shard(settings: BuildSettings, shard: int, table: pa.Table, keys: np.ndarray) -> BuiltShard:
    """Build a shard and save it in a uniquely named folder of this attempt."""
    attempt = f"{shard:05d}-{uuid.uuid4().hex[:12]}"
    target = locate(settings.folder).child("shards", attempt)
    ids = ids_with_repeats(table, Faults(table.num_rows, "skip"))
    table = table.take(pa.array(np.argsort(ids.numbers)))  # the same index in whatever order the parts arrived
    subscriptions = table.drop_columns([SHARDS])
    index = build_part(
        subscriptions,
        settings.method,
        index_weights(ShardedIndex(settings.folder, {})).of_ranked(subscriptions),
        space=settings.space,
        messages=_sampled_visitors(settings, shard),
        analyser=settings.analyser,
        on_bad="skip",
        keep_source=False,
    )
    rejects = index.rejects
    assert rejects is not None
    index.save(target.child("index").url)
    save_replicas(target.child("copies").url, _replicas(table, index.names))
    target.child(KEYS).write(np.ascontiguousarray(keys, np.int64).tobytes())
    n_bytes = sum(file.size for file in target.files())
    return BuiltShard(
        shard, attempt, table.num_rows - len(rejects), n_bytes, index.plan, rejects, index.vocabulary.attributes
    )


def _sampled_visitors(settings: BuildSettings, shard: int) -> pa.Table | None:
    """The sampled messages that visit this shard, for methods that choose their layout by expected messages."""
    file = locate(settings.folder).child(SAMPLE)
    if not file.is_file():
        return None
    sample = pq.read_table(pa.BufferReader(file.read()))
    routed = planned_router(settings.folder).route(sample)
    return sample.take(pa.array(routed.rows[routed.shards == shard]))


def _replicas(table: pa.Table, names: Names) -> Replicas:
    replicated = table.filter(pc.is_valid(table[SHARDS]))
    ids = names.find(ids_with_repeats(replicated, Faults(replicated.num_rows, "skip")))
    values, starts = list_parts(replicated[SHARDS])
    order = np.argsort(ids, kind="stable")
    shards, starts = take(values.to_numpy(zero_copy_only=False).astype(np.int32), starts, order)
    return Replicas(ids[order], starts, shards)

"""What a worker does with a batch of messages: route it, match it against one shard or all, merge what they found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.arrays.arrow import list_parts
from nearcast.arrays.ragged import starts_of
from nearcast.model import Found, MessageBatch
from nearcast.sharding.merging import merged
from nearcast.sharding.normalise import ids_with_repeats
from nearcast.sharding.routing.replicas import Visits, mark_reported_pairs
from nearcast.sharding.sharded_index import ShardedIndex, shard_index, shard_replicas, shard_router
from nearcast.tables import OnBad, matches_table
from nearcast.tables.columns import column, require_one
from nearcast.tables.faults import Faults

VISITS = "_visits"
"""A column of routed messages: all shards that a message visits, or null where it is one."""

CHUNK = 16_384  # messages matched at once: what they match is held in memory
MESSAGE_COLUMNS = ("id", "text", "tokens", "x", "y", "lon", "lat", "xmin", "ymin", "xmax", "ymax", "time")


class Matched(NamedTuple):
    """Of all messages given: the pairs in parts, sorted within and from one to the next, and the bad rows."""

    parts: Iterator[pa.Table]
    rejects: pa.Table
    n_messages: int
    n_visits: int


def contract_columns(messages: pa.Table) -> pa.Table:
    """Only what matching reads."""
    return messages.select([name for name in messages.column_names if name in MESSAGE_COLUMNS])


def id_order(messages: pa.Table) -> np.ndarray | None:
    """int64[n]: the rows by id, or None where they are in that order."""
    require_one(messages, ("id",), "messages")
    if column(messages, "id") is None:
        return None
    ids = ids_with_repeats(messages, Faults(messages.num_rows, "skip"))
    return None if (ids[1:] >= ids[:-1]).all() else np.argsort(ids, kind="stable")


def in_id_order(messages: pa.Table) -> pa.Table:
    """Sorted by id, so that what is found chunk by chunk is sorted as a whole."""
    order = id_order(messages)
    return messages if order is None else messages.take(pa.array(order))


# -- all shards in one process


def match_all_in_parts(sharded: ShardedIndex, messages: pa.Table, on_bad: OnBad = "skip") -> Matched:
    """Match against every shard, each message where it must go."""
    messages = in_id_order(contract_columns(messages))
    if sharded.n_shards == 1:
        index = shard_index(sharded, 0)
        batch = index.read_messages(messages, on_bad=on_bad)
        rejects = index.rejects
        return Matched(_single(sharded, batch), rejects, batch.size, batch.size)
    routed = shard_router(sharded).route_checked(messages, on_bad)
    n_messages = messages.num_rows - len(routed.rejects)
    if routed.tokens is not None:
        messages = _with_tokens(messages, routed.tokens)
    parts = _chunks(sharded, messages, (routed.ids, routed.rows, routed.shards))
    return Matched(parts, routed.rejects, n_messages, len(routed.rows))


def match_all_shards(sharded: ShardedIndex, messages: pa.Table, on_bad: OnBad = "skip") -> pa.Table:
    """One matches table."""
    return pa.concat_tables(
        [sharded.matches_schema.empty_table(), *match_all_in_parts(sharded, messages, on_bad).parts]
    )


def _single(sharded: ShardedIndex, batch: MessageBatch) -> Iterator[pa.Table]:
    index = shard_index(sharded, 0)
    for first in range(0, batch.size, CHUNK):
        part = batch.part(first, min(first + CHUNK, batch.size))
        yield _table(sharded, part.ids, index.match_batch(part))


def _chunks(
    sharded: ShardedIndex, messages: pa.Table, routes: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> Iterator[pa.Table]:
    ids, rows, shards = routes
    for first in range(0, messages.num_rows, CHUNK):
        stop = min(first + CHUNK, messages.num_rows)
        a, b = np.searchsorted(rows, (first, stop))
        if a == b:
            continue
        chunk = messages.slice(first, stop - first).combine_chunks()
        found = _match_visits(sharded, chunk, rows[a:b] - first, shards[a:b])
        yield _table(sharded, ids[first:stop], found)


def _match_visits(sharded: ShardedIndex, chunk: pa.Table, rows: np.ndarray, shards: np.ndarray) -> Found:
    """The subscriptions of each message of a chunk, from all shards that it visits."""
    order = np.argsort(shards, kind="stable")
    visited, firsts = np.unique(shards[order], return_index=True)
    ids, counts, scores = [], [], []
    for shard, visitors in zip(visited.tolist(), np.split(order, firsts[1:]), strict=True):
        index = shard_index(sharded, shard)
        found = index.match_batch(index.read_messages(chunk.take(pa.array(rows[visitors]))))
        ids.append(found.ids)
        counts.append(np.diff(found.starts))
        scores.append(_scores(found))
    together = np.concatenate(scores) if sharded.n_ranked else None
    runs = Found(np.concatenate(ids), starts_of(np.concatenate(counts)), together)
    return merged(runs, rows[order], chunk.num_rows)


def _scores(found: Found) -> np.ndarray:
    return np.full(len(found.ids), np.nan) if found.scores is None else found.scores


def _table(sharded: ShardedIndex, message_ids: np.ndarray, found: Found) -> pa.Table:
    """With scores where the index has something ranked, also if what was found has none."""
    return matches_table(message_ids, found.ids, found.starts, _scores(found) if sharded.n_ranked else None)


def _with_tokens(messages: pa.Table, tokens: pa.Array) -> pa.Table:
    """The tokens in place of the text, which need not be cut again."""
    kept = [name for name in messages.column_names if name not in ("text", "tokens")]
    return messages.select(kept).append_column("tokens", tokens)


# -- one shard


def route_table(sharded: ShardedIndex, messages: pa.Table) -> tuple[dict[int, pa.Table], pa.Table]:
    """The messages of each shard, ready for `match_table`, and the bad rows."""
    messages = contract_columns(messages)
    routed = shard_router(sharded).route_checked(messages)
    if routed.tokens is not None:
        messages = _with_tokens(messages, routed.tokens)
    n_visits = np.bincount(routed.rows, minlength=messages.num_rows)
    visits = pa.ListArray.from_arrays(
        pa.array(starts_of(n_visits).astype(np.int32)), pa.array(routed.shards), mask=pa.array(n_visits < 2)
    )
    messages = messages.append_column(VISITS, visits)
    order = np.argsort(routed.shards, kind="stable")
    visited, firsts = np.unique(routed.shards[order], return_index=True)
    groups = np.split(routed.rows[order], firsts[1:])[: len(visited)]  # of nothing it makes one part
    parts = {shard: messages.take(pa.array(rows)) for shard, rows in zip(visited.tolist(), groups, strict=True)}
    return parts, routed.rejects


def match_one_shard(sharded: ShardedIndex, shard: int, messages: pa.Table) -> pa.Table:
    """What this shard has to tell of messages that `route_table` sent it: over all shards each pair once."""
    return pa.concat_tables([sharded.matches_schema.empty_table(), *match_one_in_parts(sharded, shard, messages)])


def match_one_in_parts(sharded: ShardedIndex, shard: int, messages: pa.Table) -> Iterator[pa.Table]:
    """The same, chunk by chunk, sorted within and from one to the next."""
    messages = in_id_order(messages)
    index = shard_index(sharded, shard)
    batch = index.read_messages(messages)
    values, starts = list_parts(messages[VISITS])
    visits = Visits(starts, values.to_numpy(zero_copy_only=False).astype(np.int32))
    for first in range(0, batch.size, CHUNK):
        part = batch.part(first, min(first + CHUNK, batch.size))
        found = index.match_batch(part)
        here = Visits(visits.starts[first : first + part.size + 1], visits.shards)
        yield _table(sharded, part.ids, _told(sharded, shard, here, found))


def _told(sharded: ShardedIndex, shard: int, visits: Visits, found: Found) -> Found:
    if visits.starts[0] == visits.starts[-1]:
        return found
    keep = np.empty(len(found.ids), np.bool_)
    mark_reported_pairs(shard, shard_replicas(sharded, shard), visits, found.starts, found.ids, keep)
    scores = None if found.scores is None else found.scores[keep]
    return Found(found.ids[keep], starts_of(keep)[found.starts], scores)

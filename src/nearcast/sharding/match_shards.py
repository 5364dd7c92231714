"""Matches a batch of messages against one shard or against all shards, and merges the results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.arrays.arrow import list_parts
from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import sort_in_place, starts_of, take
from nearcast.model import Found, MessageBatch
from nearcast.sharding.normalise import ids_with_repeats
from nearcast.sharding.routing.replicas import Visits, mark_reported_pairs, shard_lists
from nearcast.sharding.routing.router import Routed
from nearcast.sharding.sharded_index import ShardedIndex, shard_index, shard_replicas, shard_router
from nearcast.tables import OnBad, matches_table
from nearcast.tables.columns import column, require_one
from nearcast.tables.faults import Faults

VISITS = "_visits"
"""A column of routed messages: all shards that a message visits, or null where it visits one."""

CHUNK = 16_384  # messages matched at once: their matches must fit in memory
MESSAGE_COLUMNS = ("id", "text", "tokens", "x", "y", "lon", "lat", "xmin", "ymin", "xmax", "ymax", "time")


class Matched(NamedTuple):
    """The matches of a batch in parts, sorted within a part and from one part to the next, and the bad rows."""

    parts: Iterator[pa.Table]
    rejects: pa.Table
    n_messages: int
    n_visits: int


def contract_columns(sharded: ShardedIndex, messages: pa.Table) -> pa.Table:
    """Only the columns that matching reads."""
    wanted = {*MESSAGE_COLUMNS, *sharded.attributes}
    return messages.select([name for name in messages.column_names if name in wanted])


def id_order(messages: pa.Table) -> np.ndarray | None:
    """int64[n]: the rows in the order of their ids, or None where they are in that order already."""
    require_one(messages, ("id",), "messages")
    if column(messages, "id") is None:
        return None
    ids = ids_with_repeats(messages, Faults(messages.num_rows, "skip"))
    return None if (ids[1:] >= ids[:-1]).all() else np.argsort(ids, kind="stable")


def in_id_order(messages: pa.Table) -> pa.Table:
    """The messages sorted by id, so that the matches of successive chunks are sorted as a whole."""
    order = id_order(messages)
    return messages if order is None else messages.take(pa.array(order))


# -- all shards in one process


def match_all_in_parts(sharded: ShardedIndex, messages: pa.Table, on_bad: OnBad = "skip") -> Matched:
    """Match each message against every shard that it must visit."""
    messages = in_id_order(contract_columns(sharded, messages))
    if sharded.n_shards == 1:
        index = shard_index(sharded, 0)
        batch = index.read_messages(messages, on_bad=on_bad, whole_ids=True)
        rejects = index.rejects
        return Matched(_match_batch(sharded, 0, batch), rejects, batch.size, batch.size)
    routed = shard_router(sharded).route(messages, on_bad)
    parts = _match_routed(sharded, _with_tokens(messages, routed.tokens), routed)
    return Matched(parts, routed.rejects, messages.num_rows - len(routed.rejects), len(routed.rows))


def match_all_shards(sharded: ShardedIndex, messages: pa.Table, on_bad: OnBad = "skip") -> pa.Table:
    """The matches of all shards as one table."""
    parts = match_all_in_parts(sharded, messages, on_bad).parts
    return pa.concat_tables([sharded.matches_schema.empty_table(), *parts])


def _match_routed(sharded: ShardedIndex, messages: pa.Table, routed: Routed) -> Iterator[pa.Table]:
    for first in range(0, messages.num_rows, CHUNK):
        stop = min(first + CHUNK, messages.num_rows)
        a, b = np.searchsorted(routed.rows, (first, stop))
        if a == b:
            continue
        chunk = messages.slice(first, stop - first).combine_chunks()
        found = _match_visits(sharded, chunk, routed.rows[a:b] - first, routed.shards[a:b])
        yield _table(sharded, routed.ids[first:stop], found)


def _match_visits(sharded: ShardedIndex, chunk: pa.Table, rows: np.ndarray, shards: np.ndarray) -> Found:
    """The subscriptions of each message of a chunk, from all shards that it visits."""
    order, groups = _group_by_shard(shards)
    ids, counts, scores = [], [], []
    for shard, visitors in groups.items():
        index = shard_index(sharded, shard)
        found = index.match_batch(index.read_messages(chunk.take(pa.array(rows[visitors])), whole_ids=True))
        ids.append(found.ids)
        counts.append(np.diff(found.starts))
        scores.append(_scores(found))
    all_scores = np.concatenate(scores) if sharded.n_ranked else None
    runs = Found(np.concatenate(ids), starts_of(np.concatenate(counts)), all_scores)
    return _merge_runs(runs, rows[order], chunk.num_rows)


def _merge_runs(runs: Found, rows: np.ndarray, n_rows: int) -> Found:
    """One sorted list of distinct ids per message. Run k of `runs` belongs to message rows[k]."""
    order = np.argsort(rows, kind="stable")
    ids, starts = take(runs.ids, runs.starts, order)
    n_runs = np.bincount(rows, minlength=n_rows)
    message_starts = starts[starts_of(n_runs)]
    if runs.scores is None:
        n = _sort_ids(ids, message_starts, n_runs)
        return Found(ids[:n], message_starts)
    scores = take(runs.scores, runs.starts, order)[0]
    n = _sort_scored_ids(ids, scores, message_starts, n_runs)
    return Found(ids[:n], message_starts, scores[:n])


@kernel
def _sort_ids(ids, starts, n_runs):
    """Sort the ids of messages that have several runs and drop repeats; return how many ids are left."""
    n = first = 0
    for m in range(len(n_runs)):
        stop, begin = starts[m + 1], n
        if n_runs[m] > 1:
            sort_in_place(ids, first, stop)
        elif n == first:  # sorted and in place
            n = first = stop
        for k in range(first, stop):
            if n == begin or ids[n - 1] != ids[k]:
                ids[n] = ids[k]
                n += 1
        starts[m + 1] = n
        first = stop
    return n


@kernel
def _sort_scored_ids(ids, scores, starts, n_runs):
    """The same with scores. Equal ids of one message have equal scores."""
    n = first = 0
    for m in range(len(n_runs)):
        stop = starts[m + 1]
        own_ids, own_scores = ids[first:stop].copy(), scores[first:stop].copy()
        order = np.argsort(own_ids, kind="mergesort") if n_runs[m] > 1 else np.arange(stop - first)
        for k in range(len(order)):
            at = order[k]
            if n > starts[m] and ids[n - 1] == own_ids[at]:
                continue
            ids[n] = own_ids[at]
            scores[n] = own_scores[at]
            n += 1
        starts[m + 1] = n
        first = stop
    return n


def _group_by_shard(shards: np.ndarray) -> tuple[np.ndarray, dict[int, np.ndarray]]:
    """(positions ordered by shard, the positions of each shard)."""
    order = np.argsort(shards, kind="stable")
    visited, firsts = np.unique(shards[order], return_index=True)
    groups = np.split(order, firsts[1:])[: len(visited)]  # np.split of an empty array makes one part
    return order, dict(zip(visited.tolist(), groups, strict=True))


def _scores(found: Found) -> np.ndarray:
    return np.full(len(found.ids), np.nan) if found.scores is None else found.scores


def _table(sharded: ShardedIndex, message_ids: np.ndarray, found: Found) -> pa.Table:
    """A matches table. It has scores if any subscription of the index is ranked, even if these matches have none."""
    return matches_table(message_ids, found.ids, found.starts, _scores(found) if sharded.n_ranked else None)


def _with_tokens(messages: pa.Table, tokens: pa.Array | None) -> pa.Table:
    """The messages with these tokens instead of their text, which is then not analysed a second time."""
    if tokens is None:
        return messages
    kept = [name for name in messages.column_names if name not in ("text", "tokens")]
    return messages.select(kept).append_column("tokens", tokens)


# -- one shard


def route_table(sharded: ShardedIndex, messages: pa.Table) -> tuple[dict[int, pa.Table], pa.Table]:
    """(the messages of each shard, as `match_one_shard` takes them; the rejects)."""
    messages = contract_columns(sharded, messages)
    routed = shard_router(sharded).route(messages)
    visits = shard_lists(routed.rows, routed.shards, messages.num_rows)
    messages = _with_tokens(messages, routed.tokens).append_column(VISITS, visits)
    _, groups = _group_by_shard(routed.shards)
    return {shard: messages.take(pa.array(routed.rows[at])) for shard, at in groups.items()}, routed.rejects


def match_one_shard(sharded: ShardedIndex, shard: int, messages: pa.Table) -> pa.Table:
    """The pairs that this shard reports for messages of `route_table`; over all shards, each pair occurs once."""
    return pa.concat_tables([sharded.matches_schema.empty_table(), *match_one_in_parts(sharded, shard, messages)])


def match_one_in_parts(sharded: ShardedIndex, shard: int, messages: pa.Table) -> Iterator[pa.Table]:
    """The same chunk by chunk, sorted within a chunk and from one chunk to the next."""
    messages = in_id_order(messages)
    values, starts = list_parts(messages[VISITS])
    visits = Visits(starts, values.to_numpy(zero_copy_only=False).astype(np.int32))
    return _match_batch(sharded, shard, shard_index(sharded, shard).read_messages(messages, whole_ids=True), visits)


def _match_batch(
    sharded: ShardedIndex, shard: int, batch: MessageBatch, visits: Visits | None = None
) -> Iterator[pa.Table]:
    """The matches of one shard chunk by chunk; with `visits`, without the pairs that another shard reports."""
    index = shard_index(sharded, shard)
    for first in range(0, batch.size, CHUNK):
        part = batch.part(first, min(first + CHUNK, batch.size))
        found = index.match_batch(part)
        if visits is not None:
            here = Visits(visits.starts[first : first + part.size + 1], visits.shards)
            found = _reported(sharded, shard, here, found)
        yield _table(sharded, part.ids, found)


def _reported(sharded: ShardedIndex, shard: int, visits: Visits, found: Found) -> Found:
    """Without the pairs that another shard reports."""
    if visits.starts[0] == visits.starts[-1]:
        return found
    keep = np.empty(len(found.ids), np.bool_)
    mark_reported_pairs(shard, shard_replicas(sharded, shard), visits, found.starts, found.ids, keep)
    scores = None if found.scores is None else found.scores[keep]
    return Found(found.ids[keep], starts_of(keep)[found.starts], scores)

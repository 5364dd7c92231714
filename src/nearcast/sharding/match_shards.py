"""Matches a batch of messages against one shard or against all shards, and merges the results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.arrays.arrow import list_parts, one_array
from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import distinct, sort_in_place, starts_of, take
from nearcast.geo.space import BOX_COLUMNS
from nearcast.model import Found
from nearcast.sharding.normalise import ids_with_repeats
from nearcast.sharding.routing.replicas import Visits, mark_reported_pairs, shard_lists
from nearcast.sharding.routing.router import Routed
from nearcast.sharding.sharded_index import ShardedIndex, shard_index, shard_replicas, shard_router
from nearcast.tables import OnBad, matches_table
from nearcast.tables.columns import column, require_one
from nearcast.tables.faults import Faults
from nearcast.tables.ids import IdColumn, Names, id_column, id_type_in
from nearcast.tables.input_checks.known_columns import POINTS
from nearcast.tables.messages import Messages

VISITS = "_visits"
"""A column of routed messages: all shards that a message visits, or null where it visits one."""

CHUNK = 16_384  # messages matched at once: their matches must fit in memory
MESSAGE_COLUMNS = ("id", "text", "tokens", *POINTS, *BOX_COLUMNS, "time")


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
    ids = ids_with_repeats(messages, Faults(messages.num_rows, "skip")).numbers
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
        read = shard_index(sharded, 0).read_message_table(messages, on_bad=on_bad)
        n = read.batch.size
        return Matched(_match_messages(sharded, 0, read), read.rejects, n, n)
    routed = shard_router(sharded).route(messages, on_bad)
    parts = _match_routed(sharded, _with_tokens(messages, routed.tokens), routed)
    return Matched(parts, routed.rejects, messages.num_rows - len(routed.rejects), len(routed.rows))


def match_all_shards(sharded: ShardedIndex, messages: pa.Table, on_bad: OnBad = "skip") -> pa.Table:
    """The matches of all shards as one table."""
    return _joined(sharded, messages, match_all_in_parts(sharded, messages, on_bad).parts)


def _joined(sharded: ShardedIndex, messages: pa.Table, parts: Iterator[pa.Table]) -> pa.Table:
    message_type = id_type_in(messages).arrow
    return pa.concat_tables([sharded.matches_schema(message_type).empty_table(), *parts])


def _match_routed(sharded: ShardedIndex, messages: pa.Table, routed: Routed) -> Iterator[pa.Table]:
    for first in range(0, messages.num_rows, CHUNK):
        stop = min(first + CHUNK, messages.num_rows)
        a, b = np.searchsorted(routed.rows, (first, stop))
        if a == b:
            continue
        chunk = messages.slice(first, stop - first).combine_chunks()
        found, names = _match_visits(sharded, chunk, routed.rows[a:b] - first, routed.shards[a:b])
        yield _table(sharded, routed.ids.part(first, stop), found, names)


def _match_visits(sharded: ShardedIndex, chunk: pa.Table, rows: np.ndarray, shards: np.ndarray) -> tuple[Found, Names]:
    """(the subscriptions of each message of a chunk, from all shards that it visits; their names)."""
    order, groups = _group_by_shard(shards)
    parts, counts, scores = [], [], []
    for shard, visitors in groups.items():
        index = shard_index(sharded, shard)
        found = index.match_batch(index.read_messages(chunk.take(pa.array(rows[visitors]))))
        parts.append((found.ids, index.names))
        counts.append(np.diff(found.starts))
        scores.append(_scores(found))
    ids, names = _numbered_together(parts)
    all_scores = np.concatenate(scores) if sharded.n_ranked else None
    runs = Found(ids, starts_of(np.concatenate(counts)), all_scores)
    return _merge_runs(runs, rows[order], chunk.num_rows), names


def _numbered_together(parts: list[tuple[np.ndarray, Names]]) -> tuple[np.ndarray, Names]:
    """(the found ids of all parts, as numbers of one table of names; that table). Each shard numbers by itself."""
    if all(names.is_plain for _, names in parts):
        return np.concatenate([numbers for numbers, _ in parts]), Names()
    own = [distinct(numbers) for numbers, _ in parts]
    ids = [one_array(names.arrow(numbers)) for numbers, (_, names) in zip(own, parts, strict=True) if len(numbers)]
    together = Names()
    together_numbers = together.add(id_column(pa.chunked_array(ids))) if ids else np.empty(0, np.int64)
    of_part = np.split(together_numbers, np.cumsum([len(numbers) for numbers in own])[:-1])
    places = (np.searchsorted(mine, numbers) for mine, (numbers, _) in zip(own, parts, strict=True))
    return np.concatenate([new[at] for new, at in zip(of_part, places, strict=True)]), together


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


def _table(sharded: ShardedIndex, message_ids: IdColumn, found: Found, names: Names) -> pa.Table:
    """A matches table. It has scores if any subscription of the index is ranked, even if these matches have none."""
    schema = sharded.matches_schema(message_ids.type.arrow)
    if not len(found.ids):  # an empty shard does not know the type of its ids
        return schema.empty_table()
    scores = _scores(found) if sharded.n_ranked else None
    return matches_table(message_ids, found.ids, found.starts, scores, names).cast(schema)


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
    return _joined(sharded, messages, match_one_in_parts(sharded, shard, messages))


def match_one_in_parts(sharded: ShardedIndex, shard: int, messages: pa.Table) -> Iterator[pa.Table]:
    """The same chunk by chunk, sorted within a chunk and from one chunk to the next."""
    messages = in_id_order(messages)
    values, starts = list_parts(messages[VISITS])
    visits = Visits(starts, values.to_numpy(zero_copy_only=False).astype(np.int32))
    read = shard_index(sharded, shard).read_message_table(messages)
    return _match_messages(sharded, shard, read, visits)


def _match_messages(
    sharded: ShardedIndex, shard: int, read: Messages, visits: Visits | None = None
) -> Iterator[pa.Table]:
    """The matches of one shard chunk by chunk; with `visits`, without the pairs that another shard reports."""
    index, batch = shard_index(sharded, shard), read.batch
    for first in range(0, batch.size, CHUNK):
        part = batch.part(first, min(first + CHUNK, batch.size))
        found = index.match_batch(part)
        if visits is not None:
            here = Visits(visits.starts[first : first + part.size + 1], visits.shards)
            found = _reported(sharded, shard, here, found)
        yield _table(sharded, read.ids.part(first, first + part.size), found, index.names)


def _reported(sharded: ShardedIndex, shard: int, visits: Visits, found: Found) -> Found:
    """Without the pairs that another shard reports."""
    if visits.starts[0] == visits.starts[-1]:
        return found
    keep = np.empty(len(found.ids), np.bool_)
    mark_reported_pairs(shard, shard_replicas(sharded, shard), visits, found.starts, found.ids, keep)
    scores = None if found.scores is None else found.scores[keep]
    return Found(found.ids[keep], starts_of(keep)[found.starts], scores)

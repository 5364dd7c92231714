"""Matches batches of any columns, as tasks of Spark get them. No pyspark.

Columns are mapped by position, and any of them can be carried over to the matches.

Every row is a message of its own. Inside, a message is known by its row number, so its id may have any type of
ID_TYPES and may occur several times; each row with that id has matches of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.arrays.arrow import is_null_mask, one_array
from nearcast.engine.index import Index
from nearcast.errors import InvalidInput
from nearcast.model import MessageBatch
from nearcast.sharding.index_handle import IndexHandle
from nearcast.sharding.match_shards import CHUNK, match_all_in_parts, match_one_in_parts, route_table
from nearcast.tables import Dialect, OnBad
from nearcast.tables.ids import as_text
from nearcast.tables.matches import sorted_pairs
from nearcast.tables.messages import read_message_columns

FRAME_REJECTS = pa.schema([(name, pa.string()) for name in ("row", "column", "value", "reason")])
"""`row` is the mapped columns of a bad row as JSON."""
_NO_ID = "no id; give each row one"


class FrameColumns(NamedTuple):
    """What the columns of a batch mean. Positions count the columns that were sent to the task."""

    read: Mapping[str, int]  # the position of each column that matching reads, by its name in a messages table
    keep: tuple[tuple[str, int], ...] = ()  # (name in the matches, position)
    sources: Mapping[str, str] = {}  # the user's names of the columns in `read`, for rejects

    def messages(self, batch: pa.RecordBatch) -> pa.Table:
        """The batch as a messages table whose ids are row numbers."""
        columns = {name: batch.column(at) for name, at in self.read.items() if name != "id"}
        return pa.table({"id": np.arange(batch.num_rows), **columns})

    def ids(self, batch: pa.RecordBatch) -> pa.Array:
        ids = batch.column(self.read["id"])
        return ids.cast(pa.int64()) if pa.types.is_integer(ids.type) else ids

    def kept(self, batch: pa.RecordBatch) -> dict[str, pa.Array]:
        return {name: batch.column(at) for name, at in self.keep}


class FrameJob(NamedTuple):
    """What a task must know. Small: it travels to workers with each task."""

    handle: IndexHandle
    columns: FrameColumns
    on_bad: OnBad = "skip"
    counts: bool = False
    """Whether rows of counts follow the matches of each batch: see `count_rows`."""


# -- all shards in one process


def match_frames(job: FrameJob, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The matches of every batch: message, subscription, score if the index is scored, and the kept columns."""
    for batch in batches:
        yield from _match_batch(job, batch)


def _match_batch(job: FrameJob, given: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    batch, messages = _with_ids(job, given)
    n_good = 0
    if batch.num_rows:
        rejects, found = _find(job, messages)
        _check_rejects(job, batch, rejects)
        n_good = batch.num_rows - len(rejects)
        ids, kept = job.columns.ids(batch), job.columns.kept(batch)
        for rows, subscriptions, scores in found:
            if len(rows):
                yield _matches(job, ids, kept, rows, subscriptions, scores)
    if job.counts:
        yield count_rows(job, given, n_good)


class _Pairs(NamedTuple):
    """Pairs of messages, by row number, and subscriptions."""

    rows: np.ndarray
    subscriptions: pa.Array
    scores: np.ndarray | None


def _find(job: FrameJob, messages: pa.Table) -> tuple[pa.Table, Iterator[_Pairs]]:
    """(the rejects, the pairs in parts)."""
    if job.handle.n_shards > 1:
        assert job.handle.sharded is not None
        matched = match_all_in_parts(job.handle.sharded, messages)
        return matched.rejects, map(_pairs, matched.parts)
    index = job.handle.open()
    read = index.read_messages(messages, on_bad="skip")
    assert index.rejects is not None
    return index.rejects, _find_in_one(index, read)


def _find_in_one(index: Index, read: MessageBatch) -> Iterator[_Pairs]:
    for first in range(0, read.size, CHUNK):
        part = read.part(first, min(first + CHUNK, read.size))
        found = index.match_batch(part)
        pairs = sorted_pairs(part.ids, found, index.names)
        yield _Pairs(part.ids[pairs.messages()], index.names.arrow(pairs.subscriptions), pairs.scores)


def _pairs(part: pa.Table) -> _Pairs:
    """The pairs of a matches table whose messages are row numbers."""
    scores = part["score"].to_numpy(zero_copy_only=False) if "score" in part.column_names else None
    return _Pairs(part["message"].to_numpy(), part["subscription"], scores)


def _matches(
    job: FrameJob,
    ids: pa.Array,
    kept: Mapping[str, pa.Array],
    rows: np.ndarray,
    subscriptions: pa.Array,
    scores: np.ndarray | None,
) -> pa.RecordBatch:
    at = pa.array(rows)
    columns = {"message": ids.take(at), "subscription": as_text(one_array(subscriptions))}
    if job.handle.is_scored:
        columns["score"] = (
            pa.nulls(len(rows), pa.float64()) if scores is None else pa.array(scores, mask=np.isnan(scores))
        )
    columns |= {name: values.take(at) for name, values in kept.items()}
    return pa.record_batch(columns)


def count_rows(job: FrameJob, batch: pa.RecordBatch, n_good: int) -> pa.RecordBatch:
    """Two rows of the matches without a message: in place of the subscription they have the number of good messages of
    a batch, and that of its bad ones, below 0. Spark sums them up on the way and drops them.
    """
    counts = pa.array([n_good, n_good - batch.num_rows])
    if job.handle.has_names:
        counts = counts.cast(pa.string())
    columns = {"message": pa.nulls(2, job.columns.ids(batch.slice(0, 0)).type), "subscription": counts}
    if job.handle.is_scored:
        columns["score"] = pa.nulls(2, pa.float64())
    columns |= {name: pa.nulls(2, batch.column(at).type) for name, at in job.columns.keep}
    return pa.record_batch(columns)


# -- one shard after another, with a shuffle in between

_MESSAGE, _KEPT = "_message", "_kept_"


def route_frames(job: FrameJob, given: pa.RecordBatch) -> tuple[dict[int, pa.Table], int]:
    """(the messages of each shard with ids and kept columns, as `match_routed` takes them; how many are good)."""
    batch, messages = _with_ids(job, given)
    if not batch.num_rows:
        return {}, 0
    assert job.handle.sharded is not None
    routed, rejects = route_table(job.handle.sharded, messages)
    _check_rejects(job, batch, rejects)
    carried = {_MESSAGE: job.columns.ids(batch)} | {
        f"{_KEPT}{k}": batch.column(at) for k, (_, at) in enumerate(job.columns.keep)
    }
    by_shard = {shard: _with_columns(table, carried) for shard, table in routed.items()}
    return by_shard, batch.num_rows - len(rejects)


def _with_columns(table: pa.Table, carried: Mapping[str, pa.Array]) -> pa.Table:
    """Routed messages, whose ids are row numbers, with the carried columns of those rows."""
    rows = table["id"].combine_chunks()
    for name, values in carried.items():
        table = table.append_column(name, values.take(rows))
    return table


def match_routed(job: FrameJob, shard: int, table: pa.Table) -> Iterator[pa.RecordBatch]:
    """The matches that this shard reports; over all shards, each pair of a row and a subscription occurs once."""
    assert job.handle.sharded is not None
    ids = table[_MESSAGE].combine_chunks()
    kept = {name: table[f"{_KEPT}{k}"].combine_chunks() for k, (name, _) in enumerate(job.columns.keep)}
    messages = table.select([name for name in table.column_names if name != _MESSAGE and not name.startswith(_KEPT)])
    messages = messages.set_column(0, "id", pa.array(np.arange(table.num_rows)))  # several batches may be joined here
    for part in match_one_in_parts(job.handle.sharded, shard, messages):
        if part.num_rows:
            yield _matches(job, ids, kept, *_pairs(part))


# -- bad rows


def reject_frames(
    columns: FrameColumns, dialect: Dialect, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The rows that `match_frames` skips: FRAME_REJECTS and the kept columns."""
    for batch in batches:
        rows, found = _rejects_of(columns, dialect, batch)
        at = pa.array(rows, pa.int64())
        kept = {name: batch.column(position).take(at) for name, position in columns.keep}
        if rows:
            yield pa.record_batch({name: found.column(name) for name in FRAME_REJECTS.names} | kept)


def _rejects_of(columns: FrameColumns, dialect: Dialect, batch: pa.RecordBatch) -> tuple[list[int], pa.RecordBatch]:
    """(row numbers ascending, FRAME_REJECTS)."""
    no_id = is_null_mask(batch.column(columns.read["id"]))
    reasons = {int(row): ("id", _NO_ID) for row in np.flatnonzero(no_id)}
    rejects = read_message_columns(columns.messages(batch), dialect._replace(on_bad="skip")).rejects
    for reject in rejects.to_pylist():
        reasons.setdefault(reject["row"] - 1, (reject["column"], reject["reason"]))
    rows = sorted(reasons)
    records = []
    for row in rows:
        column, reason = reasons[row]
        values = {columns.sources.get(name, name): batch.column(at)[row].as_py() for name, at in columns.read.items()}
        name = columns.sources.get(column, column)
        value = values.get(name)
        text = json.dumps(values, default=str, ensure_ascii=False)
        records.append({"row": text, "column": name, "value": None if value is None else str(value), "reason": reason})
    return rows, pa.RecordBatch.from_pylist(records, FRAME_REJECTS)


def _with_ids(job: FrameJob, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Table]:
    """(the rows that have an id, the same as a messages table)."""
    no_id = is_null_mask(batch.column(job.columns.read["id"]))
    if no_id.any():
        if job.on_bad == "raise":
            raise InvalidInput(_NO_ID, column=job.columns.sources.get("id", "id"))
        batch = batch.filter(pa.array(~no_id))
    return batch, job.columns.messages(batch)


def _check_rejects(job: FrameJob, batch: pa.RecordBatch, rejects: pa.Table) -> None:
    """Raise the first reject with the id of its message, if on_bad says so."""
    if job.on_bad == "raise" and len(rejects):
        first: dict[str, Any] = rejects.slice(0, 1).to_pylist()[0]
        column = job.columns.sources.get(first["column"], first["column"])
        message = job.columns.ids(batch)[first["row"] - 1].as_py()
        raise InvalidInput(f"message {message!r}: {first['reason']}", column=column)

"""A table read in tasks, without rows whose id an earlier row has.

No task sees the rows of another, and two subscriptions with one id may go to different shards, where no index would
notice. So all ids are compared before anything is read: the first row of an id is kept, as in a single index, and the
other rows are listed in one file for each task that has some. A table that `pipeline ingest` wrote has no duplicates
and is not searched for them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa

from nearcast.errors import InvalidInput
from nearcast.ingest.row_groups import Source, in_tasks, pieces_of, read_pieces
from nearcast.sharding.normalise import ids_with_repeats
from nearcast.sharding.payloads import ArrowPayload, join_tables
from nearcast.sharding.routing.areas import hash_tokens
from nearcast.spark.batch.ingest import read_counts
from nearcast.spark.runtime.session import SparkSession
from nearcast.spark.runtime.tasks import run_on_shards, send_payloads
from nearcast.storage.location import Location, locate
from nearcast.tables.faults import Faults
from nearcast.tables.ids import IdColumn, id_column

MOST_IDS_HERE = 10_000_000
"""Ids that the driver compares itself, in 0.4 GB. Beyond it a Spark job does, with this many ids in a task."""

_ROWS_PER_TASK = 1 << 17


def open_source(
    session: SparkSession,
    table: str,
    duplicates: str | os.PathLike[str] | Location,
    rows_per_task: int | None = None,
    columns: tuple[str, ...] | None = None,
) -> Source:
    """Divide the table into tasks and find its duplicate ids; `duplicates` is a new folder."""
    most = rows_per_task or _ROWS_PER_TASK
    place = locate(duplicates)
    source = Source(in_tasks(pieces_of(table, most), most), place.url, columns)
    if place.is_local:
        os.makedirs(place.path)
    counts = read_counts(table)
    if counts is not None and counts.get("accepted") == source.n_rows:
        return source  # as ingest wrote it: its ids are distinct
    if source.n_rows > MOST_IDS_HERE:
        _find_on_spark(session, source)
    elif _has_repeats(table):
        read = [_ids_of_task(source, task) for task in range(len(source.tasks))]
        _list_duplicates(source, 0, pa.concat_tables(read))
    return source


def _has_repeats(table: str) -> bool:
    """0.2 s for 5 million unordered ids: a tenth of the time that it takes to find their rows."""
    read = [_keys_of(_ids_and_rows(read_pieces([piece], ("id",)))[0]) for piece in pieces_of(table, 1 << 40)]
    ids = np.concatenate([np.empty(0, np.int64), *read])
    if (ids[1:] > ids[:-1]).all():
        return False
    ids.sort()
    return bool((ids[1:] == ids[:-1]).any())


def _ids_of_task(source: Source, task: int) -> pa.Table:
    """(id, task, row) of each row of a task that has an id."""
    ids, rows = _ids_and_rows(read_pieces(source.tasks[task], ("id",)))
    return pa.table({"id": ids.arrow(np.arange(len(rows))), "task": np.full(len(rows), task), "row": rows})


def _ids_and_rows(table: pa.Table) -> tuple[IdColumn, np.ndarray]:
    """(ids, rows) of the rows that have an id."""
    faults = Faults(table.num_rows, "skip")
    try:
        ids = ids_with_repeats(table, faults)
    except InvalidInput:  # there is no such column: the reader of the rows has a better error text
        return id_column([]), np.empty(0, np.int64)
    rows = faults.good_rows
    return ids.take(rows), rows


def _keys_of(ids: IdColumn) -> np.ndarray:
    """int64[n]: equal for equal ids in all parts of a table, and hardly ever for others."""
    if ids.values is None:
        return ids.numbers
    hashes = np.empty(len(ids.numbers), np.int64)
    hash_tokens(*ids.buffers(), hashes)
    return hashes


def _list_duplicates(source: Source, part: int, found: pa.Table) -> None:
    """Write which of these rows are not the first of their id. `found` holds all rows of each id in it."""
    ids = ids_with_repeats(found, Faults(found.num_rows, "raise")).numbers
    tasks, rows = found["task"].to_numpy(), found["row"].to_numpy()
    order = np.lexsort((rows, tasks, ids))
    duplicates = order[1:][ids[order[1:]] == ids[order[:-1]]]
    for task in np.unique(tasks[duplicates]).tolist():
        listed = np.sort(rows[duplicates[tasks[duplicates] == task]])
        locate(source.duplicates).child(f"{task:08d}.{part:06d}").write(listed.astype(np.int64).tobytes())


def _find_on_spark(session: SparkSession, source: Source) -> None:
    n_parts = -(-source.n_rows // MOST_IDS_HERE)
    sent = send_payloads(session, len(source.tasks), partial(_send_ids, source, n_parts), n_parts)
    run_on_shards(sent, partial(_compare_ids, source))


def _send_ids(source: Source, n_parts: int, task: int) -> Iterator[ArrowPayload]:
    table = _ids_of_task(source, task)
    parts = _keys_of(ids_with_repeats(table, Faults(table.num_rows, "raise"))) % n_parts
    for k in np.unique(parts).tolist():
        yield ArrowPayload(k, k, table.filter(pa.array(parts == k)))


def _compare_ids(source: Source, part: int, payloads: list[ArrowPayload]) -> tuple[()]:
    """The files are named after the part and written atomically: a task that runs again leaves the same files."""
    _list_duplicates(source, part, join_tables(payloads))
    return ()  # nothing to report

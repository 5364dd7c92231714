"""A table read in tasks, without rows whose id an earlier row has.

No task sees the rows of another, and two subscriptions of one id may go to different shards, where no index would
notice. So all ids are compared before: the first row of an id stands, as in the library, and which others there are is
left in a file for each task that has some. A table as `pipeline ingest` left it has no such rows, and is not looked at.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.arrays.bundle import write_whole
from nearcast.errors import InvalidInput
from nearcast.ingest.row_groups import Piece, in_tasks, pieces_of, read_pieces
from nearcast.sharding.normalise import ids_with_repeats
from nearcast.spark.batch.arrow_payload import PAYLOAD_SQL, ArrowPayload, pack_payloads, unpack_payloads
from nearcast.spark.batch.ingest import read_counts
from nearcast.spark.batch.ingest_duplicate_ids import duplicate_id_reason
from nearcast.tables.faults import Faults

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_IDS_HERE = 10_000_000
"""Ids that the driver compares itself, in 0.4 GB; past it, a Spark job does, so many in a task."""

_ROWS_PER_TASK = 1 << 17


class Part(NamedTuple):
    """What one task reads."""

    table: pa.Table
    rows: np.ndarray  # int64[n]  which rows of the whole table these are
    rejects: pa.Table  # its other rows


class Source(NamedTuple):
    """A table and how it is divided. Small: it travels to workers with each task."""

    tasks: list[list[Piece]]
    late: str  # the folder of the files
    columns: tuple[str, ...] | None = None  # None: all

    @property
    def n_rows(self) -> int:
        return sum(_n_rows(task) for task in self.tasks)

    def read(self, task: int) -> Part:
        """The task's rows but late ones, and these as rejects in the library's own words."""
        table = read_pieces(self.tasks[task], self.columns)
        faults = Faults(table.num_rows, "skip")
        late = self._late_rows(task)
        if len(late):
            ids = ids_with_repeats(table, Faults(table.num_rows, "skip"))
            for row in late.tolist():
                faults.add(row, "id", duplicate_id_reason(ids[row]))
        first = sum(_n_rows(before) for before in self.tasks[:task])
        good = faults.good_rows
        rejects = numbered(faults.settle(table), np.arange(table.num_rows) + first)
        return Part(table.take(pa.array(good)) if len(late) else table, good + first, rejects)

    def _late_rows(self, task: int) -> np.ndarray:
        files = sorted(Path(self.late).glob(f"{task:08d}.*.npy"))
        return np.concatenate([np.empty(0, np.int64), *(np.load(file) for file in files)])


def numbered(rejects: pa.Table, rows: np.ndarray) -> pa.Table:
    """The same rejects, by their rows in the whole table."""
    return rejects.set_column(0, "row", pa.array(rows[rejects["row"].to_numpy()], pa.int64()))


def open_source(
    session: SparkSession,
    table: str,
    late: Path,
    rows_per_task: int | None = None,
    columns: tuple[str, ...] | None = None,
) -> Source:
    """The table in tasks, with its late rows found; `late` is a new folder."""
    most = rows_per_task or _ROWS_PER_TASK
    source = Source(in_tasks(pieces_of(table, most), most), str(late), columns)
    late.mkdir(parents=True)
    if _is_ingested(table, source.n_rows):
        return source
    if source.n_rows > MOST_IDS_HERE:
        _find_on_spark(session, source)
    elif _has_repeats(table):
        read = [_ids(source, task) for task in range(len(source.tasks))]
        _note_late(source, 0, pa.concat_tables(read))
    return source


def _is_ingested(table: str, n_rows: int) -> bool:
    """Whether ingest wrote this table, and no rows were added or taken away since: then its ids differ."""
    counts = read_counts(table)
    return counts is not None and counts.get("accepted") == n_rows


def _has_repeats(table: str) -> bool:
    """0.2 s for 5 million ids in no order, a tenth of what it takes to find out which rows they are in."""
    read = [_ids_and_rows(read_pieces([piece], ("id",)))[0] for piece in pieces_of(table, 1 << 40)]
    ids = np.concatenate([np.empty(0, np.int64), *read])
    if (ids[1:] > ids[:-1]).all():
        return False
    ids.sort()
    return bool((ids[1:] == ids[:-1]).any())


def _n_rows(task: list[Piece]) -> int:
    return sum(piece.n_rows for piece in task)


_IDS = pa.schema([("id", pa.int64()), ("task", pa.int64()), ("row", pa.int64())])


def _ids(source: Source, task: int) -> pa.Table:
    """The ids of a task's rows that have one, and where they are."""
    ids, rows = _ids_and_rows(read_pieces(source.tasks[task], ("id",)))
    return pa.table([ids, np.full(len(rows), task), rows], schema=_IDS)


def _ids_and_rows(table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """(ids, rows) of the rows that have one."""
    faults = Faults(table.num_rows, "skip")
    try:
        ids = ids_with_repeats(table, faults)
    except InvalidInput:  # there is no such column: the reader of the rows says it better
        return np.empty(0, np.int64), np.empty(0, np.int64)
    rows = faults.good_rows
    return ids[rows], rows


def _note_late(source: Source, part: int, found: pa.Table) -> None:
    """Write down which of these rows are not the first of their id; all rows of an id are among them."""
    ids, tasks, rows = (found[name].to_numpy() for name in _IDS.names)
    order = np.lexsort((rows, tasks, ids))
    late = order[1:][ids[order[1:]] == ids[order[:-1]]]
    for task in np.unique(tasks[late]).tolist():
        file = io.BytesIO()
        np.save(file, np.sort(rows[late[tasks[late] == task]]))
        write_whole(Path(source.late) / f"{task:08d}.{part:06d}.npy", file.getvalue())


def _find_on_spark(session: SparkSession, source: Source) -> None:
    n_parts = -(-source.n_rows // MOST_IDS_HERE)
    tasks = session.range(0, len(source.tasks), 1, len(source.tasks))
    sent = tasks.mapInArrow(partial(_send_ids, source, n_parts), PAYLOAD_SQL)
    together = sent.repartitionById(n_parts, sent["partition"])
    together.mapInArrow(partial(_compare, source), "done int").collect()


def _send_ids(source: Source, n_parts: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for task in batch.column("id").to_pylist():
            table = _ids(source, task)
            parts = table["id"].to_numpy() % n_parts
            yield from pack_payloads(
                ArrowPayload(k, k, table.filter(pa.array(parts == k))) for k in np.unique(parts).tolist()
            )


def _compare(source: Source, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Files bear the part's number and are whole: a task that is run again leaves the same."""
    of_part: dict[int, list[pa.Table]] = {}
    for payload in unpack_payloads(batches):
        of_part.setdefault(payload.shard, []).append(payload.table)
    for part, tables in of_part.items():
        _note_late(source, part, pa.concat_tables(tables))
        yield pa.record_batch({"done": pa.array([1], pa.int32())})

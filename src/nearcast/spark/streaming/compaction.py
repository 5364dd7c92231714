"""A new base out of a base and its delta, while the stream goes on.

The result is written down: *version* is *base* with all changes up to delta *number*. A later plan takes it up and
keeps of its delta only what came after.
"""

from __future__ import annotations

import functools
import json
import shutil
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.arrays.bundle import write_whole
from nearcast.errors import NearcastError
from nearcast.sharding.live.checkpoint import StreamCheckpoint
from nearcast.sharding.live.delta import Delta, is_among
from nearcast.sharding.normalise import SUBSCRIPTIONS_SCHEMA, normalise_subscriptions, served_dialect
from nearcast.sharding.sharded_index import ShardedIndex, index_weights
from nearcast.spark.batch.duplicate_ids import Source, open_source
from nearcast.spark.runtime.failures import failure_reason, is_spark_error
from nearcast.spark.streaming.task import dialect_of
from nearcast.tables import Dialect, read_subscriptions
from nearcast.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_TABLE = "_table"  # in a version that compaction made: the path of the table that it was built from


class Compacted(NamedTuple):
    base: str
    number: int
    version: str


class Compactor:
    """Runs one compaction at a time, in a thread: Spark schedules its jobs among those of the batches."""

    def __init__(
        self, session: SparkSession, book: StreamCheckpoint, table: str | None, share: float, bounds: tuple[int, int]
    ) -> None:
        self._session = session
        self._book = book
        self._table = table
        self._share = share
        self._bounds = bounds
        self._thread = ThreadPoolExecutor(1, "nearcast-compaction")
        self._running: Future[None] | None = None
        self.failure: str | None = None
        """Why the last one failed, in a line: the stream goes on with its delta."""

    def consider(self, base: ShardedIndex, delta: Delta, name: str) -> None:
        """Begin if the delta has grown past its share of the base and none is under way."""
        least, most = self._bounds
        wanted = min(max(least, self._share * int(base.manifest["subscriptions"])), most)
        if len(delta.touched) <= wanted or (self._running is not None and not self._running.done()):
            return
        if self.failure is not None or self.finished(Path(base.path).name) is not None:
            return  # what failed once would fail with each batch; what is done waits for the next one
        self._book.held.add(name)
        self._running = self._thread.submit(self._compact, base, delta.number, name)

    def finished(self, base: str) -> Compacted | None:
        """A compaction of this base that is done, also by a run before this one."""
        file = self._book.root / "compacted.json"
        last = Compacted(**json.loads(file.read_bytes())) if file.exists() else None
        return last if last is not None and last.base == base else None

    def close(self) -> None:
        """Wait for what is under way."""
        self._thread.shutdown(wait=True)

    def _compact(self, base: ShardedIndex, number: int, name: str) -> None:
        try:
            merged = self._book.root / "subscriptions" / uuid.uuid4().hex[:12]
            tables = (self._table_of(base), self._book.deltas / name, merged)
            made = compact(self._session, base, tables, self._book.index)
            write_whole(Path(made.path) / _TABLE, str(merged).encode())
            done = Compacted(Path(base.path).name, number, Path(made.path).name)
            write_whole(self._book.root / "compacted.json", json.dumps(done._asdict()).encode())
            _remove_others(merged)
        except Exception as error:  # whatever it is, matching goes on without
            self.failure = failure_reason(error) if is_spark_error(error) else str(error)
        finally:
            self._book.held.discard(name)

    def _table_of(self, base: ShardedIndex) -> str:
        """What the base was built from: the stream's own if a compaction made it."""
        own = Path(base.path) / _TABLE
        table = own.read_text() if own.exists() else self._table or base.manifest.get("table")
        if table is None or not Path(table).exists():
            raise NearcastError(f"the table that the index was built from is not there: {table}")
        rows = self._session.read.parquet(str(table)).count()
        wanted = sum(int(base.manifest[name]) for name in ("subscriptions", "never", "rejected"))
        if rows != wanted:
            raise NearcastError(f"{table} has {rows} rows, but the index was built from {wanted}")
        return str(table)


def _remove_others(folder: Path) -> None:
    """Once the new version is written down, only its own table can be asked for again."""
    for other in folder.parent.iterdir():
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)


def compact(session: SparkSession, base: ShardedIndex, tables: tuple[str, Path, Path], index: Path) -> ShardedIndex:
    """Build a new version at `index` from the base's table and the delta, the first two of `tables`; the third is
    where they are merged.
    """
    from nearcast.spark.batch.build import build_sharded

    subscriptions, delta, merged = tables
    dialect = dialect_of(base)
    write_merged(session, subscriptions, delta, merged, dialect)
    return build_sharded(
        session,
        str(merged),
        str(index),
        shards=base.n_shards,
        method=base.manifest["method"],
        space=dialect.space.bounds if dialect.space.planar else None,
        analyser=dialect.analyser,
        weights=index_weights(base),  # what came since must not change the scores of what was there
    )


def write_merged(session: SparkSession, subscriptions: str, delta: Path, folder: Path, dialect: Dialect) -> None:
    """The base's subscriptions without those touched, and the inserted ones, as one Parquet folder."""
    late = folder.with_name(f"{folder.name}.late")
    source = open_source(session, subscriptions, late)
    kept = functools.partial(untouched, source, str(delta / "touched.parquet"), dialect)
    inserted = session.read.parquet(str(delta / "subscriptions.parquet"))
    n_tasks = len(source.tasks)
    base = session.range(0, n_tasks, 1, max(1, n_tasks)).mapInArrow(kept, inserted.schema)
    base.unionByName(inserted).write.parquet(str(folder))
    shutil.rmtree(late)


def untouched(
    source: Source, touched_path: str, dialect: Dialect, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """For mapInArrow over numbers of tasks: rows of a subscriptions table that no change has touched."""
    touched = pq.read_table(touched_path, partitioning=None)["id"].to_numpy()
    for task in (task for batch in batches for task in batch.column("id").to_pylist()):
        table = source.read(task).table
        read = read_subscriptions(table, Vocabulary(), served_dialect(dialect))
        stays = np.ones(table.num_rows, bool)
        stays[read.rejects["row"].to_numpy()] = False  # they are not in the base either
        good = table.filter(pa.array(stays))
        is_kept = ~is_among(read.ids, touched)
        kept = normalise_subscriptions(good.filter(pa.array(is_kept)), read.ids[is_kept], dialect)
        yield from kept.cast(SUBSCRIPTIONS_SCHEMA).combine_chunks().to_batches()

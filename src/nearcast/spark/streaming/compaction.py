"""Compaction: builds a new base from a base and its delta while the stream goes on.

The result is recorded: `version` is `base` with all changes up to delta `number`. A later micro-batch uses the new
version, and keeps only the part of its delta that came after.
"""

from __future__ import annotations

import functools
import json
import shutil
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.arrays.arrow import one_array
from nearcast.arrays.bundle import write_whole
from nearcast.errors import NearcastError
from nearcast.ingest.row_groups import Source, n_rows_of
from nearcast.ingest.stream_batch import dialect_of
from nearcast.sharding.live.checkpoint import StreamCheckpoint
from nearcast.sharding.live.delta import Delta, is_among
from nearcast.sharding.live.input_chooser import Compacted
from nearcast.sharding.normalise import ids_with_repeats, normalise_subscriptions, served_dialect
from nearcast.sharding.sharded_index import ShardedIndex, index_weights
from nearcast.spark.batch.build import OWN_TABLE, build_sharded
from nearcast.spark.batch.duplicate_ids import open_source
from nearcast.spark.runtime.failures import failure_reason, is_spark_error
from nearcast.spark.runtime.session import SparkSession
from nearcast.spark.runtime.tasks import task_numbers
from nearcast.storage.location import locate
from nearcast.tables import Dialect, read_subscriptions
from nearcast.tables.faults import Faults, rejected_positions
from nearcast.tables.ids import STRING
from nearcast.text.vocabulary import Vocabulary

_TABLE = "_table"  # a file in versions that compaction made: the path of the table that it was built from


@dataclass
class Compactor:
    """Runs one compaction at a time, in a thread: Spark schedules its jobs beside those of the micro-batches."""

    session: SparkSession
    checkpoint: StreamCheckpoint
    table: str | None  # that the index was built from, if its manifest does not name it
    share: float  # of the base, and least and most changed subscriptions: see StreamOptions
    bounds: tuple[int, int]
    failure: str | None = None  # why the last compaction failed, in one line; the stream goes on with its delta
    _thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "nearcast-compaction"))
    _running: Future[None] | None = None

    def consider(self, base: ShardedIndex, delta: Delta, name: str) -> None:
        """Begin a compaction if the delta has outgrown its share of the base and no compaction is running."""
        least, most = self.bounds
        wanted = min(max(least, self.share * int(base.manifest["subscriptions"])), most)
        if len(delta.touched) <= wanted or (self._running is not None and not self._running.done()):
            return
        if self.failure is not None or self.finished(Path(base.path).name) is not None:
            return  # a failed compaction would fail again; a finished one is used by the next batch
        self.checkpoint.deltas_in_use.add(name)
        self._running = self._thread.submit(self._compact, base, delta.number, name)

    def finished(self, base: str) -> Compacted | None:
        """The finished compaction of this base, by this run or an earlier one, or None."""
        file = self.checkpoint.root / "compacted.json"
        last = Compacted(**json.loads(file.read_bytes())) if file.exists() else None
        return last if last is not None and last.base == base else None

    def close(self) -> None:
        """Wait for the running compaction."""
        self._thread.shutdown(wait=True)

    def _compact(self, base: ShardedIndex, number: int, name: str) -> None:
        try:
            merged = self.checkpoint.root / "subscriptions" / uuid.uuid4().hex[:12]
            made = self._build(base, self.checkpoint.deltas / name, merged)
            write_whole(Path(made.path) / _TABLE, str(merged).encode(), is_private=False)
            done = Compacted(Path(base.path).name, number, Path(made.path).name)
            write_whole(self.checkpoint.root / "compacted.json", json.dumps(done._asdict()).encode())
            for other in merged.parent.iterdir():  # tables of older versions, which no later compaction reads
                if other != merged:
                    shutil.rmtree(other, ignore_errors=True)
        except Exception as error:  # matching goes on without a compaction
            self.failure = failure_reason(error) if is_spark_error(error) else str(error)
        finally:
            self.checkpoint.deltas_in_use.discard(name)

    def _build(self, base: ShardedIndex, delta: Path, merged: Path) -> ShardedIndex:
        """A new version in the checkpoint from the base and its delta, whose subscriptions are written to `merged`."""
        dialect = dialect_of(base)
        write_merged(self.session, self._table_of(base), delta, merged, dialect)
        return build_sharded(
            self.session,
            str(merged),
            str(self.checkpoint.index),
            shards=base.n_shards,
            method=base.manifest["method"],
            space=dialect.space.bounds if dialect.space.planar else None,
            analyser=dialect.analyser,
            weights=index_weights(base),  # later subscriptions must not change the scores of earlier ones
            keep_hours=None,  # the checkpoint removes the versions that no record names
        )

    def _table_of(self, base: ShardedIndex) -> str:
        """The table that the base was built from; the checkpoint's own table if a compaction built it."""
        own = Path(base.path) / _TABLE
        table = own.read_text() if own.exists() else self.table or base.manifest.get("table")
        if table == OWN_TABLE:
            table = base.part_path(OWN_TABLE)
        if table is None or not (locate(table).is_file() or locate(table).is_folder()):
            raise NearcastError(f"the table that the index was built from does not exist: {table}")
        rows = n_rows_of(str(table))
        wanted = sum(int(base.manifest[name]) for name in ("subscriptions", "never", "rejected"))
        if rows != wanted:
            raise NearcastError(f"{table} has {rows} rows, but the index was built from {wanted}")
        return str(table)


def write_merged(session: SparkSession, subscriptions: str, delta: Path, folder: Path, dialect: Dialect) -> None:
    """Write the untouched subscriptions of the base and the inserted ones as one Parquet folder."""
    duplicates = folder.with_name(f"{folder.name}.duplicates")
    source = open_source(session, subscriptions, duplicates)
    kept = functools.partial(untouched, source, str(delta / "touched.parquet"), dialect)
    inserted = session.read.parquet(str(delta / "subscriptions.parquet"))
    inserted = inserted.withColumn("id", inserted["id"].cast("string" if dialect.id_type is STRING else "long"))
    n_tasks = len(source.tasks)
    base = session.range(0, n_tasks, 1, max(1, n_tasks)).mapInArrow(kept, inserted.schema)
    base.unionByName(inserted).write.parquet(str(folder))
    shutil.rmtree(duplicates)


def untouched(
    source: Source, touched_path: str, dialect: Dialect, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The task of mapInArrow: rows of a subscriptions table that no change has touched."""
    touched = one_array(pq.read_table(touched_path, partitioning=None)["id"])
    for task in task_numbers(batches):
        table = source.read(task).table
        read = read_subscriptions(table, Vocabulary(), served_dialect(dialect))
        good = np.delete(np.arange(table.num_rows), rejected_positions(read.rejects))  # the base has no rejects either
        ids = ids_with_repeats(table, Faults(table.num_rows, "skip"), dialect.id_type).arrow(good)
        is_kept = pa.array(~is_among(ids, touched))
        kept = normalise_subscriptions(table.take(pa.array(good).filter(is_kept)), ids.filter(is_kept), dialect)
        yield from kept.combine_chunks().to_batches()

"""Matching as a stream: messages arrive in micro-batches, and matches are written exactly once.

Spark's Structured Streaming decides which messages a micro-batch holds and records them in the checkpoint. What they
are matched against is recorded before the matching (sharding/live/checkpoint.py), and the matches appear in one step
under the number of the batch (sharding/live/stream_output.py). If anything is killed in between, the next run repeats
the unfinished batch with the same inputs, or finds its matches in place.

Index, output and checkpoint must be on file systems that driver and workers see under the same paths.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nearcast.errors import InvalidInput
from nearcast.ingest.stream_batch import deliver_files, deliver_rows, deliver_values, dialect_of
from nearcast.sharding.index_handle import IndexHandle
from nearcast.sharding.live.change_folder import ChangeFolder, count_other_files
from nearcast.sharding.live.checkpoint import StreamCheckpoint
from nearcast.sharding.live.input_chooser import InputChooser
from nearcast.sharding.live.ownership import FolderLock, claim, mounted_folder
from nearcast.sharding.live.stream_output import StreamOutput
from nearcast.sharding.match_shards import MESSAGE_COLUMNS
from nearcast.spark.runtime.failures import is_slow_start, plain_failures, retry_slow_start
from nearcast.spark.runtime.session import DataFrame, SparkSession
from nearcast.spark.streaming.batches import Batches, BatchInput, OnBatch, Sink, join_changes
from nearcast.spark.streaming.broker import open_sink, open_source
from nearcast.spark.streaming.compaction import Compactor
from nearcast.tables.ids import INT64, STRING, IdType

_POLL_SECONDS = 0.2
_STARTS = 3  # of a query whose Python worker was too slow to start
_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
Paths = str | os.PathLike[str]


@dataclass(frozen=True)
class StreamOptions:
    """The options of `run_stream` beside its paths, and of `stream` but for the source."""

    once: bool = False  # stop when all present messages are matched
    source: str = "files"  # or "redis", "kafka"
    source_options: Mapping[str, str] = field(default_factory=dict)
    sink: str | Sink | None = None  # in addition to the files: "redis", "kafka", or a function
    sink_options: Mapping[str, str] = field(default_factory=dict)
    max_files: int = 256  # per micro-batch
    every: float = 0.0  # least seconds between micro-batches
    fail_on_data_loss: bool = True  # stop where a broker no longer has entries; if not, they are rejected by number
    most_attempts: int = 3  # a file that kills so many workers is set aside
    subscriptions: str | None = None  # the table that the index was built from, if the manifest does not name it
    compact_share: float = 0.1  # of the base: with more changes, a new base is built
    compact_least: int = 10_000  # changed subscriptions: with fewer, no new base is built
    compact_most: int = 100_000  # with more, one always is: each worker builds an index of them after each change
    on_batch: OnBatch | None = None  # called with the manifest of each batch
    until: threading.Event | None = None  # when set, the stream stops after the current batch


def run_stream(
    session: SparkSession,
    index: str,
    messages: str,
    out: str,
    checkpoint: str,
    *,
    changes: str | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Match messages as they arrive until interrupted or, with once=True, only the present ones.

    `messages` is a folder of Parquet, CSV or JSON Lines files, each moved there complete, or the name of a broker's
    stream. `changes` is a folder of change files (see sharding/live/changes.py). `options` are the fields of
    StreamOptions. A sink gets each batch's matches after they are in `out`, as (DataFrame, batch number); after a
    crash it may get a batch again, with the same rows. Returns the counts batches, messages, pairs, rejected, changes,
    changes_rejected, change_files_waiting, files_ignored and files_overwritten, and the seconds.
    """
    given = _checked(options)
    started = time.perf_counter()
    has_files = given.source == "files"
    more = (
        {"maxFilesPerTrigger": str(given.max_files)}
        if has_files
        else {"failOnDataLoss": str(given.fail_on_data_loss).lower()}
    )
    options_of_source = {**more, **given.source_options}
    with plain_failures():
        how = BatchInput(deliver_files if has_files else deliver_values, has_files)
        messages = str(mounted_folder(messages, "folder of messages")) if has_files else messages
        source = retry_slow_start(lambda: open_source(session, given.source, messages, options_of_source))
        query = StreamQuery(source, how, _Places(index, out, checkpoint, changes), given)
        query.run()
    files = query.count_files(Path(messages)) if has_files else {}
    return {**query.counts, **files, "seconds": time.perf_counter() - started}


def stream(
    messages: DataFrame,
    index: IndexHandle | Paths,
    *,
    out: Paths,
    changes: DataFrame | Paths | None = None,
    checkpoint: Paths | None = None,
    columns: Mapping[str, str] | None = None,
    **options: Any,
) -> StreamQuery:
    """Start to match a streaming DataFrame while subscriptions change, and write each match exactly once.

    `messages` has the columns of a messages table; `columns` names yours, as in {"text": "body", "x": "lon"}.
    `changes` is a streaming DataFrame with the columns `op` ("insert" or "remove"), `id` and those of a subscription,
    or a folder of such files. The changes of a micro-batch take effect before its messages are matched, in the order of
    a column `order`, or of the rows. `out` receives a folder for each micro-batch with matches, rejects and a
    manifest. `checkpoint` is OUT-checkpoint by default. `options` are the other fields of StreamOptions.
    """
    given = _checked(options)
    folder = os.fspath(changes) if isinstance(changes, str | os.PathLike) else None
    frame = None if isinstance(changes, str | os.PathLike) else changes
    _check_frames(messages, frame)
    messages = _named(messages, columns or {})
    out = os.fspath(out).rstrip("/")
    places = _Places(_index_path(index), out, os.fspath(checkpoint or f"{out}-checkpoint"), folder)
    with plain_failures():
        source = messages if frame is None else join_changes(messages, frame)
        how = BatchInput(deliver_rows, message_ids=_id_type_of(messages), has_changes=frame is not None)
        query = StreamQuery(source, how, places, given)
        query.start()
    return query


@dataclass(frozen=True)
class _Places:
    index: str
    out: str
    checkpoint: str
    changes: str | None


class StreamQuery:
    """A running stream. `query` is Spark's StreamingQuery, `counts` what was done since the start."""

    def __init__(self, source: DataFrame, how: BatchInput, places: _Places, given: StreamOptions) -> None:
        self._source, self._given = source, given
        self.query: Any = None
        root = mounted_folder(places.checkpoint, "checkpoint")
        self._lock = FolderLock(root, "checkpoint")
        try:
            stream_id = claim(root / "stream.json", None, "is not empty and no checkpoint of a stream")
            saved = self._checkpoint = StreamCheckpoint(root)
            self._output = StreamOutput(mounted_folder(places.out, "output"), stream_id)
        except BaseException:
            self._lock.close()
            raise
        try:
            bounds = (given.compact_least, given.compact_most)
            session = source.sparkSession
            self._compactor = Compactor(session, saved, given.subscriptions, given.compact_share, bounds)
            chooser = InputChooser(saved, places.index, dialect_of, self._compactor)
            changes = ChangeFolder(mounted_folder(places.changes, "change log")) if places.changes is not None else None
            sink = open_sink(given.sink, given.sink_options)
            self._batches = Batches(chooser, self._output, how, changes, sink, given.on_batch, given.most_attempts)
            newest = saved.newest()
            saved.source_log.check(None if newest is None else newest.batch, self._output.newest())
            if how.has_files and given.fail_on_data_loss:
                saved.source_log.check_files()
        except BaseException:
            self._release()
            raise

    def start(self) -> None:
        given = self._given
        trigger: dict[str, Any] = {"processingTime": f"{given.every} seconds"}
        writer = self._source.writeStream.foreachBatch(self._batches)
        writer = writer.trigger(**({"availableNow": True} if given.once else trigger))
        self._batches.is_stopped = False
        with _quick_checkpoints(self._source.sparkSession):
            self.query = writer.option("checkpointLocation", str(self._checkpoint.root / "spark")).start()

    def run(self) -> None:
        """Start, and wait until the stream ends or is told to."""
        until = self._given.until
        for left in reversed(range(_STARTS)):
            try:
                self.start()
                while not self.query.awaitTermination(_POLL_SECONDS):
                    if until is not None and until.is_set():
                        break
                break
            except Exception as error:
                if not left or not is_slow_start(error):
                    raise self._batches.error or error from None
            finally:
                self.stop()

    def awaitTermination(self, timeout: float | None = None) -> bool:
        """Wait for the end, or some seconds; return whether the stream has ended. Raise its error in one line."""
        with plain_failures():
            try:
                ended = bool(self.query.awaitTermination(timeout) if timeout else self.query.awaitTermination() or True)
            except Exception as error:
                self._release()
                raise self._batches.error or error from None
        if ended:
            self._release()
        return ended

    def processAllAvailable(self) -> None:
        """Wait until everything that is there now is matched."""
        with plain_failures():
            try:
                self.query.processAllAvailable()
            except Exception as error:
                raise self._batches.error or error from None

    @property
    def isActive(self) -> bool:
        return bool(self.query.isActive)

    @property
    def counts(self) -> dict[str, Any]:
        failure = {} if self._compactor.failure is None else {"compaction_failed": self._compactor.failure}
        return {**self._batches.counts, **self._batches.waiting(), **failure}

    def count_files(self, folder: Path) -> dict[str, int]:
        """The numbers of files in a folder of messages that are not read: of other endings, and overwritten ones."""
        overwritten = self._checkpoint.source_log.overwritten()
        return {"files_ignored": count_other_files(folder), "files_overwritten": len(overwritten)}

    def stop(self) -> None:
        """Stop after the current batch; a second interrupt does not wait for the batch."""
        try:
            with self._batches.lock:
                self._batches.is_stopped = True
        finally:
            self._batches.is_stopped = True
            if self.query is not None:
                self.query.stop()
            self._release()

    def _release(self) -> None:
        self._compactor.close()
        self._output.close()
        self._lock.close()


def _check_frames(messages: Any, changes: Any) -> None:
    for frame in (messages, changes):
        if frame is not None and not getattr(frame, "isStreaming", False):
            raise InvalidInput(f"this is not a streaming DataFrame but {type(frame).__name__}; use spark.readStream")
    if changes is not None and not {"op", "id"} <= {*changes.columns}:
        raise InvalidInput(f"changes need a column 'op' and a column 'id'; they have {', '.join(changes.columns)}")


def _id_type_of(messages: DataFrame) -> IdType:
    types = dict(messages.dtypes)
    return STRING if types.get("id") == "string" else INT64


def _index_path(index: IndexHandle | Paths) -> str:
    """The folder of the index: until the first change, a stream follows its current version."""
    if not isinstance(index, IndexHandle):
        return os.fspath(index)
    if index.sharded is None:
        raise InvalidInput(f"{index.path}: a stream needs an index in shards; make one with nearcast.spark.build_index")
    return index.path.partition("?")[0].rpartition("/versions/")[0] + "".join(index.path.partition("?")[1:])


def _named(messages: DataFrame, columns: Mapping[str, str]) -> DataFrame:
    """Only the columns that matching reads, under our names: mapInArrow would send all to Python."""
    there = messages.columns
    for ours, theirs in columns.items():
        if ours not in MESSAGE_COLUMNS:
            raise InvalidInput(f"messages have no column '{ours}'; there are {', '.join(MESSAGE_COLUMNS)}")
        if theirs not in there:
            raise InvalidInput(f"'{ours}': the messages have no column '{theirs}'; they have {', '.join(there)}")
    chosen = {name: name for name in MESSAGE_COLUMNS if name in there} | dict(columns)
    return messages.selectExpr(*(f"`{theirs}` AS `{ours}`" for ours, theirs in chosen.items()))


@contextmanager
def _quick_checkpoints(session: SparkSession) -> Iterator[None]:
    """Let Spark write its logs by plain files: a batch takes a third less time than with the default."""
    name = "spark.sql.streaming.checkpointFileManagerClass"
    before = session.conf.get(name, None)
    session.conf.set(name, _CHECKPOINTS)
    try:
        yield
    finally:
        session.conf.unset(name) if before is None else session.conf.set(name, before)


def _checked(options: dict[str, Any]) -> StreamOptions:
    unknown = options.keys() - StreamOptions.__dataclass_fields__.keys()
    if unknown:
        raise InvalidInput(f"a stream has no option {', '.join(sorted(unknown))}")
    return StreamOptions(**options)

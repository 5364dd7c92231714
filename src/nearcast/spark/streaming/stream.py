"""Matching as a stream: messages come in, micro-batch by micro-batch; matches are written exactly once.

Spark's Structured Streaming says which messages a micro-batch holds and remembers it in the checkpoint. What they are
matched against is written down first (batch_plans.py), the matches appear all at once under the number of the batch
(committed.py). Whatever is killed in between: the next run repeats the unfinished batch and comes to the same matches,
or finds them there.

Index, messages, matches and checkpoint lie on file systems that driver and workers see under the same paths.
"""

from __future__ import annotations

import functools
import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearcast.arrays.bundle import write_whole
from nearcast.errors import InvalidInput
from nearcast.sharding.live.checkpoint import StreamCheckpoint
from nearcast.sharding.live.stream_output import StreamOutput
from nearcast.spark.runtime.failures import is_spark_error, plain_failures, retry_slow_start
from nearcast.spark.streaming.broker import Sink, is_broker, open_sink, open_source
from nearcast.spark.streaming.compaction import Compactor
from nearcast.spark.streaming.input_chooser import InputChooser
from nearcast.spark.streaming.task import PARTS_SQL, StreamJob, deliver_files, deliver_values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

_ATTEMPTS = 3
"""At a batch: with a local master Spark itself does not repeat a task whose worker was killed."""
_LOOK_SECONDS = 0.2
_COUNTS = ("messages", "pairs", "rejected", "changes", "changes_rejected")
_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"


@dataclass(frozen=True)
class StreamOptions:
    """What `run_stream` takes beside its paths."""

    once: bool = False  # stop when all that is there now is done
    source: str = "files"  # or "redis", "kafka"
    source_options: Mapping[str, str] = field(default_factory=dict)
    sink: str | Sink | None = None  # beside the files: "redis", "kafka", or code of yours
    sink_options: Mapping[str, str] = field(default_factory=dict)
    max_files: int = 256  # in one micro-batch
    every: float = 0.0  # seconds between micro-batches at least
    subscriptions: str | None = None  # the table that the index was built from, where its manifest does not say
    compact_share: float = 0.1  # of the base: past it, the changes are built into a new base
    compact_least: int = 10_000  # changed subscriptions: fewer never are,
    compact_most: int = 100_000  # and more always: each worker builds an index of them when some change
    on_batch: Callable[[dict[str, Any]], None] | None = None  # told of each batch, for progress
    until: threading.Event | None = None  # when set, the stream stops after the batch under way


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
    """Match messages as they come, until interrupted, or, with once=True, those that are there.

    `messages` is a folder of Parquet, CSV or JSON Lines files, each moved there whole, or the name of a broker's
    stream. `changes` is a folder of change files (changes.py). `options` are the fields of StreamOptions. A sink gets
    each batch's matches after they are in `out`, as (DataFrame, batch number); after a crash it may get a batch again,
    with the same rows. Returns counts: batches, messages, pairs, rejected, changes, changes_rejected, seconds.
    """
    given = _checked(options)
    started = time.perf_counter()
    with plain_failures(), _alone(Path(checkpoint)) as stream_id:
        book = StreamCheckpoint(checkpoint)
        bounds = (given.compact_least, given.compact_most)
        compactor = Compactor(session, book, given.subscriptions, given.compact_share, bounds)
        committed = StreamOutput(out, stream_id)
        options_of_source = {**given.source_options, **_limits(given)}
        source = retry_slow_start(lambda: open_source(session, given.source, messages, options_of_source))
        batches = _Batches(InputChooser(book, index, changes, compactor), book, committed, given)
        try:
            retry_slow_start(lambda: _run(source, batches, book, given))
        finally:
            compactor.close()
    told: dict[str, Any] = {"batches": batches.n_batches, **batches.counts}
    if compactor.failure is not None:
        told["compaction_failed"] = compactor.failure
    return told | {"seconds": time.perf_counter() - started}


class _Batches:
    """What Spark calls for each micro-batch."""

    def __init__(
        self, planner: InputChooser, book: StreamCheckpoint, committed: StreamOutput, options: StreamOptions
    ) -> None:
        self._planner = planner
        self._book = book
        self._committed = committed
        self._options = options
        self._deliver = deliver_values if is_broker(options.source) else deliver_files
        self._sink = open_sink(options.sink, options.sink_options)
        self.lock = threading.Lock()  # held while a batch is under way
        self.is_stopped = False
        self.n_batches = 0
        self.counts = dict.fromkeys(_COUNTS, 0)

    def __call__(self, messages: DataFrame, batch: int) -> None:
        with self.lock:
            if self.is_stopped:  # to return would tell Spark that the batch is done
                raise InterruptedError("the stream was told to stop")
            done_before = self._committed.manifest(batch)
            manifest = done_before or self._match(messages, batch)
            if self._sink is not None:
                self._sink(messages.sparkSession.read.parquet(str(self._committed.folder(batch))), batch)
            if done_before is None:  # else an earlier run counted it, and ended before Spark had noted it
                self._count(manifest)

    def _match(self, messages: DataFrame, batch: int) -> dict[str, Any]:
        plan = self._planner.plan(batch)
        stage = self._committed.stage()
        job = StreamJob(self._book.sharded(plan), self._book.delta_path(plan), str(stage))
        parts = self._parts(messages.mapInArrow(functools.partial(self._deliver, job), PARTS_SQL))
        rejects = self._book.deltas / plan.delta / "rejects.parquet" if plan.delta and plan.files else None
        return self._committed.commit(plan, stage, parts, rejects)

    def _parts(self, delivered: DataFrame) -> list[Any]:
        for _ in range(_ATTEMPTS - 1):
            try:
                return list(delivered.collect())
            except Exception as error:
                if not is_spark_error(error):
                    raise
        return list(delivered.collect())

    def _count(self, manifest: dict[str, Any]) -> None:
        self.n_batches += 1
        for name in _COUNTS:
            self.counts[name] += manifest[name]
        if self._options.on_batch is not None:
            self._options.on_batch(manifest)


def _run(source: DataFrame, batches: _Batches, book: StreamCheckpoint, options: StreamOptions) -> None:
    trigger: dict[str, Any] = {"availableNow": True} if options.once else {"processingTime": f"{options.every} seconds"}
    writer = source.writeStream.foreachBatch(batches).trigger(**trigger)
    batches.is_stopped = False
    with _quick_checkpoints(source.sparkSession):
        query = writer.option("checkpointLocation", str(book.root / "spark")).start()
    try:
        while not query.awaitTermination(_LOOK_SECONDS):
            if options.until is not None and options.until.is_set():
                break
    finally:
        _stop(query, batches)


def _stop(query: StreamingQuery, batches: _Batches) -> None:
    """A batch under way is finished first, unless we are interrupted once more."""
    try:
        with batches.lock:
            batches.is_stopped = True
    finally:
        batches.is_stopped = True
        query.stop()


@contextmanager
def _quick_checkpoints(session: SparkSession) -> Iterator[None]:
    """Spark's plain way of writing its logs takes a third less time for a batch than the default one."""
    name = "spark.sql.streaming.checkpointFileManagerClass"
    before = session.conf.get(name, None)
    session.conf.set(name, _CHECKPOINTS)
    try:
        yield
    finally:
        session.conf.unset(name) if before is None else session.conf.set(name, before)


@contextmanager
def _alone(checkpoint: Path) -> Iterator[str]:
    """Nobody else runs from this checkpoint; the name of the stream that it is of."""
    import fcntl

    checkpoint.mkdir(parents=True, exist_ok=True)
    with open(checkpoint / "_lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InvalidInput(f"another stream runs from {checkpoint}; wait for it, or name another") from None
        file = checkpoint / "stream.json"
        if not file.exists():
            if any(each.name[0] != "." and each.name != "_lock" for each in checkpoint.iterdir()):
                raise InvalidInput(f"{checkpoint} is not empty and no checkpoint of a stream; name a new folder")
            write_whole(file, json.dumps({"stream": uuid.uuid4().hex}).encode())
        yield str(json.loads(file.read_bytes())["stream"])


def _checked(options: dict[str, Any]) -> StreamOptions:
    unknown = options.keys() - StreamOptions.__dataclass_fields__.keys()
    if unknown:
        raise InvalidInput(f"run_stream has no option {', '.join(sorted(unknown))}")
    return StreamOptions(**options)


def _limits(options: StreamOptions) -> dict[str, str]:
    return {"maxFilesPerTrigger": str(options.max_files)} if options.source == "files" else {}

"""Matching as a stream: messages arrive in micro-batches, and matches are written exactly once.

Spark's Structured Streaming decides which messages a micro-batch holds and records them in the checkpoint. What they
are matched against is recorded before the matching (sharding/live/checkpoint.py), and the matches appear in one step
under the number of the batch (sharding/live/stream_output.py). If anything is killed in between, the next run repeats
the unfinished batch with the same inputs, or finds its matches in place.

Index, messages, matches and checkpoint must be on file systems that driver and workers see under the same paths.
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
from typing import Any

from nearcast.arrays.bundle import write_whole
from nearcast.errors import InvalidInput
from nearcast.sharding.live.checkpoint import StreamCheckpoint
from nearcast.sharding.live.stream_output import StreamOutput
from nearcast.spark.runtime.failures import is_spark_error, plain_failures, retry, retry_slow_start
from nearcast.spark.runtime.session import DataFrame, SparkSession
from nearcast.spark.runtime.tasks import REPORT_SQL, collect_reports
from nearcast.spark.streaming.broker import Sink, open_sink, open_source
from nearcast.spark.streaming.compaction import Compactor
from nearcast.spark.streaming.input_chooser import InputChooser
from nearcast.spark.streaming.task import StreamJob, deliver_files, deliver_values

_POLL_SECONDS = 0.2
_COUNTS = ("messages", "pairs", "rejected", "changes", "changes_rejected")
_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"


@dataclass(frozen=True)
class StreamOptions:
    """The options of `run_stream` beside its paths."""

    once: bool = False  # stop when all present messages are matched
    source: str = "files"  # or "redis", "kafka"
    source_options: Mapping[str, str] = field(default_factory=dict)
    sink: str | Sink | None = None  # in addition to the files: "redis", "kafka", or a function
    sink_options: Mapping[str, str] = field(default_factory=dict)
    max_files: int = 256  # per micro-batch
    every: float = 0.0  # least seconds between micro-batches
    subscriptions: str | None = None  # the table that the index was built from, if the manifest does not name it
    compact_share: float = 0.1  # of the base: with more changes, a new base is built
    compact_least: int = 10_000  # changed subscriptions: with fewer, no new base is built
    compact_most: int = 100_000  # with more, one always is: each worker builds an index of them after each change
    on_batch: Callable[[dict[str, Any]], None] | None = None  # called with the manifest of each batch
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
    crash it may get a batch again, with the same rows. Returns the counts batches, messages, pairs, rejected, changes
    and changes_rejected, and the seconds.
    """
    given = _checked(options)
    started = time.perf_counter()
    with plain_failures(), _locked(Path(checkpoint)) as stream_id:
        saved = StreamCheckpoint(checkpoint)
        bounds = (given.compact_least, given.compact_most)
        compactor = Compactor(session, saved, given.subscriptions, given.compact_share, bounds)
        output = StreamOutput(out, stream_id)
        limits = {"maxFilesPerTrigger": str(given.max_files)} if given.source == "files" else {}
        options_of_source = {**given.source_options, **limits}
        source = retry_slow_start(lambda: open_source(session, given.source, messages, options_of_source))
        batches = _Batches(InputChooser(saved, index, changes, compactor), output, given)
        try:
            retry_slow_start(lambda: _run(source, batches, saved, given))
        finally:
            compactor.close()
    failure = {} if compactor.failure is None else {"compaction_failed": compactor.failure}
    return {**batches.counts, **failure, "seconds": time.perf_counter() - started}


class _Batches:
    """What Spark calls for each micro-batch."""

    def __init__(self, chooser: InputChooser, output: StreamOutput, options: StreamOptions) -> None:
        self._chooser = chooser
        self._output = output
        self._options = options
        self._deliver = deliver_files if options.source == "files" else deliver_values
        self._sink = open_sink(options.sink, options.sink_options)
        self.lock = threading.Lock()  # locked while a batch is matched
        self.is_stopped = False
        self.counts = dict.fromkeys(("batches", *_COUNTS), 0)

    def __call__(self, messages: DataFrame, batch: int) -> None:
        with self.lock:
            if self.is_stopped:  # if this returned, Spark would take the batch for done
                raise InterruptedError("the stream is stopping")
            done_before = self._output.manifest(batch)
            manifest = done_before or self._match(messages, batch)
            if self._sink is not None:
                self._sink(messages.sparkSession.read.parquet(str(self._output.folder(batch))), batch)
            if done_before is None:  # otherwise an earlier run counted it but ended before Spark recorded it
                self.counts["batches"] += 1
                for name in _COUNTS:
                    self.counts[name] += manifest[name]
                if self._options.on_batch is not None:
                    self._options.on_batch(manifest)

    def _match(self, messages: DataFrame, batch: int) -> dict[str, Any]:
        inputs = self._chooser.inputs_for(batch)
        checkpoint = self._chooser.checkpoint
        stage = self._output.stage()
        job = StreamJob(checkpoint.base_of(inputs), checkpoint.delta_path(inputs), str(stage))
        delivered = messages.mapInArrow(functools.partial(self._deliver, job), REPORT_SQL)
        # With a local master, Spark does not repeat a task whose worker was killed.
        parts = retry(lambda: collect_reports(delivered), is_spark_error)
        rejects = checkpoint.deltas / inputs.delta / "rejects.parquet" if inputs.delta and inputs.files else None
        return self._output.commit(inputs, stage, parts, rejects)


def _run(source: DataFrame, batches: _Batches, checkpoint: StreamCheckpoint, options: StreamOptions) -> None:
    trigger: dict[str, Any] = {"availableNow": True} if options.once else {"processingTime": f"{options.every} seconds"}
    writer = source.writeStream.foreachBatch(batches).trigger(**trigger)
    batches.is_stopped = False
    with _quick_checkpoints(source.sparkSession):
        query = writer.option("checkpointLocation", str(checkpoint.root / "spark")).start()
    try:
        while not query.awaitTermination(_POLL_SECONDS):
            if options.until is not None and options.until.is_set():
                break
    finally:
        _stop(query, batches)


def _stop(query: Any, batches: _Batches) -> None:
    """Stop the query after the current batch; a second interrupt does not wait for the batch."""
    try:
        with batches.lock:
            batches.is_stopped = True
    finally:
        batches.is_stopped = True
        query.stop()


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


@contextmanager
def _locked(checkpoint: Path) -> Iterator[str]:
    """Lock the checkpoint against other streams; give the id of its stream."""
    import fcntl

    checkpoint.mkdir(parents=True, exist_ok=True)
    with open(checkpoint / "_lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InvalidInput(f"another stream runs from {checkpoint}; wait for it, or name another") from None
        file = checkpoint / "stream.json"
        if not file.exists():
            if any(entry.name[0] != "." and entry.name != "_lock" for entry in checkpoint.iterdir()):
                raise InvalidInput(f"{checkpoint} is not empty and no checkpoint of a stream; name a new folder")
            write_whole(file, json.dumps({"stream": uuid.uuid4().hex}).encode())
        yield str(json.loads(file.read_bytes())["stream"])


def _checked(options: dict[str, Any]) -> StreamOptions:
    unknown = options.keys() - StreamOptions.__dataclass_fields__.keys()
    if unknown:
        raise InvalidInput(f"run_stream has no option {', '.join(sorted(unknown))}")
    return StreamOptions(**options)

"""What Spark calls for each micro-batch: chooses its inputs, matches it, and commits its matches under its number."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from nearcast.errors import NearcastError
from nearcast.ingest.stream_batch import Deliver, StreamJob
from nearcast.sharding.live.change_folder import ChangeFolder, NewChanges
from nearcast.sharding.live.changes import read_changes
from nearcast.sharding.live.checkpoint import BatchInputs
from nearcast.sharding.live.input_chooser import InputChooser, ReadChanges, no_changes_for
from nearcast.sharding.live.stream_output import StreamOutput
from nearcast.spark.runtime.failures import ATTEMPTS, is_spark_error
from nearcast.spark.runtime.session import DataFrame
from nearcast.spark.runtime.tasks import REPORT_SQL, collect_reports, report_once
from nearcast.tables import Dialect
from nearcast.tables.ids import INT64, IdType

Sink = Callable[[DataFrame, int], None]
OnBatch = Callable[[dict[str, Any]], None]
COUNTS = ("messages", "pairs", "rejected", "changes", "changes_rejected")


class BatchInput(NamedTuple):
    """How a micro-batch of Spark's is read."""

    deliver: Deliver  # the task over its messages
    has_files: bool = False  # its rows are paths of files, which tasks read
    message_ids: IdType = INT64
    has_changes: bool = False  # its rows are structs, `message` or `change` (see join_changes)


def join_changes(messages: DataFrame, changes: DataFrame) -> DataFrame:
    """Both as one stream, so that Spark records for each micro-batch how far both went."""
    frames = {"message": messages, "change": changes}
    kinds = {name: frame.schema.simpleString() for name, frame in frames.items()}

    def packed(name: str) -> DataFrame:
        whole = f"struct({', '.join(f'`{column}`' for column in frames[name].columns)})"
        return frames[name].selectExpr(
            *(f"{whole if n == name else f'CAST(NULL AS {kinds[n]})'} AS {n}" for n in kinds)
        )

    return packed("message").unionByName(packed("change"))


@dataclass
class Batches:
    """The micro-batches of one run of a stream."""

    chooser: InputChooser
    output: StreamOutput
    input: BatchInput
    changes: ChangeFolder | None = None
    sink: Sink | None = None
    on_batch: OnBatch | None = None
    most_attempts: int = 3
    lock: threading.Lock = field(default_factory=threading.Lock)  # locked while a batch is matched
    is_stopped: bool = False
    error: NearcastError | None = None  # of the last batch; Spark reports only its text
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("batches", *COUNTS), 0))

    def __call__(self, frame: DataFrame, batch: int) -> None:
        with self.lock:
            if self.is_stopped:  # if this returned, Spark would take the batch for done
                raise InterruptedError("the stream is stopping")
            try:
                self._work(frame, batch)
            except NearcastError as error:
                self.error = error
                raise

    def _work(self, frame: DataFrame, batch: int) -> None:
        manifest = done_before = self.output.manifest(batch)
        if done_before is None:
            manifest = self._match(frame, batch)
        else:
            self.chooser.checkpoint.source_log.check_repeat(batch, done_before)
        assert manifest is not None
        if self.sink is not None:
            self.sink(frame.sparkSession.read.parquet(str(self.output.folder(batch))), batch)
        if done_before is None:  # otherwise an earlier run counted it but ended before Spark recorded it
            self.counts["batches"] += 1
            for name in COUNTS:
                self.counts[name] += manifest[name]
            if self.on_batch is not None:
                self.on_batch(manifest)

    def _match(self, frame: DataFrame, batch: int) -> dict[str, Any]:
        inputs, is_repeated = self.chooser.inputs_for(batch, self._changes_of(frame))
        messages = frame.where("message IS NOT NULL").select("message.*") if self.input.has_changes else frame
        checkpoint = self.chooser.checkpoint
        stage = self.output.stage()
        job = StreamJob(checkpoint.base_of(inputs), checkpoint.delta_path(inputs), str(stage), self.input.message_ids)
        parts = self._deliver(job, messages, inputs, is_repeated)
        has_rejects = inputs.delta is not None and (inputs.new_changes or inputs.files)
        rejects = checkpoint.deltas / str(inputs.delta) / "rejects.parquet" if has_rejects else None
        manifest = self.output.commit(inputs, stage, parts, rejects, job.schema)
        checkpoint.attempts(batch, self.most_attempts).forget()
        return manifest

    def _deliver(self, job: StreamJob, messages: DataFrame, inputs: BatchInputs, is_careful: bool) -> list[Any]:
        """The reports of the tasks. With a local master, Spark does not repeat a task whose worker was killed.

        Repeated attempts at files are careful: they find out which file kills its worker (sharding/live/attempts.py).
        """
        attempts = self.chooser.checkpoint.attempts(inputs.batch, self.most_attempts)
        left = ATTEMPTS
        while True:
            n_marks = attempts.n_marks()
            try:
                careful = is_careful and self.input.has_files
                frame = messages.coalesce(1) if careful else messages
                work = functools.partial(self.input.deliver, job._replace(attempts=attempts if careful else None))
                return collect_reports(frame.mapInArrow(functools.partial(report_once, work), REPORT_SQL))
            except Exception as error:
                left -= attempts.n_marks() == n_marks  # a new mark is a step towards setting a file aside
                if not is_spark_error(error) or not left:
                    raise
                is_careful = True

    def _changes_of(self, frame: DataFrame) -> ReadChanges:
        if self.input.has_changes:
            return functools.partial(_changes_in, frame)
        return no_changes_for if self.changes is None else self.changes.read

    def waiting(self) -> dict[str, int]:
        """The number of change files that no batch has read yet."""
        if self.changes is None:
            return {}
        return {"change_files_waiting": len(self.changes.waiting(self.chooser.known_files()))}


def _changes_in(frame: DataFrame, known: Collection[str], dialect: Dialect) -> NewChanges:
    """The changes of a joined micro-batch, in the order of its rows unless they have a column `order`."""
    table = frame.where("change IS NOT NULL").select("change.*").toArrow()
    return NewChanges([], list(known), read_changes(table, "changes", dialect))

"""Kinds whose results live on, as DataFrames of changes: `top` and `moving`. Lazy, as a stream or in batch.

Each message goes to all shards, each move to the shard of its subscription. A shard's state is a folder of files, and
Spark's own state has only its name (sharding/stateful/): thus what Spark commits decides which states count, and no
state travels to Java and back.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import partial, reduce
from typing import Any

import pyarrow as pa

from nearcast.errors import InvalidInput
from nearcast.geo.space import BOX_COLUMNS, Space
from nearcast.model import MATCH
from nearcast.moving.moving import Moving
from nearcast.sharding.payloads import PAYLOAD_SCHEMA, pack_payload, payloads_in
from nearcast.sharding.stateful.definition import CHANGES, MESSAGES, MOVES, StatefulJob, checked_shards, delay_of
from nearcast.sharding.stateful.micro_batch import route_events, run_micro_batch
from nearcast.sharding.stateful.partition_keys import keys_of_shards
from nearcast.sharding.stateful.start import start_job
from nearcast.spark.frames.build import select_named
from nearcast.spark.frames.columns import WHOLE_TYPES
from nearcast.spark.frames.match import Batches, Task, check_on_bad
from nearcast.spark.runtime.daemon import freeze_once, prepare_worker
from nearcast.spark.runtime.failures import plain_failures
from nearcast.spark.runtime.session import DataFrame
from nearcast.spark.runtime.tasks import PAYLOAD_SQL
from nearcast.tables import Dialect, OnBad, as_arrow, idf_weights, read_subscriptions, read_weights
from nearcast.tables.weights import weights_table
from nearcast.text.analyser import Analyser
from nearcast.text.vocabulary import Vocabulary
from nearcast.topk.reading import read_top_subscriptions, window_size_of
from nearcast.topk.topk import TopK

Paths = str | os.PathLike[str]
_PLACE = ("x", "y", "lon", "lat", *BOX_COLUMNS)
MESSAGE_INPUT = ("id", "text", "tokens", *_PLACE, "time", "expires", "order")
MOVE_INPUT = ("id", *_PLACE, "time", "order")
CHANGE_INPUT = ("op", "id", "tokens", "expression", *_PLACE, "region", "k", "alpha", "expires", "time", "order")


def top(  # noqa: PLR0913  what TopK takes, and where
    messages: DataFrame,
    subscriptions: Any,
    *,
    window: Any = None,
    state: Paths,
    shards: int = 2,
    changes: DataFrame | None = None,
    columns: Mapping[str, Any] | None = None,
    weights: Any = None,
    method: str = "auto",
    max_dist: float | None = None,
    space: Any = None,
    analyser: Any = None,
    delay: timedelta = timedelta(0),
    on_bad: OnBad = "skip",
) -> DataFrame:
    """The changes of all lists of best messages, as a DataFrame: message, subscription, change, score, time, seq.

    `subscriptions` is a table, a path or a batch DataFrame; `window`, `weights`, `method`, `max_dist`, `space` and
    `analyser` are those of `nearcast.TopK`, whose changes these are. `changes` is a DataFrame of subscriptions that
    come (`op` is "insert") and go ("remove"). The changes of a subscription are in the order of `seq`.

    Messages take effect in the order of `time`, then of a column `order`, then of `id`; each waits until the newest
    time is `delay` past its own. What comes later is rejected. `state` is a folder that all workers see;
    `state_rejects` lists the bad and late rows in it, `state_sizes` what each shard has.
    """
    table = _table_of(subscriptions)
    size = window_size_of(table, window)
    given = _without_none(method=method, space=space, max_dist=max_dist, analyser=analyser)
    TopK(window=size, weights=weights, **given)  # checks the options
    dialect = Dialect(Analyser.of(analyser), Space.of(space), check_on_bad(on_bad), extra=())
    vocabulary = Vocabulary()
    _, read = read_top_subscriptions(table, vocabulary, dialect)
    by_term = idf_weights(read, vocabulary) if weights is None else read_weights(weights, vocabulary)
    options = {"window": list(size), **given}
    job = StatefulJob("top", checked_shards(shards), os.fspath(state), options, delay_of(delay), on_bad)
    job = start_job(job, read, weights_table(by_term, vocabulary))
    return _changes_frame(job, {MESSAGES: (messages, columns, MESSAGE_INPUT), CHANGES: (changes, None, CHANGE_INPUT)})


def moving(  # noqa: PLR0913  what Moving takes, and where
    messages: DataFrame,
    moves: DataFrame,
    subscriptions: Any,
    *,
    state: Paths,
    shards: int = 2,
    changes: DataFrame | None = None,
    columns: Mapping[str, Any] | None = None,
    move_columns: Mapping[str, Any] | None = None,
    method: str = "auto",
    space: Any = None,
    analyser: Any = None,
    delay: timedelta = timedelta(0),
    on_bad: OnBad = "skip",
) -> DataFrame:
    """The changes of moving subscriptions, as a DataFrame: message, subscription, change, score, time, seq.

    A micro-batch is one step of `nearcast.Moving`: time passes to the newest time, each subscription is at its last
    place, the messages have arrived, and the net changes are returned. `moves` has the columns id, a point or a box,
    and time. The other arguments are those of `top`.
    """
    given = _without_none(method=method, space=space, analyser=analyser)
    dialect = Dialect(Analyser.of(analyser), Moving(**given).space, check_on_bad(on_bad), (MATCH.name,), extra=())
    read = read_subscriptions(_table_of(subscriptions), Vocabulary(), dialect)
    job = StatefulJob("moving", checked_shards(shards), os.fspath(state), given, delay_of(delay), on_bad)
    job = start_job(job, read, None)
    inputs = {MESSAGES: (messages, columns, MESSAGE_INPUT), MOVES: (moves, move_columns, MOVE_INPUT)}
    return _changes_frame(job, inputs | {CHANGES: (changes, None, CHANGE_INPUT)})


Input = tuple[DataFrame | None, Mapping[str, Any] | None, tuple[str, ...]]


def _table_of(subscriptions: Any) -> pa.Table:
    """A table, or a batch DataFrame collected here. UUIDs become texts: Spark has no type for them."""
    if hasattr(subscriptions, "isStreaming"):
        if subscriptions.isStreaming:
            raise InvalidInput("the first subscriptions are a table or a batch DataFrame; give a stream as changes=")
        with plain_failures():
            return subscriptions.toArrow()
    table = as_arrow(subscriptions)
    if "id" in table.column_names and isinstance(table.schema.field("id").type, pa.BaseExtensionType):
        texts = pa.array([None if each is None else str(each) for each in table["id"].to_pylist()], pa.string())
        table = table.set_column(table.column_names.index("id"), "id", texts)
    return table


def _without_none(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _changes_frame(job: StatefulJob, inputs: Mapping[str, Input]) -> DataFrame:
    given = {name: each for name, each in inputs.items() if each[0] is not None}
    frames = {name: _selected(name, *each) for name, each in given.items()}
    messages = frames[MESSAGES]
    if len({frame.isStreaming for frame in frames.values()}) > 1:
        raise InvalidInput(f"{' and '.join(frames)} are all streams, or all batch DataFrames")
    session = messages.sparkSession
    keys = keys_of_shards(job.n_shards, int(session.conf.get("spark.sql.shuffle.partitions") or 200))
    routed = [
        frame.mapInArrow(Task(f"nearcast_route_{name}", partial(_route, name, job.n_shards, keys)), PAYLOAD_SQL)
        for name, frame in frames.items()
    ]
    events = reduce(lambda one, other: one.union(other), routed)
    step = _Step(job, f"nearcast_{job.kind}")
    schema = _changes_type(messages, job)
    return events.groupBy("partition").applyInPandasWithState(step, schema, "snapshot string", "append", "NoTimeout")


def _selected(name: str, frame: Any, columns: Mapping[str, Any] | None, known: tuple[str, ...]) -> DataFrame:
    chosen = select_named(frame, name, columns, known, "ignore")
    if chosen.schema["id"].dataType.simpleString() not in (*WHOLE_TYPES, "string"):
        kind = chosen.schema["id"].dataType.simpleString()
        raise InvalidInput(f"ids of {name} are whole numbers or strings, not {kind}; cast the column", column="id")
    return chosen


def _changes_type(messages: DataFrame, job: StatefulJob) -> Any:
    """The StructType of the changes."""
    from pyspark.sql.types import ByteType, DoubleType, LongType, StringType, StructField, StructType, TimestampType

    is_named = messages.schema["id"].dataType.simpleString() == "string"
    fields = {
        "message": StringType() if is_named else LongType(),
        "subscription": StringType() if job.has_names else LongType(),
        "change": ByteType(),
        "score": DoubleType(),
        "time": TimestampType(),
        "seq": LongType(),
    }
    return StructType([StructField(name, kind) for name, kind in fields.items()])


def _route(name: str, n_shards: int, keys: Mapping[int, int], batches: Batches) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for payload in route_events(name, pa.Table.from_batches([batch]), n_shards, keys):
            yield from pack_payload(payload)


class _Step:
    """The step of a shard for applyInPandasWithState. Spark's plans show its name."""

    def __init__(self, job: StatefulJob, name: str) -> None:
        self._job = job
        self.__name__ = name

    def __call__(self, key: tuple[int], frames: Iterator[Any], state: Any) -> Iterator[Any]:
        prepare_worker()
        rows = [pa.RecordBatch.from_pandas(frame, PAYLOAD_SCHEMA, preserve_index=False) for frame in frames]
        payloads = list(payloads_in(rows))
        before = state.get[0] if state.exists else None
        after, changes = run_micro_batch(self._job, payloads[0].shard, before, payloads)
        state.update((after,))
        freeze_once()
        yield changes.to_pandas()

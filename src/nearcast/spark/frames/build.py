"""Subscriptions in a DataFrame -> a sharded index, at any path or URL.

The rows are computed once: each task writes its rows into the folder of the new version, as Parquet. The build reads
them several times (ids, weights, routes), and a stream with changes reads them again when it merges the changes.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import pyarrow as pa

from nearcast.errors import InvalidInput
from nearcast.ingest.written_table import finish_table, write_part
from nearcast.sharding.index_handle import IndexHandle, open_handle
from nearcast.sharding.match_shards import MESSAGE_COLUMNS
from nearcast.sharding.normalise import SUBSCRIPTIONS_SCHEMA
from nearcast.sharding.sharded_index import KEPT_HOURS
from nearcast.spark.batch.build import SAMPLED_MESSAGES, build_sharded
from nearcast.spark.frames.match import Task
from nearcast.spark.runtime.session import DataFrame
from nearcast.spark.runtime.tasks import REPORT_SQL, as_report, collect_reports
from nearcast.storage.location import Location, locate
from nearcast.tables import OnBad
from nearcast.tables.input_checks.known_columns import POINTS, RADII
from nearcast.text.analyser import Analyser

SUBSCRIPTION_COLUMNS = (*SUBSCRIPTIONS_SCHEMA.names, *POINTS, *RADII)
_SEED = 4


def build_index(  # noqa: PLR0913  each is a choice of the user
    subscriptions: DataFrame,
    path: str | os.PathLike[str],
    *,
    shards: int | Literal["auto"] = "auto",
    sample: DataFrame | None = None,
    columns: Mapping[str, Any] | None = None,
    sample_columns: Mapping[str, Any] | None = None,
    method: str = "auto",
    weights: Any = None,
    space: Sequence[float] | None = None,
    analyser: Analyser | str | None = None,
    on_bad: OnBad = "skip",
    extra: Literal["raise", "ignore"] = "raise",
    keep_hours: float | None = KEPT_HOURS,
) -> IndexHandle:
    """Build an index from a DataFrame, and make it the current version at `path`: a folder, or a URL of a store.

    `sample` has expected messages, by which the shards are balanced. `columns` and `sample_columns` give columns by
    their names in a subscriptions and a messages table. Bad rows are in `rejects()` of the result, or
    with on_bad="raise" nothing is published and the first one is raised. `weights`, `space` and `analyser` are those of
    `nearcast.build_index`. Versions that were replaced `keep_hours` ago are removed; None keeps all.
    """
    place = locate(path)
    if on_bad not in ("raise", "skip") or extra not in ("raise", "ignore"):
        raise InvalidInput(f"on_bad is 'raise' or 'skip', and extra 'raise' or 'ignore', not {on_bad!r} and {extra!r}")
    if shards != "auto" and not (isinstance(shards, int) and shards >= 1):
        raise InvalidInput(f"shards is 'auto' or a whole number from 1 on, not {shards!r}")
    rows = select_named(subscriptions, "subscriptions", columns, SUBSCRIPTION_COLUMNS, extra)
    made = build_sharded(
        subscriptions.sparkSession,
        partial(_write, rows),
        place.url,
        shards=None if shards == "auto" else shards,
        messages=None if sample is None else _sampled(sample, sample_columns),
        method=method,
        space=space,
        analyser=analyser,
        weights=weights,
        on_bad=on_bad,
        keep_hours=keep_hours,
    )
    return open_handle(place.url, version=locate(made.path).name)


def select_named(
    frame: DataFrame, what: str, columns: Mapping[str, Any] | None, known: Sequence[str], extra: str
) -> DataFrame:
    """The columns that an index is built from, under their names in a table."""
    from pyspark.sql import DataFrame as AnyFrame
    from pyspark.sql import functions as F

    if not isinstance(frame, AnyFrame):
        raise InvalidInput(
            f"{what} are a Spark DataFrame, not {type(frame).__name__}; nearcast.build_index takes tables"
        )
    sources = dict(columns or {})
    for name in sources:
        _require_known(name, known, f"columns={{...}} of {what} has no")
    used = {source for source in sources.values() if isinstance(source, str)}
    rest = [name for name in frame.columns if name not in used and name not in sources]
    if extra == "raise":
        for name in rest:
            _require_known(name, known, f"{what} have an unknown column")
    sources |= {name: f"`{name}`" for name in rest if name in known}
    if "id" not in sources:
        there = ", ".join(frame.columns) or "none"
        raise InvalidInput(f"{what} need a column 'id'; there are {there}; name yours: columns={{'id': ...}}")
    wanted = {name: F.col(source) if isinstance(source, str) else source for name, source in sources.items()}
    return frame.select(*(column.alias(name) for name, column in wanted.items()))


def _require_known(name: str, known: Sequence[str], complaint: str) -> None:
    if name not in known:
        near = difflib.get_close_matches(name, known, 1, 0.5)
        remedy = f"do you mean '{near[0]}'?" if near else f"there are {', '.join(known)}."
        raise InvalidInput(f"{complaint} '{name}'; {remedy} Map it with columns=, or pass extra='ignore'")


def _sampled(messages: DataFrame, columns: Mapping[str, Any] | None) -> pa.Table:
    from pyspark.sql import functions as F

    known = select_named(messages, "the messages of the sample", columns, MESSAGE_COLUMNS, "ignore")
    return known.orderBy(F.rand(_SEED)).limit(SAMPLED_MESSAGES).toArrow()


def _write(rows: DataFrame, folder: Location) -> None:
    """Write the rows of the DataFrame as a table, in the order of its partitions."""
    if folder.is_local:
        os.makedirs(folder.path)
    written = rows.mapInArrow(Task("nearcast_write_subscriptions", partial(_write_partition, folder.url)), REPORT_SQL)
    finish_table(folder, collect_reports(written))


def _write_partition(folder: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from pyspark import TaskContext

    context = TaskContext.get()
    partition = 0 if context is None else context.partitionId()
    yield as_report(write_part(folder, f"part-{partition:06d}", batches))

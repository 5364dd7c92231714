"""Matching as a table function of SQL: SELECT * FROM nearcast_match(TABLE(messages))."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from nearcast.errors import InvalidInput, MissingPart
from nearcast.sharding.frame_match import FrameColumns, FrameJob, match_frames
from nearcast.sharding.index_handle import IndexHandle
from nearcast.sharding.match_shards import MESSAGE_COLUMNS
from nearcast.spark.frames.match import as_handle, check_on_bad, matches_type
from nearcast.spark.runtime.daemon import freeze_once, prepare_worker
from nearcast.spark.runtime.session import SparkSession
from nearcast.tables import OnBad


def register(
    session: SparkSession,
    index: IndexHandle | str | os.PathLike[str],
    name: str = "nearcast_match",
    *,
    columns: Mapping[str, str] | None = None,
    keep: Any = "",
    id_type: str = "bigint",
    on_bad: OnBad = "skip",
) -> None:
    """Make `name` a table function whose argument is a table of messages and whose rows are the matches.

    Spark wants to know the columns of the matches now: `keep` is the schema of the kept columns, as in
    "city string, at timestamp", and `id_type` is "string" where ids are. Every column of the argument travels to
    Python, so select what is needed: nearcast_match(TABLE(SELECT id, text, lon, lat FROM messages)).
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    if not hasattr(F, "arrow_udtf"):
        raise MissingPart("SQL table functions need PySpark 4.1 or newer; match DataFrames with nearcast.spark.match")
    if id_type not in ("bigint", "string"):
        raise InvalidInput(f"id_type is 'bigint' or 'string', not {id_type!r}")
    unknown = sorted(columns.keys() - {*MESSAGE_COLUMNS}) if columns else ()
    if unknown:
        raise InvalidInput(f"columns={{...}} has no '{unknown[0]}'; there are {', '.join(MESSAGE_COLUMNS)}")
    kept = StructType.fromDDL(keep) if isinstance(keep, str) else keep
    task = _Task(as_handle(index), dict(columns or {}), tuple(kept.names), check_on_bad(on_bad))

    class Match:
        def eval(self, messages: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
            return task(messages)

    id_field = StructType.fromDDL(f"id {id_type}").fields[0]
    returned = matches_type(task.handle, id_field.dataType, kept.fields)
    session.udtf.register(name, F.arrow_udtf(Match, returnType=returned))


class _Task:
    """Importable by workers, so that what it keeps open stays open between tasks."""

    def __init__(self, handle: IndexHandle, columns: dict[str, str], keep: tuple[str, ...], on_bad: OnBad) -> None:
        self.handle = handle
        self._columns = columns
        self._keep = keep
        self._on_bad = on_bad

    def __call__(self, messages: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        prepare_worker()
        yield from match_frames(FrameJob(self.handle, self._positions(messages.schema.names), self._on_bad), [messages])
        freeze_once()

    def _positions(self, names: list[str]) -> FrameColumns:
        sources = {name: name for name in MESSAGE_COLUMNS if name in names} | self._columns
        missing = [name for name in (*sources.values(), *self._keep) if name not in names]
        if missing or "id" not in sources:
            raise InvalidInput(f"no column '{(*missing, 'id')[0]}' in the table; there are {', '.join(names)}")
        read = {name: names.index(source) for name, source in sources.items()}
        return FrameColumns(read, tuple((name, names.index(name)) for name in self._keep), sources)

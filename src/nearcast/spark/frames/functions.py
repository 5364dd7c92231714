"""Functions for columns and for SQL: tokens of a text, frequencies of tokens, and matching as a table function, as in
SELECT * FROM nearcast_match(TABLE(messages)).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import pyarrow as pa

from nearcast.errors import InvalidInput, MissingPart
from nearcast.sharding.frame_match import FrameColumns, FrameJob, match_frames
from nearcast.sharding.index_handle import IndexHandle
from nearcast.sharding.match_shards import MESSAGE_COLUMNS
from nearcast.spark.frames.columns import select_columns
from nearcast.spark.frames.match import Task, as_handle, check_on_bad, matches_type
from nearcast.spark.runtime.daemon import freeze_once, prepare_worker
from nearcast.spark.runtime.session import DataFrame, SparkSession
from nearcast.tables import OnBad
from nearcast.tables.faults import Faults
from nearcast.tables.messages import message_tokens
from nearcast.tables.token_counts import count_documents
from nearcast.text.analyser import Analyser

_TOKENS_SQL = "array<string>"


def tokens(column: Any, analyser: Analyser | str | None = None) -> Any:
    """A column of the tokens of each text, as an index with this analyser reads them; no tokens for a null."""
    from pyspark.sql import functions as F

    made_by = Analyser.of(analyser)

    def nearcast_tokens(texts: Any) -> Any:  # the name that Spark's plans show
        return _tokens_of(made_by, texts)

    if hasattr(F, "arrow_udf"):
        make, kind = F.arrow_udf, pa.Array
    else:  # PySpark 4.0
        import pandas as pd

        make, kind = F.pandas_udf, pd.Series
    nearcast_tokens.__annotations__ = {"texts": kind, "return": kind}
    return make(nearcast_tokens, _TOKENS_SQL)(column)


def _tokens_of(analyser: Analyser, texts: Any) -> Any:
    """For an Arrow array an array, for a pandas series a series."""
    prepare_worker()
    if isinstance(texts, pa.Array):
        return analyser.tokens_batch(texts)
    return analyser.tokens_batch(pa.array(texts, pa.string(), from_pandas=True)).to_pandas()


def vocabulary(
    messages: DataFrame, *, columns: Mapping[str, Any] | None = None, analyser: Analyser | str | None = None
) -> DataFrame:
    """Each token with the number of messages that contain it: token, frequency. Reads `tokens`, else `text`."""
    made_by = Analyser.of(analyser)
    sent = select_columns(messages, columns, (), partial(_read, made_by), ("tokens", "text"))
    counted = Task("nearcast_count_tokens", partial(_count, made_by, sent.columns))
    counts = sent.frame.mapInArrow(counted, "token string, frequency long")
    return counts.groupBy("token").sum("frequency").toDF("token", "frequency")


def _read(analyser: Analyser, table: pa.Table) -> pa.Array:
    return message_tokens(table, analyser, Faults(table.num_rows, "skip"))


def _count(analyser: Analyser, columns: FrameColumns, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Only the distinct tokens of a task are shuffled, with their counts."""
    tables = (pa.table({name: batch.column(at) for name, at in columns.read.items()}) for batch in batches)
    return count_documents(tables, analyser)


# -- SQL


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

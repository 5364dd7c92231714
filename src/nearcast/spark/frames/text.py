"""The analyser as a column function, and the document frequencies of tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import pyarrow as pa

from nearcast.sharding.frame_match import FrameColumns
from nearcast.spark.frames.columns import select_columns
from nearcast.spark.frames.match import Task
from nearcast.spark.runtime.daemon import prepare_worker
from nearcast.spark.runtime.session import DataFrame
from nearcast.tables.faults import Faults
from nearcast.tables.messages import message_tokens
from nearcast.tables.token_counts import count_documents
from nearcast.text.analyser import Analyser

_TOKENS_SQL = "array<string>"


def tokens(column: Any, analyser: Analyser | None = None) -> Any:
    """A column of the tokens of each text, as an index with this analyser reads them; no tokens for a null."""
    from pyspark.sql import functions as F

    made_by = analyser or Analyser()

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
    messages: DataFrame, *, columns: Mapping[str, Any] | None = None, analyser: Analyser | None = None
) -> DataFrame:
    """Each token with the number of messages that contain it: token, frequency. Reads `tokens`, else `text`."""
    made_by = analyser or Analyser()
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

"""Statistics of a messages table: words, places, lengths and times, as counts that fit a page.

Each task counts its messages into small arrays, which the driver adds up. Only token frequencies are shuffled.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from typing import Any

from nearcast.geo.space import BOX_COLUMNS
from nearcast.ingest.reports.message_counts import (
    DAY,
    Counted,
    Extent,
    count_messages,
    places_of,
    times_counted,
    words_of,
)
from nearcast.ingest.row_groups import Piece, read_pieces
from nearcast.spark.batch.ingest import read_counts
from nearcast.spark.batch.vocabulary import (
    columns_of,
    count_tokens,
    noted_analyser,
    open_frequencies,
    shares_of,
)
from nearcast.spark.runtime.session import SparkSession, spark_path
from nearcast.spark.runtime.tasks import map_on_spark
from nearcast.text.analyser import Analyser


def statistics(session: SparkSession, messages: str, *, vocabulary: str | None = None) -> dict[str, Any]:
    """Plain values, fit for JSON and for `write_report`. `vocabulary` is the table's own file, where there is one."""
    names = columns_of(messages, ("tokens", "text"))
    shares, n_messages = shares_of(session, messages)
    if not n_messages:
        return {"messages": 0, "ingest": read_counts(messages)}
    extent = _extent(session, messages, names)
    work = partial(_count_share, extent, noted_analyser(messages) or Analyser())
    counts = reduce(Counted.plus, map_on_spark(session, work, shares))
    frequencies = open_frequencies(vocabulary) if vocabulary else count_tokens(session, messages)
    return {
        "messages": n_messages,
        "ingest": read_counts(messages),
        "places": places_of(counts.density, extent),
        "words": words_of(frequencies, counts),
        "lengths": {"tokens": counts.tokens.tolist(), "characters_bits": counts.characters.tolist()},
        "times": times_counted(counts, extent),
    }


def _extent(session: SparkSession, messages: str, names: Sequence[str]) -> Extent:
    """The extent, by Spark's scan, which reads only the footers of the files where it can."""
    from pyspark.sql import functions as sql

    low, high = (("xmin", "ymin"), ("xmax", "ymax")) if "xmin" in names else (("x", "y"), ("x", "y"))
    extremes = [sql.min(name) for name in low] + [sql.max(name) for name in high]
    if "time" in names:
        extremes += [sql.min(sql.unix_micros("time")), sql.max(sql.unix_micros("time"))]
    row = [*session.read.parquet(spark_path(messages)).agg(*extremes).collect()[0], None, None]
    days = [None if value is None else value // DAY for value in row[4:6]]
    return Extent(*row[:4], *days)


def _count_share(extent: Extent, analyser: Analyser, pieces: Sequence[Piece]) -> Counted:
    """The counts of one task."""
    wanted = ("tokens", "text", "x", "y", *BOX_COLUMNS, "time")
    return reduce(Counted.plus, (count_messages(read_pieces([piece], wanted), extent, analyser) for piece in pieces))

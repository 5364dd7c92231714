"""Counts over a messages table: its vocabulary with document frequencies, and the statistics of its words, places,
lengths and times.

Each task counts its own messages into small arrays, which the driver adds up; only token frequencies are shuffled.
Terms of a vocabulary are numbered by descending frequency, and by token where frequencies are equal, so the same
messages give the same file however they are divided.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial, reduce
from typing import Any

import pyarrow as pa

from nearcast.errors import InvalidInput
from nearcast.geo.space import BOX_COLUMNS
from nearcast.ingest.reports.message_counts import (
    DAY,
    Counted,
    Extent,
    Frequencies,
    as_vocabulary,
    count_messages,
    open_frequencies,
    places_of,
    times_counted,
    words_of,
)
from nearcast.ingest.row_groups import Piece, empty_table, in_tasks, pieces_of, read_pieces
from nearcast.spark.batch.ingest import read_counts
from nearcast.spark.runtime.session import SparkSession, cores_of, spark_path
from nearcast.spark.runtime.tasks import map_on_spark, task_numbers
from nearcast.tables.token_counts import FREQUENCIES, count_documents
from nearcast.text.analyser import Analyser

_LEAST_ROWS = 1 << 16  # per task: they take 50 ms, the task itself costs 8 ms
_MOST_ROWS = 1 << 22  # per piece


def build_vocabulary(
    session: SparkSession, messages: str, out: str, *, analyser: Analyser | None = None
) -> dict[str, Any]:
    """Write the vocabulary of a messages table to the file `out`. Messages with text but without tokens go through
    `analyser` (by default the one that the ingest recorded, else the default analyser).
    """
    found = count_tokens(session, messages, analyser)
    as_vocabulary(found).save(out)
    return {
        "messages": found.n_documents,
        "tokens": len(found.counts),
        "occurrences": int(found.counts.sum()),
        "out": str(out),
    }


def count_tokens(session: SparkSession, messages: str, analyser: Analyser | None = None) -> Frequencies:
    """Count tokens in one pass; only the distinct tokens of each task are shuffled."""
    names = _columns_of(messages, ("tokens", "text"))
    noted = analyser or _noted_analyser(messages)
    shares, n_rows = _shares_of(session, messages)

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for share in task_numbers(batches):
            tables = (read_pieces([piece], ("tokens", "text")) for piece in shares[share])
            yield from count_documents(tables, noted or Analyser())

    tasks = session.range(0, len(shares), 1, max(1, len(shares)))
    table = tasks.mapInArrow(count, "token string, frequency long").groupBy("token").sum("frequency").toArrow()
    table = table.rename_columns(FREQUENCIES.names).cast(FREQUENCIES)
    table = table.sort_by([("frequency", "descending"), ("token", "ascending")])
    made_by = noted or (Analyser() if "tokens" not in names else None)
    return Frequencies(table["token"], table["frequency"].to_numpy(), n_rows, made_by)


def statistics(session: SparkSession, messages: str, *, vocabulary: str | None = None) -> dict[str, Any]:
    """Plain values, fit for JSON and for `write_report`. `vocabulary` is the table's own file, where there is one."""
    names = _columns_of(messages, ("tokens", "text"))
    shares, n_messages = _shares_of(session, messages)
    if not n_messages:
        return {"messages": 0, "ingest": read_counts(messages)}
    extent = _extent(session, messages, names)
    work = partial(_count_share, extent, _noted_analyser(messages) or Analyser())
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


def _columns_of(table: str, one_of: Sequence[str]) -> list[str]:
    """The names of a table's columns; at least one of `one_of` must be among them."""
    nothing = empty_table(table)
    names = [] if nothing is None else list(nothing.column_names)
    if not {*one_of} & {*names}:
        wanted = " or ".join(f"'{name}'" for name in one_of)
        raise InvalidInput(f"{table} has no column {wanted}; there are {', '.join(names) or 'none'}")
    return names


def _shares_of(session: SparkSession, table: str) -> tuple[list[list[Piece]], int]:
    """(the pieces of a table in about four tasks per core, the number of rows)."""
    pieces = pieces_of(table, _MOST_ROWS)
    n_rows = sum(piece.n_rows for piece in pieces)
    return in_tasks(pieces, max(_LEAST_ROWS, n_rows // (4 * cores_of(session)))), n_rows


def _noted_analyser(messages: str) -> Analyser | None:
    """The analyser that the ingest recorded beside a table, or None."""
    counts = read_counts(messages)
    return Analyser.from_header(counts["analyser"]) if counts else None

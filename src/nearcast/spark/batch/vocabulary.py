"""Document frequencies of a messages table -> a vocabulary file.

Each task counts its own messages; Spark adds up the counts. Terms are numbered by descending frequency, and by token
where frequencies are equal, so the same messages give the same file however they are divided.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.arrays.arrow import list_parts
from nearcast.errors import InvalidInput
from nearcast.ingest.row_groups import Piece, empty_table, in_tasks, pieces_of
from nearcast.spark.batch.ingest import read_counts
from nearcast.spark.runtime.session import cores_of
from nearcast.tables.faults import Faults
from nearcast.tables.messages import message_tokens
from nearcast.text.analyser import Analyser
from nearcast.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FREQUENCIES = pa.schema([("token", pa.string()), ("frequency", pa.int64())])
_BATCH = 1 << 16  # tokens per batch for Spark
_LEAST_ROWS = 1 << 16  # per task: they take 50 ms, the task itself costs 8 ms
_MOST_ROWS = 1 << 22  # per piece


class Frequencies(NamedTuple):
    """In how many messages each token occurs, the most frequent first."""

    tokens: pa.ChunkedArray
    counts: np.ndarray  # int64[n]
    n_documents: int
    analyser: Analyser | None


def build_vocabulary(
    session: SparkSession, messages: str, out: str, *, analyser: Analyser | None = None
) -> dict[str, Any]:
    """Write the vocabulary of a messages table to the file `out`. Messages with text but without tokens go through
    `analyser` (by default the one that the ingest recorded, else the default analyser).
    """
    found = count_tokens(session, messages, analyser)
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    as_vocabulary(found).save(out)
    return {
        "messages": found.n_documents,
        "tokens": len(found.counts),
        "occurrences": int(found.counts.sum()),
        "out": str(out),
    }


def count_tokens(session: SparkSession, messages: str, analyser: Analyser | None = None) -> Frequencies:
    """Count tokens in one pass; only the distinct tokens of each task are shuffled."""
    names = columns_of(messages, ("tokens", "text"))
    noted = analyser or noted_analyser(messages)
    used = (noted or Analyser()).header()
    shares, n_rows = shares_of(session, messages)

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for share in batch["share"].to_pylist():
                yield from counted(shares[share], used)

    numbers = session.sparkContext.parallelize([(k,) for k in range(len(shares))], max(1, len(shares)))
    each = session.createDataFrame(numbers, "share int").mapInArrow(count, "token string, frequency long")
    table = each.groupBy("token").sum("frequency").toArrow()
    table = table.rename_columns(_FREQUENCIES.names).cast(_FREQUENCIES)
    table = table.sort_by([("frequency", "descending"), ("token", "ascending")])
    made_by = noted or (Analyser() if "tokens" not in names else None)
    return Frequencies(table["token"], table["frequency"].to_numpy(), n_rows, made_by)


def columns_of(table: str, one_of: Sequence[str]) -> list[str]:
    """The names of a table's columns; at least one of `one_of` must be among them."""
    nothing = empty_table(table)
    names = [] if nothing is None else list(nothing.column_names)
    if not {*one_of} & {*names}:
        wanted = " or ".join(f"'{name}'" for name in one_of)
        raise InvalidInput(f"{table} has no column {wanted}; there are {', '.join(names) or 'none'}")
    return names


def shares_of(session: SparkSession, table: str) -> tuple[list[list[Piece]], int]:
    """(the pieces of a table in about four tasks per core, the number of rows)."""
    pieces = pieces_of(table, _MOST_ROWS)
    n_rows = sum(piece.n_rows for piece in pieces)
    return in_tasks(pieces, max(_LEAST_ROWS, n_rows // (4 * cores_of(session)))), n_rows


def read_columns(pieces: Sequence[Piece], names: Sequence[str]) -> Iterator[pa.Table]:
    """The rows of these pieces, with the named columns that their files have."""
    for piece in pieces:
        with pq.ParquetFile(piece.file) as file:
            there = [name for name in names if name in file.schema_arrow.names]
            yield file.read_row_group(piece.row_group, columns=there).slice(piece.start, piece.n_rows)


def noted_analyser(messages: str) -> Analyser | None:
    """The analyser that the ingest recorded beside a table, or None."""
    counts = read_counts(messages)
    return Analyser.from_header(counts["analyser"]) if counts else None


def counted(pieces: Sequence[Piece], analyser: dict[str, Any]) -> Iterator[pa.RecordBatch]:
    """The distinct tokens of some messages, each with the number of messages that contain it."""
    vocabulary = Vocabulary()
    of_text = Analyser.from_header(analyser)
    for table in read_columns(pieces, ("tokens", "text")):
        tokens = message_tokens(_without_text(table), of_text, Faults(table.num_rows, "skip"))
        flat, starts = list_parts(tokens)
        if flat.null_count:
            raise InvalidInput("a token is null", column="tokens")
        vocabulary.count_documents(vocabulary.add(flat), starts)
    for first in range(0, len(vocabulary), _BATCH):
        terms = np.arange(first, min(first + _BATCH, len(vocabulary)))
        tokens = vocabulary.tokens(terms)
        yield pa.RecordBatch.from_arrays([tokens, pa.array(vocabulary.frequencies[terms])], schema=_FREQUENCIES)


def _without_text(table: pa.Table) -> pa.Table:
    """The table without its text if no tokens are missing: the text is then not needed."""
    has_all = "tokens" in table.column_names and not table["tokens"].null_count
    return table.select(["tokens"]) if has_all else table


def as_vocabulary(found: Frequencies) -> Vocabulary:
    """A vocabulary with these terms, in this order, and their counts."""
    vocabulary = Vocabulary(found.analyser)
    for chunk in found.tokens.chunks:
        vocabulary.add(chunk)
    arrays = {**vocabulary.arrays(), "frequencies": found.counts.astype(np.int64)}
    return Vocabulary.from_arrays(arrays, {**vocabulary.header(), "n_documents": found.n_documents})


def open_frequencies(path: str) -> Frequencies:
    """The frequencies of a vocabulary file, the most frequent token first."""
    vocabulary = Vocabulary.open(path)
    order = np.argsort(-vocabulary.frequencies, kind="stable")
    tokens = pa.chunked_array([vocabulary.tokens(part) for part in np.array_split(order, len(order) // _BATCH + 1)])
    return Frequencies(tokens, vocabulary.frequencies[order], vocabulary.n_documents, vocabulary.analyser)

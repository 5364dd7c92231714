"""Document frequencies of a messages table -> a vocabulary file.

Each task counts its own messages; Spark adds up the counts. Terms are numbered by descending frequency, and by token
where frequencies are equal, so the same messages give the same file however they are divided.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.errors import InvalidInput
from nearcast.ingest.reports.message_counts import Frequencies
from nearcast.ingest.row_groups import Piece, empty_table, in_tasks, pieces_of, read_pieces
from nearcast.spark.batch.ingest import read_counts
from nearcast.spark.runtime.session import SparkSession, cores_of
from nearcast.spark.runtime.tasks import task_numbers
from nearcast.tables.token_counts import FREQUENCIES, count_documents
from nearcast.text.analyser import Analyser
from nearcast.text.vocabulary import Vocabulary

_BATCH = 1 << 16  # tokens in a chunk of a frequency table
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
    names = columns_of(messages, ("tokens", "text"))
    noted = analyser or noted_analyser(messages)
    shares, n_rows = shares_of(session, messages)

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


def noted_analyser(messages: str) -> Analyser | None:
    """The analyser that the ingest recorded beside a table, or None."""
    counts = read_counts(messages)
    return Analyser.from_header(counts["analyser"]) if counts else None


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

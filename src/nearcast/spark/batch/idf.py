"""The weights that the library would give to tokens, over a table that no task sees whole.

Each task tells how many of its subscriptions want each token, and where the token came first; tokens are gathered by
hash and added up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.sharding.routing.router import hashes_of
from nearcast.sharding.weights import Weights
from nearcast.spark.batch.arrow_payload import SHIPPED_SCHEMA, Parcel, as_bytes, from_bytes, shipped, unpacked
from nearcast.spark.batch.duplicate_ids import Source
from nearcast.tables import Dialect, Subscriptions, idf, read_subscriptions, subscriptions_per_term
from nearcast.tables.columns import strings_of
from nearcast.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MOST_PARTS = 64
_COUNTS = pa.schema([("token", pa.string()), ("n", pa.int64()), ("at", pa.int64())])
_TOLD = "content binary, subscriptions long"


class CountJob(NamedTuple):
    """All that a task must know."""

    source: Source
    dialect: Dialect
    n_parts: int


def counted_weights(session: SparkSession, source: Source, dialect: Dialect) -> Weights:
    """ln(1 + N/df) over all good subscriptions, of any kind."""
    n_tasks = len(source.tasks)
    told: list[Any] = []
    if n_tasks:
        job = CountJob(source, dialect, min(n_tasks, _MOST_PARTS))
        counted = session.range(0, n_tasks, 1, n_tasks).mapInArrow(partial(_count, job), SHIPPED_SCHEMA)
        together = counted.repartitionById(job.n_parts, counted["partition"])
        told = together.mapInArrow(_add_up, _TOLD).collect()
    table = pa.concat_tables([_COUNTS.empty_table(), *(from_bytes(row["content"]) for row in told)]).sort_by("at")
    vocabulary = Vocabulary()
    vocabulary.add(table["token"])
    return Weights(vocabulary, idf(table["n"].to_numpy(), sum(row["subscriptions"] for row in told)))


def _count(job: CountJob, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for task in batch.column("id").to_pylist():
            table = job.source.read(task).table
            vocabulary = Vocabulary()
            read = read_subscriptions(table, vocabulary, job.dialect)
            counts = _counts(read, table, vocabulary, task)
            parts = hashes_of(counts["token"].combine_chunks()) % job.n_parts
            yield from shipped(
                Parcel(k, k, counts.filter(pa.array(parts == k)), str(len(read.ids) if k == 0 else 0).encode())
                for k in range(job.n_parts)
            )


def _counts(read: Subscriptions, table: pa.Table, vocabulary: Vocabulary, task: int) -> pa.Table:
    """Each token with how many want it, and its place in the order in which the library numbers tokens: first those of
    plain rows over the whole table, then those of expressions and regions, then what only ranked rows have.
    """
    terms = np.arange(len(vocabulary))
    rows = read.rows
    n_plain = rows.size - int(np.count_nonzero(np.isin(rows.owner_ids, _rich_ids(read, table))))
    after_plain = rows.terms[: rows.term_starts[n_plain]].max(initial=-1) + 1
    after_rich = max(rows.terms.max(initial=-1), rows.not_terms.max(initial=-1), after_plain - 1) + 1
    stage = (terms >= after_plain).astype(np.int64) + (terms >= after_rich)
    at = (stage << 60) | (task << 32) | terms
    return pa.table([vocabulary.tokens(terms), subscriptions_per_term(read, len(terms)), at], schema=_COUNTS)


def _rich_ids(read: Subscriptions, table: pa.Table) -> np.ndarray:
    """The good ones with an expression or a region, which the library reads after all others."""
    is_rich = np.zeros(table.num_rows, bool)
    for name in ("expression", "region"):
        values = strings_of(table, name)
        if values is not None:
            is_rich |= values.is_valid().to_numpy(zero_copy_only=False)
    is_good = np.ones(table.num_rows, bool)
    is_good[read.rejects["row"].to_numpy()] = False
    return np.asarray(read.ids[is_rich[is_good]])


def _add_up(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    tables, n_subscriptions = [_COUNTS.empty_table()], 0
    for parcel in unpacked(batches):
        tables.append(parcel.table)
        n_subscriptions += int(parcel.note or b"0")
    added = pa.concat_tables(tables).group_by("token").aggregate([("n", "sum"), ("at", "min")])
    added = pa.table([added["token"], added["n_sum"], added["at_min"]], schema=_COUNTS)
    yield pa.record_batch(
        {"content": pa.array([as_bytes(added)]), "subscriptions": pa.array([n_subscriptions], pa.int64())}
    )

"""Default token weights over a subscriptions table that no single task reads.

Each task counts how many of its subscriptions contain each token, and notes where the token came first. The counts are
shuffled by the hash of the token and added up. The weights are the same as those of a single index.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.ingest.broker_values import as_arrow_stream
from nearcast.sharding.routing.router import hashes_of
from nearcast.sharding.weights import Weights
from nearcast.spark.batch.duplicate_ids import Source
from nearcast.spark.runtime.arrow_payload import ArrowPayload, read_arrow_stream
from nearcast.spark.runtime.tasks import run_on_shards, send_payloads
from nearcast.tables import Dialect, Subscriptions, idf, read_subscriptions, subscriptions_per_term
from nearcast.tables.columns import strings_of
from nearcast.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MOST_PARTS = 64
_COUNTS = pa.schema([("token", pa.string()), ("n", pa.int64()), ("at", pa.int64())])
_REPORT_SCHEMA = pa.schema([("content", pa.binary()), ("subscriptions", pa.int64())])


class CountJob(NamedTuple):
    """What every task must know. Small: it travels to workers with each task."""

    source: Source
    dialect: Dialect
    n_parts: int


def counted_weights(session: SparkSession, source: Source, dialect: Dialect) -> Weights:
    """ln(1 + N/df) over all good subscriptions, of any kind."""
    n_tasks = len(source.tasks)
    reports: list[Any] = []
    if n_tasks:
        job = CountJob(source, dialect, min(n_tasks, _MOST_PARTS))
        counted = send_payloads(session, n_tasks, partial(_count, job), job.n_parts)
        reports = run_on_shards(counted, _add_up, _REPORT_SCHEMA)
    tables = [_COUNTS.empty_table(), *(read_arrow_stream(row["content"]) for row in reports)]
    table = pa.concat_tables(tables).sort_by("at")
    vocabulary = Vocabulary()
    vocabulary.add(table["token"])
    return Weights(vocabulary, idf(table["n"].to_numpy(), sum(row["subscriptions"] for row in reports)))


def _count(job: CountJob, task: int) -> Iterator[ArrowPayload]:
    table = job.source.read(task).table
    vocabulary = Vocabulary()
    read = read_subscriptions(table, vocabulary, job.dialect)
    counts = _counts(read, table, vocabulary, task)
    parts = hashes_of(counts["token"].combine_chunks()) % job.n_parts
    for k in range(job.n_parts):
        n_subscriptions = len(read.ids) if k == 0 else 0
        yield ArrowPayload(k, k, counts.filter(pa.array(parts == k)), str(n_subscriptions).encode())


def _counts(read: Subscriptions, table: pa.Table, vocabulary: Vocabulary, task: int) -> pa.Table:
    """Each token with its count and its place in the order in which one index over the whole table numbers tokens:
    first tokens of plain rows, then those of expressions and regions, then those of ranked rows only.
    """
    terms = np.arange(len(vocabulary))
    rows = read.rows()
    n_plain = rows.size - int(np.count_nonzero(np.isin(rows.owner_ids, _rich_ids(read, table))))
    after_plain = rows.terms[: rows.term_starts[n_plain]].max(initial=-1) + 1
    after_rich = max(rows.terms.max(initial=-1), rows.not_terms.max(initial=-1), after_plain - 1) + 1
    stage = (terms >= after_plain).astype(np.int64) + (terms >= after_rich)
    at = (stage << 60) | (task << 32) | terms
    return pa.table([vocabulary.tokens(terms), subscriptions_per_term(read, len(terms)), at], schema=_COUNTS)


def _rich_ids(read: Subscriptions, table: pa.Table) -> np.ndarray:
    """The good subscriptions with an expression or a region, which a table reader reads after all others."""
    is_rich = np.zeros(table.num_rows, bool)
    for name in ("expression", "region"):
        values = strings_of(table, name)
        if values is not None:
            is_rich |= values.is_valid().to_numpy(zero_copy_only=False)
    is_good = np.ones(table.num_rows, bool)
    is_good[read.rejects["row"].to_numpy()] = False
    return np.asarray(read.ids[is_rich[is_good]])


def _add_up(part: int, payloads: list[ArrowPayload]) -> Iterator[list[Any]]:
    n_subscriptions = sum(int(payload.note or b"0") for payload in payloads)
    counts = pa.concat_tables([payload.table for payload in payloads])
    added = counts.group_by("token").aggregate([("n", "sum"), ("at", "min")])
    added = pa.table([added["token"], added["n_sum"], added["at_min"]], schema=_COUNTS)
    yield [as_arrow_stream(added), n_subscriptions]

"""Default token weights over a subscriptions table that no single task reads.

Each task counts how many of its subscriptions contain each token, and notes where the token came first. The counts are
shuffled by the hash of the token and added up. The weights are the same as those of a single index.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa

from nearcast.ingest.row_groups import Source
from nearcast.sharding.routing.router import hashes_of
from nearcast.sharding.weights import Weights
from nearcast.spark.runtime.session import SparkSession
from nearcast.spark.runtime.tasks import ArrowPayload, join_tables, run_on_shards, send_payloads
from nearcast.tables import Dialect, Subscriptions, idf, read_subscriptions, subscriptions_per_term
from nearcast.tables.columns import strings_of
from nearcast.text.vocabulary import Vocabulary

_MOST_PARTS = 64
_COUNTS = pa.schema([("token", pa.string()), ("n", pa.int64()), ("at", pa.int64())])


def counted_weights(session: SparkSession, source: Source, dialect: Dialect) -> Weights:
    """ln(1 + N/df) over all good subscriptions, of any kind."""
    n_tasks = len(source.tasks)
    n_parts = min(n_tasks, _MOST_PARTS)
    reports: list[tuple[pa.Table, int]] = []
    if n_tasks:
        counted = send_payloads(session, n_tasks, partial(_count, source, dialect, n_parts), n_parts)
        reports = run_on_shards(counted, _add_up)
    table = pa.concat_tables([_COUNTS.empty_table(), *(counts for counts, _ in reports)]).sort_by("at")
    vocabulary = Vocabulary()
    vocabulary.add(table["token"])
    return Weights(vocabulary, idf(table["n"].to_numpy(), sum(n_subscriptions for _, n_subscriptions in reports)))


def _count(source: Source, dialect: Dialect, n_parts: int, task: int) -> Iterator[ArrowPayload]:
    table = source.read(task).table
    vocabulary = Vocabulary()
    read = read_subscriptions(table, vocabulary, dialect)
    counts = _counts(read, table, vocabulary, task)
    parts = hashes_of(counts["token"].combine_chunks()) % n_parts
    for k in range(n_parts):
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
    return np.asarray(read.ids[np.delete(is_rich, read.rejects["row"].to_numpy())])


def _add_up(part: int, payloads: list[ArrowPayload]) -> Iterator[tuple[pa.Table, int]]:
    """(the counts of all payloads added up, the number of subscriptions)."""
    added = join_tables(payloads).group_by("token").aggregate([("n", "sum"), ("at", "min")])
    added = pa.table([added["token"], added["n_sum"], added["at_min"]], schema=_COUNTS)
    yield added, sum(int(payload.note or b"0") for payload in payloads)

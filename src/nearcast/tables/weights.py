"""Weights of tokens, by term: read from a table or a vocabulary, or computed from the subscriptions."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.arrays.ragged import distinct
from nearcast.errors import InvalidInput
from nearcast.model import LARGEST_WEIGHT, RowBatch
from nearcast.tables.columns import column, floats_of, repeated_rows, require_one, strings_of
from nearcast.tables.faults import Faults
from nearcast.tables.read import as_arrow
from nearcast.tables.subscriptions import Subscriptions
from nearcast.text.vocabulary import Vocabulary
from nearcast.text.vocabulary_file import MAGIC


def read_weights(source: Any, vocabulary: Vocabulary) -> np.ndarray:
    """float64[len(vocabulary)]: the weights of `source`, whose tokens are added to the vocabulary.

    `source` is a table (token, weight), another vocabulary, or a file of either. Tokens without a weight get the
    largest weight, or 1 if there is none.
    """
    source = _opened(source)
    if isinstance(source, Vocabulary):
        if len(source) and not source.n_documents:
            raise InvalidInput("this vocabulary has counted no documents, so its tokens have no weights")
        tokens, weights = source.tokens(np.arange(len(source))), source.weights()
    else:
        tokens, weights = _columns(as_arrow(source))
    terms = vocabulary.add(tokens)
    by_term = np.full(len(vocabulary), weights.max() if len(weights) else 1.0)
    by_term[terms] = weights
    return by_term


def weights_table(weights: np.ndarray, vocabulary: Vocabulary) -> pa.Table:
    """Weights by term as a table (token, weight)."""
    return pa.table({"token": vocabulary.tokens(np.arange(len(weights))), "weight": weights})


def _opened(source: Any) -> Any:
    """The vocabulary of a saved file, which its first bytes identify; any other source unchanged."""
    if not isinstance(source, str | os.PathLike):
        return source
    from nearcast.storage.location import locate

    place = locate(source)
    is_vocabulary = place.is_file() and place.read(0, len(MAGIC)) == MAGIC
    return Vocabulary.open(source) if is_vocabulary else source


def _columns(table: pa.Table) -> tuple[pa.Array, np.ndarray]:
    """(tokens, weights), all valid. Any fault raises: a skipped weight would silently become the largest."""
    faults = Faults(table.num_rows, "raise")
    for name in ("token", "weight"):
        require_one(table, (name,), "weights")
    tokens, weights = strings_of(table, "token"), floats_of(table, "weight", faults)
    tokens = pa.nulls(table.num_rows, pa.string()) if tokens is None else tokens
    weights = np.full(table.num_rows, np.nan) if weights is None else weights
    faults.add_where(tokens.is_null().to_numpy(zero_copy_only=False), "token", "no token")
    is_valid = (weights >= 0.0) & (weights <= LARGEST_WEIGHT)
    for row in np.flatnonzero(~is_valid):
        reason = f"{_shown(table, int(row))} is not a weight; it is a number from 0 to {LARGEST_WEIGHT:g}"
        faults.add(int(row), "weight", reason)
    terms = Vocabulary().add(tokens.take(pa.array(faults.good_rows)))
    for row in repeated_rows(terms, faults):
        faults.add(int(row), "token", f"'{tokens[int(row)].as_py()}' has a weight already; name each token once")
    faults.raise_or_reject(table)
    return tokens, weights


def _shown(table: pa.Table, row: int) -> str:
    values = column(table, "weight")
    value = None if values is None else values[row].as_py()
    return "null" if value is None else repr(value)


def idf_weights(read: Subscriptions, vocabulary: Vocabulary) -> np.ndarray:
    """float64[n_terms]: ln(1 + N / df) over these subscriptions of all kinds."""
    return idf(subscriptions_per_term(read, vocabulary), len(read.ids))


def subscriptions_per_term(read: Subscriptions, vocabulary: Vocabulary) -> np.ndarray:
    """int64[n_terms]: the number of these subscriptions that require each term; a term under NOT does not count. The
    words of a phrase and of an OR count, prefixes and filters do not.
    """
    counts = np.zeros(len(vocabulary), np.int64)
    for rows in read.batches.values():
        terms, starts = vocabulary.with_plain_terms(rows.terms, rows.term_starts)
        counts += _frequencies(rows._replace(terms=terms, term_starts=starts), len(vocabulary))
    return counts


def idf(counts: np.ndarray, n_subscriptions: int) -> np.ndarray:
    """float64[n_terms]: ln(1 + N / df); terms that no subscription requires get the largest weight."""
    weights = np.log1p(n_subscriptions / np.maximum(counts, 1))
    largest = weights[counts > 0].max() if counts.any() else 1.0
    return np.asarray(np.where(counts > 0, weights, largest))


def _frequencies(rows: RowBatch, n_terms: int) -> np.ndarray:
    """int64[n_terms]: the number of subscriptions with each term; a subscription of several rows counts once."""
    is_first = np.ones(rows.size, bool)
    is_first[1:] = rows.owner_ids[1:] != rows.owner_ids[:-1]
    if is_first.all():
        return np.bincount(rows.terms, minlength=n_terms)
    owners = np.repeat(np.cumsum(is_first), np.diff(rows.term_starts))
    return np.bincount(distinct(owners << 32 | rows.terms) & 0xFFFFFFFF, minlength=n_terms)

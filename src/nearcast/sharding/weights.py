"""Token weights of ranked subscriptions: the same in all shards, saved with a version of the index.

The weights of a row are summed in the order of its terms, and each shard numbers terms in its own vocabulary. Tokens
therefore come in the order in which a single index over all subscriptions would number them. Scores are then equal
to those of the single index bit for bit, even exactly at a threshold.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.arrays.arrow import list_parts
from nearcast.matching.row_params import DEFAULT_WEIGHT
from nearcast.matching.subscription_set import part_of
from nearcast.storage.bundles import read_bundle, write_bundle
from nearcast.tables import Dialect, Subscriptions, idf, read_subscriptions, read_weights, subscriptions_per_term
from nearcast.tables.columns import strings_of, tokens_of
from nearcast.tables.faults import Faults, rejected_positions
from nearcast.tables.regions.plain_regions import with_plain_regions
from nearcast.text.vocabulary import Vocabulary

FORMAT = ("nearcast-weights", 1)


class Weights(NamedTuple):
    """A weight for each term of a vocabulary. An unknown token has the largest weight."""

    vocabulary: Vocabulary
    by_term: np.ndarray  # float64[len(vocabulary)]

    @property
    def largest(self) -> float:
        return float(self.by_term.max()) if len(self.by_term) else DEFAULT_WEIGHT

    def of_terms(self, vocabulary: Vocabulary) -> np.ndarray:
        """float64[n]: the weight of each term of another vocabulary."""
        return self._of(self.vocabulary.lookup(vocabulary.tokens(np.arange(len(vocabulary)))))

    def of_ranked(self, subscriptions: pa.Table) -> pa.Table:
        """A table (token, weight) of all tokens of the ranked subscriptions, for `build_index(weights=)`."""
        tokens = tokens_of(ranked_rows(subscriptions), Faults(subscriptions.num_rows, "raise"))
        wanted = Vocabulary()
        if tokens is not None:
            wanted.add(list_parts(tokens)[0])
        known = self.vocabulary.lookup(wanted.tokens(np.arange(len(wanted))))
        order = np.lexsort((known, known < 0))  # unknown tokens last, in any order: they weigh the same
        return pa.table({"token": wanted.tokens(order), "weight": self._of(known[order])})

    def _of(self, known: np.ndarray) -> np.ndarray:
        weights = np.full(len(known), self.largest)
        weights[known >= 0] = self.by_term[known[known >= 0]]
        return weights

    def save(self, path: str | os.PathLike[str]) -> None:
        arrays = {f"vocabulary.{name}": array for name, array in self.vocabulary.arrays().items()}
        write_bundle(path, FORMAT, arrays | {"weights": self.by_term}, {"vocabulary": self.vocabulary.header()})

    @classmethod
    def open(cls, path: str | os.PathLike[str], verify: bool = True) -> Weights:
        """Open saved weights as a map, which the processes of one machine share."""
        arrays, header = read_bundle(path, FORMAT, verify)
        vocabulary = Vocabulary.from_arrays(part_of(arrays, "vocabulary"), header["vocabulary"])
        return cls(vocabulary, arrays["weights"])


def given_weights(source: Any) -> Weights:
    """Weights from a table (token, weight), a vocabulary, or the file of either, as `build_index(weights=)` takes."""
    vocabulary = Vocabulary()
    return Weights(vocabulary, read_weights(source, vocabulary))


def ranked_rows(subscriptions: pa.Table) -> pa.Table:
    """The subscriptions of kind `rank`."""
    kinds = strings_of(subscriptions, "kind")
    return subscriptions.slice(0, 0) if kinds is None else subscriptions.filter(pc.equal(kinds, "rank"))


def unranked_rows(subscriptions: pa.Table) -> pa.Table:
    """The subscriptions of all other kinds."""
    kinds = strings_of(subscriptions, "kind")
    return subscriptions if kinds is None else subscriptions.filter(pc.not_equal(kinds.fill_null("match"), "rank"))


# -- default weights over a table that no single process reads


class TokenCounts(NamedTuple):
    """How many subscriptions of some rows contain each token, and where the token came first."""

    table: pa.Table  # token, n, at
    n_subscriptions: int


TOKEN_COUNTS_SCHEMA = pa.schema([("token", pa.string()), ("n", pa.int64()), ("at", pa.int64())])


def count_tokens(subscriptions: pa.Table, task: int, dialect: Dialect) -> TokenCounts:
    """The counts over the good subscriptions of one task, of any kind."""
    vocabulary = Vocabulary()
    read = read_subscriptions(subscriptions, vocabulary, dialect)
    plain = with_plain_regions(subscriptions, dialect.space, Faults(subscriptions.num_rows, "skip"))
    return TokenCounts(_counts(read, plain, vocabulary, task), len(read.ids))


def add_token_counts(counts: pa.Table) -> pa.Table:
    """The counts of several tasks added up."""
    added = counts.group_by("token").aggregate([("n", "sum"), ("at", "min")])
    return pa.table([added["token"], added["n_sum"], added["at_min"]], schema=TOKEN_COUNTS_SCHEMA)


def idf_weights(counts: pa.Table, n_subscriptions: int) -> Weights:
    """ln(1 + N/df), as a single index over all subscriptions has them."""
    counts = counts.sort_by("at")
    vocabulary = Vocabulary()
    vocabulary.add(counts["token"])
    return Weights(vocabulary, idf(counts["n"].to_numpy(), n_subscriptions))


def _counts(read: Subscriptions, table: pa.Table, vocabulary: Vocabulary, task: int) -> pa.Table:
    """Each token with its count and its place in the order in which one index over the whole table numbers tokens:
    first tokens of plain rows, then those of expressions and regions, then those of their phrases and long ORs, then
    those of ranked rows only.
    """
    terms = np.arange(len(vocabulary))
    rows = read.rows()
    n_plain = rows.size - int(np.count_nonzero(np.isin(rows.owner_ids, _rich_ids(read, table))))
    after_plain = rows.terms[: rows.term_starts[n_plain]].max(initial=-1) + 1
    after_rich = max(rows.terms.max(initial=-1), rows.not_terms.max(initial=-1), after_plain - 1) + 1
    is_used = np.zeros(len(vocabulary), bool)
    is_used[rows.terms] = is_used[rows.not_terms] = True
    vocabulary.mark_members(is_used)
    after_members = max(after_rich, int(np.flatnonzero(is_used).max(initial=-1)) + 1)
    stage = (terms >= after_plain).astype(np.int64) + (terms >= after_rich) + (terms >= after_members)
    at = (stage << 60) | (task << 32) | terms
    return pa.table(
        [vocabulary.tokens(terms), subscriptions_per_term(read, vocabulary), at], schema=TOKEN_COUNTS_SCHEMA
    )


def _rich_ids(read: Subscriptions, table: pa.Table) -> np.ndarray:
    """The good subscriptions with an expression or a region, which a table reader reads after all others."""
    is_rich = np.zeros(table.num_rows, bool)
    for name in ("expression", "region"):
        values = strings_of(table, name)
        if values is not None:
            is_rich |= values.is_valid().to_numpy(zero_copy_only=False)
    return np.asarray(read.ids[np.delete(is_rich, rejected_positions(read.rejects))])

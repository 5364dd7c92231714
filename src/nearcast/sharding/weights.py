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
from nearcast.tables import read_weights
from nearcast.tables.columns import strings_of, tokens_of
from nearcast.tables.faults import Faults
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

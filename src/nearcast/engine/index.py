"""The index: tables in, matches out, over any method and every kind."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa

import nearcast.indexes  # noqa: F401  registers where methods come from
from nearcast.errors import InvalidInput
from nearcast.geo.space import Space
from nearcast.matching.method import find_method, method_options
from nearcast.matching.row_params import NO_WEIGHTS
from nearcast.matching.subscription_set import SubscriptionSet, part_of
from nearcast.matching.verify import merged
from nearcast.model import KINDS, MATCH, Found, Kind, MessageBatch, Work
from nearcast.storage import load_index, save_index
from nearcast.tables import (
    Dialect,
    OnBad,
    Subscriptions,
    idf_weights,
    matches_table,
    read_messages,
    read_subscriptions,
    read_weights,
)
from nearcast.text.analyser import Analyser
from nearcast.text.vocabulary import Vocabulary

_SAVED_AS = {"match": "matcher", "rank": "ranker"}
"""The names of kinds in index format 3. The arrays of kind `match` have no prefix there."""


class Index:
    """Subscriptions, ready to be matched. Made by `build_index` and `open_index`."""

    def __init__(
        self,
        plain: SubscriptionSet,
        vocabulary: Vocabulary,
        analyser: Analyser,
        weights: np.ndarray | None = None,
        others: Iterable[SubscriptionSet] = (),
    ) -> None:
        self._sets = {each.kind.name: each for each in (plain, *others)}  # kind `match` is always there
        self.vocabulary = vocabulary
        self.analyser = analyser
        self._weights = weights  # by term; None until the first subscriptions fix them
        self.rejects: pa.Table | None = None
        """The bad rows of the last table given with on_bad="skip"."""

    def __len__(self) -> int:
        return sum(len(each) for each in self._sets.values())

    def __repr__(self) -> str:
        return f"<nearcast index: {len(self):,} subscriptions, method {self.method}, {self.nbytes:,} bytes>"

    def subscriptions_of(self, kind: Kind = MATCH) -> SubscriptionSet | None:
        """The live subscriptions of a kind, below tables and strings; None while there are none, except for `match`."""
        found = self._sets.get(kind.name)
        return found if found is not None and (kind is MATCH or len(found)) else None

    @property
    def matcher(self) -> SubscriptionSet:
        """The live subscriptions of kind `match`, below tables and strings."""
        return self._sets[MATCH.name]

    @property
    def is_scored(self) -> bool:
        """Whether matches have a score: some subscriptions are of a scored kind."""
        return any(each.kind.is_scored for each in self._live_sets)

    @property
    def _live_sets(self) -> list[SubscriptionSet]:
        return [each for each in self._sets.values() if each.kind is MATCH or len(each)]

    @property
    def method(self) -> str:
        return self.matcher.method.name

    @property
    def plan(self) -> str:
        """What does the work, in words: the method itself, or the method that `auto` chose and why."""
        first, *others = self._live_sets
        return "; ".join([first.method.plan, *(f"kind {each.kind.name}: {each.method.plan}" for each in others)])

    @property
    def stats(self) -> Work:
        """Work done since the index was made: nodes visited, candidates compared, matches."""
        return reduce(Work.plus, (each.stats for each in self._sets.values()))

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, vocabulary and weights included."""
        weights = 0 if self._weights is None else int(self._weights.nbytes)
        return sum(each.nbytes for each in self._sets.values()) + self.vocabulary.nbytes + weights

    @property
    def space(self) -> Space:
        return self.matcher.space

    def match(self, messages: Any, *, threads: int = 1, on_bad: OnBad = "raise") -> pa.Table:
        """All (message, subscription) pairs, sorted, as a matches table.

        The table has a column `score`, null for unscored kinds, while some subscriptions are of a scored kind (`rank`).
        """
        batch = self.read_messages(messages, on_bad=on_bad)
        found = self.match_batch(batch, threads)
        return matches_table(batch.ids, found.ids, found.starts, found.scores)

    def match_batch(self, batch: MessageBatch, threads: int = 1) -> Found:
        """The matches of messages that `read_messages` has read."""
        return reduce(merged, (each.match(batch, threads) for each in self._live_sets))

    def match_one(self, tokens: Iterable[str], x: float, y: float) -> np.ndarray:
        """The sorted ids of the subscriptions that one message at a point concerns."""
        if not (math.isfinite(x) and math.isfinite(y)):
            raise InvalidInput(f"the place ({x}, {y}) is not finite")
        terms = self.vocabulary.terms(tokens)
        sets = self._sets
        if len(sets) == 1:
            return sets["match"].match_one(terms, x, y)
        return np.sort(np.concatenate([each.match_one(terms, x, y) for each in sets.values()]))

    def read_messages(self, messages: Any, *, on_bad: OnBad = "raise") -> MessageBatch:
        """A messages table as the terms and places of this index."""
        batch, self.rejects = read_messages(messages, self.vocabulary, self._dialect(on_bad))
        return batch

    def insert(self, subscriptions: Any, *, on_bad: OnBad = "raise") -> None:
        """Add subscriptions; the same id again replaces. Bad rows raise before anything is changed."""
        read = read_subscriptions(subscriptions, self.vocabulary, self._dialect(on_bad))
        self.rejects = read.rejects
        self.insert_read(read)

    def insert_read(self, read: Subscriptions) -> None:
        """Add subscriptions that were read with this index's vocabulary."""
        for kind in read.batches:
            find_method(kind, self.method)
        if self._weights is None and len(read.ids):
            self._weights = idf_weights(read, len(self.vocabulary))
        self.remove(read.ids)  # of every kind: also ids whose new expression can never hold and has no row
        for kind, batch in read.batches.items():
            if batch.size:
                self._set_of(KINDS[kind]).insert(batch, read.shapes)

    def _set_of(self, kind: Kind) -> SubscriptionSet:
        """The set of a kind, created on first use with those of the method's options that the kind's method takes."""
        if kind.name not in self._sets:
            known = method_options(find_method(kind.name, self.method))
            options = {name: value for name, value in self.matcher.options.items() if name in known}
            weights = NO_WEIGHTS if self._weights is None else self._weights
            self._sets[kind.name] = SubscriptionSet(self.method, self.space, options, kind, weights)
        return self._sets[kind.name]

    def remove(self, ids: Iterable[int] | np.ndarray) -> None:
        """Forget subscriptions; an unknown id is no error."""
        gone = np.asarray(ids if isinstance(ids, np.ndarray) else list(ids), np.int64)
        for each in self._sets.values():
            each.remove(gone)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index to a folder, whole or not at all."""
        arrays = {f"vocabulary.{name}": array for name, array in self.vocabulary.arrays().items()}
        parts: dict[str, Any] = {"vocabulary": self.vocabulary.header(), "analyser": self.analyser.header()}
        if self._weights is not None:
            arrays["weights"] = self._weights
        for each in self._sets.values():
            name = _SAVED_AS.get(each.kind.name, each.kind.name)
            own, parts[name] = each.state()
            prefix = "" if each.kind is MATCH else f"{name}."
            arrays |= {f"{prefix}{key}": array for key, array in own.items()}
        save_index(path, arrays, parts)

    def _dialect(self, on_bad: OnBad) -> Dialect:
        return Dialect(self.analyser, self.space, on_bad)


def build_index(
    subscriptions: Any,
    method: str = "auto",
    weights: Any = None,
    space: Sequence[float] | None = None,
    *,
    messages: Any = None,
    **options: Any,
) -> Index:
    """An index over a subscriptions table.

    `weights` are the tokens' weights for kind `rank`: a table (token, weight) or a Vocabulary; the default is
    ln(1 + N/df) over the subscriptions. `space` makes coordinates planar. `messages` is a sample of the messages to
    come, for methods that plan by it (`auto`). The options are `analyser=`, `on_bad=` and those of the method.
    """
    analyser = options.pop("analyser", None) or Analyser()
    on_bad = options.pop("on_bad", "raise")
    if not isinstance(analyser, Analyser):
        raise InvalidInput(f"analyser is a nearcast.Analyser, not {type(analyser).__name__}")
    vocabulary = Vocabulary()
    by_term = None if weights is None else read_weights(weights, vocabulary)
    index = Index(SubscriptionSet(method, Space.of(space), options), vocabulary, analyser, by_term)
    read = read_subscriptions(subscriptions, index.vocabulary, index._dialect(on_bad))
    if messages is not None:
        index.matcher.expect(index.read_messages(messages, on_bad=on_bad))  # known tokens are those just read
    index.rejects = read.rejects
    index.insert_read(read)
    return index


def open_index(path: str | os.PathLike[str], verify: bool = True) -> Index:
    """A saved index, memory-mapped and shared with other processes. Changes stay in this process."""
    arrays, header = load_index(path, verify)
    analyser = Analyser.from_header(header["analyser"])
    vocabulary = Vocabulary.from_arrays(part_of(arrays, "vocabulary"), header["vocabulary"])
    sets = []
    for kind in KINDS.values():
        name = _SAVED_AS.get(kind.name, kind.name)
        if name in header:
            own = arrays if kind is MATCH else part_of(arrays, name)
            sets.append(SubscriptionSet.restored(own, header[name], kind))
    return Index(sets[0], vocabulary, analyser, arrays.get("weights"), sets[1:])

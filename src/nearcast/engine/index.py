"""The index that people hold: tables in, tables out, over any method."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

import nearcast.indexes  # noqa: F401  registers every method
from nearcast.errors import InvalidInput, UnsupportedKind
from nearcast.geo.space import Space
from nearcast.matching.matcher import Matcher
from nearcast.matching.method import method_options
from nearcast.matching.rank_method import find_rank_method
from nearcast.matching.ranker import Ranker, merged
from nearcast.matching.row_keeper import part_of
from nearcast.model import Found, MessageBatch, Work
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


class Index:
    """Subscriptions, ready to be matched. Made by `build_index` and `open_index`."""

    def __init__(
        self,
        matcher: Matcher,
        vocabulary: Vocabulary,
        analyser: Analyser,
        weights: np.ndarray | None = None,
        ranker: Ranker | None = None,
    ) -> None:
        self._matcher = matcher
        self._vocabulary = vocabulary
        self._analyser = analyser
        self._weights = weights  # by term; None until the first subscriptions fix them
        self._ranker = ranker  # None until there is something to rank
        self.rejects: pa.Table | None = None
        """The bad rows of the last table given with on_bad="skip"."""

    def __len__(self) -> int:
        return sum(len(keeper) for keeper in self._keepers)

    def __repr__(self) -> str:
        return f"<nearcast index: {len(self):,} subscriptions, method {self.method}, {self.nbytes:,} bytes>"

    @property
    def _keepers(self) -> list[Matcher | Ranker]:
        return [self._matcher] if self._ranker is None else [self._matcher, self._ranker]

    @property
    def method(self) -> str:
        return self._matcher.method.name

    @property
    def plan(self) -> str:
        """What does the work, in words: the method itself, or the one that `auto` chose and why."""
        plan = self._matcher.method.plan
        return plan if self.ranker is None else f"{plan}; ranked by {self.ranker.method.plan}"

    @property
    def stats(self) -> Work:
        """Work done since the index was made: nodes visited, candidates compared, matches."""
        return self._matcher.stats if self._ranker is None else self._matcher.stats.plus(self._ranker.stats)

    @property
    def nbytes(self) -> int:
        """Bytes held, vocabulary and weights included."""
        weights = 0 if self._weights is None else int(self._weights.nbytes)
        return sum(keeper.nbytes for keeper in self._keepers) + self._vocabulary.nbytes + weights

    @property
    def space(self) -> Space:
        return self._matcher.space

    @property
    def analyser(self) -> Analyser:
        return self._analyser

    @property
    def vocabulary(self) -> Vocabulary:
        return self._vocabulary

    @property
    def matcher(self) -> Matcher:
        """The part below tables and strings, for kind `match`; what the benchmark times."""
        return self._matcher

    @property
    def ranker(self) -> Ranker | None:
        """The part below tables and strings, for kind `rank`; None while nothing is ranked."""
        return self._ranker if self._ranker is not None and len(self._ranker) else None

    def match(self, messages: Any, *, threads: int = 1, on_bad: OnBad = "raise") -> pa.Table:
        """All (message, subscription) pairs, sorted, as a matches table; with a column `score`, null for subscriptions
        of kind `match`, where the index holds some of kind `rank`.
        """
        batch = self.read_messages(messages, on_bad=on_bad)
        found = self.match_batch(batch, threads)
        return matches_table(batch.ids, found.ids, found.starts, found.scores)

    def match_batch(self, batch: MessageBatch, threads: int = 1) -> Found:
        """What `match` finds in messages that `read_messages` has read."""
        found = self._matcher.match(batch, threads)
        return found if self.ranker is None else merged(found, self.ranker.match(batch, threads))

    def match_one(self, tokens: Iterable[str], x: float, y: float) -> np.ndarray:
        """The sorted ids of the subscriptions that one message at a point concerns."""
        if not (math.isfinite(x) and math.isfinite(y)):
            raise InvalidInput(f"the place ({x}, {y}) is not finite")
        terms = self._vocabulary.terms(tokens)
        ids = self._matcher.match_one(terms, x, y)
        if self._ranker is None:
            return ids
        return np.sort(np.concatenate([ids, self._ranker.match_one(terms, x, y)]))

    def read_messages(self, messages: Any, *, on_bad: OnBad = "raise") -> MessageBatch:
        """A messages table as the terms and places of this index."""
        batch, self.rejects = read_messages(messages, self._vocabulary, self._dialect(on_bad))
        return batch

    def insert(self, subscriptions: Any, *, on_bad: OnBad = "raise") -> None:
        """Add subscriptions; the same id again replaces. Bad rows raise before anything is changed."""
        read = read_subscriptions(subscriptions, self._vocabulary, self._dialect(on_bad))
        self.rejects = read.rejects
        self.insert_read(read)

    def insert_read(self, read: Subscriptions) -> None:
        """Add subscriptions that were read with this index's vocabulary."""
        _require_kinds(self.method, read.kinds)
        if self._weights is None and len(read.ids):
            self._weights = idf_weights(read, len(self._vocabulary))
        self.remove(read.ids)  # of either kind, and those whose new expression can never hold, and so have no row
        self._matcher.insert(read.rows, read.regions)
        if read.ranks.size:
            self._made_ranker().insert(read.ranks)

    def _made_ranker(self) -> Ranker:
        """A rank method takes those of the method's options that it knows."""
        if self._ranker is None:
            known = method_options(find_rank_method(self.method))
            options = {name: value for name, value in self._matcher.options.items() if name in known}
            weights = np.empty(0) if self._weights is None else self._weights
            self._ranker = Ranker(self.method, self.space, weights, options)
        return self._ranker

    def remove(self, ids: Iterable[int] | np.ndarray) -> None:
        """Forget subscriptions; an unknown id is no error."""
        gone = np.asarray(ids if isinstance(ids, np.ndarray) else list(ids), np.int64)
        for keeper in self._keepers:
            keeper.remove(gone)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index to a folder, whole or not at all."""
        arrays, header = self._matcher.state()
        arrays |= {f"vocabulary.{name}": array for name, array in self._vocabulary.arrays().items()}
        parts = {
            "matcher": header,
            "vocabulary": self._vocabulary.header(),
            "analyser": self._analyser.header(),
        }
        if self._weights is not None:
            arrays["weights"] = self._weights
        if self._ranker is not None:
            ranked, parts["ranker"] = self._ranker.state()
            arrays |= {f"ranker.{name}": array for name, array in ranked.items()}
        save_index(path, arrays, parts)

    def _dialect(self, on_bad: OnBad) -> Dialect:
        return Dialect(self._analyser, self._matcher.space, on_bad)


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

    `weights` say what tokens weigh for kind `rank`: a table (token, weight) or a Vocabulary; else ln(1 + N/df) over the
    subscriptions. `space` makes coordinates planar; `messages` is a sample of what will come, for methods that plan by
    it (`auto`); `analyser=` and `on_bad=` are taken from the options, the rest are the method's own.
    """
    analyser = options.pop("analyser", None) or Analyser()
    on_bad = options.pop("on_bad", "raise")
    if not isinstance(analyser, Analyser):
        raise InvalidInput(f"analyser is a nearcast.Analyser, not {type(analyser).__name__}")
    vocabulary = Vocabulary()
    by_term = None if weights is None else read_weights(weights, vocabulary)
    index = Index(Matcher(method, Space.of(space), options), vocabulary, analyser, by_term)
    read = read_subscriptions(subscriptions, index.vocabulary, index._dialect(on_bad))
    if messages is not None:
        index.matcher.expect(index.read_messages(messages, on_bad=on_bad))  # known tokens are those just read
    index.rejects = read.rejects
    index.insert_read(read)
    return index


def open_index(path: str | os.PathLike[str], verify: bool = True) -> Index:
    """A saved index, mapped into memory and shared with other processes; changes stay in this process."""
    arrays, header = load_index(path, verify)
    analyser = Analyser.from_header(header["analyser"])
    vocabulary = Vocabulary.from_arrays(part_of(arrays, "vocabulary"), header["vocabulary"])
    ranker = Ranker.restored(part_of(arrays, "ranker"), header["ranker"]) if "ranker" in header else None
    matcher = Matcher.restored(arrays, header["matcher"])
    return Index(matcher, vocabulary, analyser, arrays.get("weights"), ranker)


def _require_kinds(method: str, kinds: frozenset[str]) -> None:
    if "rank" in kinds:
        find_rank_method(method)
    for kind in sorted(kinds - {"match", "rank"}):
        raise UnsupportedKind(f"method '{method}' does not serve subscriptions of kind '{kind}'")

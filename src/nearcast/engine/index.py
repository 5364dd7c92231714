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
from nearcast.matching.method import find_method
from nearcast.model import MessageBatch, Work
from nearcast.storage import load_index, save_index
from nearcast.tables import Dialect, OnBad, Subscriptions, matches_table, read_messages, read_subscriptions
from nearcast.text.analyser import Analyser
from nearcast.text.vocabulary import Vocabulary


class Index:
    """Subscriptions, ready to be matched. Made by `build_index` and `open_index`."""

    def __init__(self, matcher: Matcher, vocabulary: Vocabulary, analyser: Analyser) -> None:
        self._matcher = matcher
        self._vocabulary = vocabulary
        self._analyser = analyser
        self.rejects: pa.Table | None = None
        """The bad rows of the last table given with on_bad="skip"."""

    def __len__(self) -> int:
        return len(self._matcher)

    def __repr__(self) -> str:
        return f"<nearcast index: {len(self):,} subscriptions, method {self.method}, {self.nbytes:,} bytes>"

    @property
    def method(self) -> str:
        return self._matcher.method.name

    @property
    def plan(self) -> str:
        """What does the work, in words: the method itself, or the one that `auto` chose and why."""
        return self._matcher.method.plan

    @property
    def stats(self) -> Work:
        """Work done since the index was made: nodes visited, candidates compared, matches."""
        return self._matcher.stats

    @property
    def nbytes(self) -> int:
        """Bytes held, the vocabulary included."""
        return self._matcher.nbytes + self._vocabulary.nbytes

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
        """The part below tables and strings; what the benchmark times."""
        return self._matcher

    def match(self, messages: Any, *, threads: int = 1, on_bad: OnBad = "raise") -> pa.Table:
        """All (message, subscription) pairs, sorted, as a matches table."""
        batch = self.read_messages(messages, on_bad=on_bad)
        found = self._matcher.match(batch, threads)
        return matches_table(batch.ids, found.ids, found.starts)

    def match_one(self, tokens: Iterable[str], x: float, y: float) -> np.ndarray:
        """The sorted ids of the subscriptions that one message at a point concerns."""
        if not (math.isfinite(x) and math.isfinite(y)):
            raise InvalidInput(f"the place ({x}, {y}) is not finite")
        return self._matcher.match_one(self._vocabulary.terms(tokens), x, y)

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
        self._matcher.remove(read.ids)  # also those whose new expression can never hold, and so have no row
        self._matcher.insert(read.rows, read.regions)

    def remove(self, ids: Iterable[int] | np.ndarray) -> None:
        """Forget subscriptions; an unknown id is no error."""
        self._matcher.remove(np.asarray(ids if isinstance(ids, np.ndarray) else list(ids), np.int64))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index to a folder, whole or not at all."""
        arrays, header = self._matcher.state()
        words = {f"vocabulary.{name}": array for name, array in self._vocabulary.arrays().items()}
        parts = {
            "matcher": header,
            "vocabulary": self._vocabulary.header(),
            "analyser": self._analyser.header(),
        }
        save_index(path, arrays | words, parts)

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

    `space` makes coordinates planar; `messages` is a sample of what will come, for methods that plan by it (`auto`);
    `analyser=` and `on_bad=` are taken from the options, the rest are the method's own.
    """
    if weights is not None:
        raise UnsupportedKind(
            "weights are for subscriptions of kind 'rank', which no method serves yet; leave them out"
        )
    analyser = options.pop("analyser", None) or Analyser()
    on_bad = options.pop("on_bad", "raise")
    if not isinstance(analyser, Analyser):
        raise InvalidInput(f"analyser is a nearcast.Analyser, not {type(analyser).__name__}")
    index = Index(Matcher(method, Space.of(space), options), Vocabulary(), analyser)
    read = read_subscriptions(subscriptions, index.vocabulary, index._dialect(on_bad))
    if messages is not None:
        index.matcher.expect(index.read_messages(messages, on_bad=on_bad))  # known tokens are those just read
    index.rejects = read.rejects
    index.insert_read(read)
    return index


def open_index(path: str | os.PathLike[str], verify: bool = True) -> Index:
    """A saved index, mapped into memory and shared with other processes; changes stay in this process."""
    arrays, header = load_index(path, verify)
    words = {key.split(".", 1)[1]: array for key, array in arrays.items() if key.startswith("vocabulary.")}
    analyser = Analyser.from_header(header["analyser"])
    vocabulary = Vocabulary.from_arrays(words, header["vocabulary"])
    return Index(Matcher.restored(arrays, header["matcher"]), vocabulary, analyser)


def _require_kinds(method: str, kinds: frozenset[str]) -> None:
    for kind in sorted(kinds - set(find_method(method).kinds)):
        raise UnsupportedKind(f"method '{method}' does not serve subscriptions of kind '{kind}'")

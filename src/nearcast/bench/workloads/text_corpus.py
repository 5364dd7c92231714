"""A corpus of real texts: subscriptions and messages are drawn from a messages table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.arrays.arrow import list_parts
from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import take
from nearcast.bench.workloads.corpus import Corpus, DrawnItems, SyntheticCorpus
from nearcast.bench.workloads.random_numbers import DrawNumbers, begin, below, stream_key, whole_numbers
from nearcast.bench.workloads.workload import Workload
from nearcast.errors import InvalidInput
from nearcast.tables import as_arrow
from nearcast.tables.faults import Faults
from nearcast.tables.messages import message_tokens
from nearcast.tables.places import boxes_of
from nearcast.text.analyser import Analyser


class TextCorpus:
    """Real messages. Words are numbered by falling frequency; the space is the bounding box of the places."""

    def __init__(self, tokens: pa.Array, boxes: np.ndarray, seed: int) -> None:
        flat, starts = list_parts(tokens)
        encoded = pc.dictionary_encode(flat.cast(pa.large_string()))
        self._words, terms = _by_frequency(encoded.dictionary, encoded.indices.to_numpy(zero_copy_only=False))
        terms, starts = _distinct(terms, starts, len(self._words))
        kept = np.flatnonzero(np.diff(starts) > 0)
        if not len(kept):
            raise InvalidInput("no message has a token; subscriptions are drawn from the tokens of messages")
        terms, starts = take(terms, starts, kept)
        middles = boxes[kept, :2] / 2 + boxes[kept, 2:] / 2
        self._pool = DrawnItems(terms, starts, np.tile(middles, 2))
        self._seed = seed
        self.n_words = len(self._words)
        self.bounds = np.concatenate([middles.min(axis=0), middles.max(axis=0)])

    def words(self) -> pa.Array:
        return self._words

    def sources(self, indices: np.ndarray) -> DrawnItems:
        """Real messages, unchanged."""
        rows = whole_numbers(stream_key(self._seed, "sources"), indices, 0, self._pool.size - 1)
        terms, starts = take(self._pool.terms, self._pool.starts, rows)
        return DrawnItems(terms, starts, self._pool.boxes[rows])

    def messages(self, stream: str, indices: np.ndarray, lengths: tuple[int, int]) -> DrawnItems:
        """Real messages. A message that is too long is cut; a message that is too short is joined with others."""
        n = len(indices)
        counts = whole_numbers(stream_key(self._seed, f"{stream}/lengths"), indices, *lengths)
        out = DrawnItems(np.empty(n * lengths[1], np.int32), np.zeros(n + 1, np.int64), np.empty((n, 4)))
        marks = np.zeros(self.n_words, np.int32)
        _join_messages(self._pool, DrawNumbers(stream_key(self._seed, stream), indices), counts, lengths, marks, out)
        return out._replace(terms=out.terms[: out.starts[-1]].copy())


def _by_frequency(words: pa.Array, numbers: np.ndarray) -> tuple[pa.Array, np.ndarray]:
    """The words by falling frequency (equal ones by spelling), and the word numbers in that order."""
    spelling = np.empty(len(words), np.int64)
    spelling[pc.array_sort_indices(words).to_numpy(zero_copy_only=False)] = np.arange(len(words))
    order = np.lexsort((spelling, -np.bincount(numbers, minlength=len(words))))
    new_numbers = np.empty(len(words), np.int32)
    new_numbers[order] = np.arange(len(words))
    return words.take(pa.array(order)), new_numbers[numbers]


def _distinct(terms: np.ndarray, starts: np.ndarray, n_words: int) -> tuple[np.ndarray, np.ndarray]:
    """Each message's terms without repeats, in the order of the text."""
    out, new_starts = np.empty(len(terms), np.int32), np.zeros(len(starts), np.int64)
    _drop_repeats(terms, starts, np.zeros(n_words, np.int32), out, new_starts)
    return out[: new_starts[-1]], new_starts


@kernel
def _drop_repeats(terms, starts, marks, out, out_starts):
    for i in range(len(starts) - 1):
        out_starts[i + 1] = _add_new(terms[starts[i] : starts[i + 1]], marks, i + 1, out, out_starts[i], len(out))


@kernel
def _add_new(terms, marks, stamp, out, at, stop):
    """Append the terms whose mark is not `stamp` to out[at:stop] and mark them; return the new end."""
    for term in terms:
        if at < stop and marks[term] != stamp:
            marks[term] = stamp
            out[at] = term
            at += 1
    return at


@kernel
def _join_messages(pool, draws, counts, lengths, marks, out):
    """Fill `out` with messages of the pool, cut or joined to the lengths; joined ones get `counts` tokens."""
    least, most = lengths
    state = np.zeros(1, np.uint64)
    n_pool = len(pool.starts) - 1
    at = 0
    for i in range(len(draws.indices)):
        begin(state, draws.key, draws.indices[i])
        row = below(state, n_pool)
        out.boxes[i] = pool.boxes[row]
        first = at
        words = pool.terms[pool.starts[row] : pool.starts[row + 1]]
        at = _add_new(words, marks, i + 1, out.terms, at, first + most)
        wanted = 0 if at - first >= least else counts[i]
        tries = 0
        while at - first < wanted and tries < 4 * most:  # a small pool may not have that many words
            row = below(state, n_pool)
            words = pool.terms[pool.starts[row] : pool.starts[row + 1]]
            at = _add_new(words, marks, i + 1, out.terms, at, first + wanted)
            tries += 1
        out.starts[i + 1] = at


def text_corpus(source: Any, workload: Workload) -> TextCorpus:
    """The corpus of a messages table with a column `text` or `tokens`, and places. Bad rows raise InvalidInput."""
    table = as_arrow(source)
    if not {"text", "tokens"} & set(table.column_names):
        raise InvalidInput("messages to draw from need a column 'text' or 'tokens'")
    faults = Faults(table.num_rows, "raise")
    boxes = boxes_of(table, workload.geometry, faults)
    tokens = message_tokens(table, Analyser(), faults)
    faults.raise_or_reject(table)
    return TextCorpus(tokens, boxes, workload.seed)


def corpus_for(workload: Workload, source: Any = None) -> Corpus:
    """The corpus of a messages table, or a synthetic corpus if there is no table."""
    return SyntheticCorpus(workload) if source is None else text_corpus(source, workload)

"""Corpora of real texts: subscriptions and messages are drawn from a messages table, or from the shipped sample."""

from __future__ import annotations

from importlib.resources import as_file, files
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.arrays.arrow import list_parts
from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import starts_of, take
from nearcast.bench.workloads.corpus import Corpus, DrawnItems, SyntheticCorpus
from nearcast.bench.workloads.expressions import has_expressions
from nearcast.bench.workloads.random_numbers import (
    DrawNumbers,
    begin,
    below,
    stream_key,
    table_generator,
    units,
    whole_numbers,
    zipf_table,
)
from nearcast.bench.workloads.workload import Workload
from nearcast.errors import InvalidInput
from nearcast.tables import as_arrow
from nearcast.tables.faults import Faults
from nearcast.tables.messages import message_tokens
from nearcast.tables.places import boxes_of
from nearcast.text.analyser import Analyser

SAMPLE = "calgary_traffic_2024.csv.gz"
SAMPLE_SOURCE = {
    "corpus": SAMPLE,
    "licence": "Contains information licensed under the Open Government Licence - City of Calgary.",
}
_TOWNS_WITHIN = (-170.0, -50.0, 170.0, 60.0)


class TextCorpus:
    """Real messages. Words are numbered by falling frequency; the space is the bounding box of the places."""

    def __init__(self, tokens: pa.Array, boxes: np.ndarray, seed: int, common_share: float = 1.0) -> None:
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
        self._sources = _without_common(self._pool, common_share)
        self._seed = seed
        self.n_words = len(self._words)
        self.bounds = np.concatenate([middles.min(axis=0), middles.max(axis=0)])

    def words(self) -> pa.Array:
        return self._words

    def sources(self, indices: np.ndarray) -> DrawnItems:
        """Real messages, without their common words if they have others."""
        rows = whole_numbers(stream_key(self._seed, "sources"), indices, 0, self._sources.size - 1)
        terms, starts = take(self._sources.terms, self._sources.starts, rows)
        return DrawnItems(terms, starts, self._sources.boxes[rows])

    def in_order(self, indices: np.ndarray) -> DrawnItems:
        """Real messages in the order of the table, again from the first after the last."""
        rows = indices % self._pool.size
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


def _without_common(pool: DrawnItems, share: float) -> DrawnItems:
    """The messages without the words that more than `share` of them have; a message of such words stays as it is."""
    is_common = np.bincount(pool.terms) > share * pool.size
    keeps = ~is_common[pool.terms]
    counts = np.diff(pool.starts)
    left = np.diff(starts_of(keeps)[pool.starts])
    keeps |= np.repeat(left == 0, counts)
    return pool._replace(terms=pool.terms[keeps], starts=starts_of(keeps)[pool.starts])


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
    analyser = Analyser()
    tokens = message_tokens(table, analyser, faults)
    faults.raise_or_reject(table)
    if has_expressions(workload):
        tokens = _quotable(tokens, analyser)
    return TextCorpus(tokens, boxes, workload.seed, workload.common_share)


def _quotable(tokens: pa.Array, analyser: Analyser) -> pa.Array:
    """The tokens without those that an expression cannot name: read as text, they are other tokens."""
    flat, starts = list_parts(tokens)
    encoded = pc.dictionary_encode(flat.cast(pa.string()))
    again = analyser.tokens_batch(encoded.dictionary).to_pylist()
    is_same = np.array([read == [word] for read, word in zip(again, encoded.dictionary.to_pylist(), strict=True)], bool)
    keeps = is_same[encoded.indices.to_numpy(zero_copy_only=False)]
    lists = starts_of(keeps)[starts].astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(lists), flat.filter(pa.array(keeps)))


class TownCorpus:
    """The texts of one town, copied to many towns of the Earth, the k-th with 1 / k of the messages of the first.

    A copy keeps the distances of the town, so that near messages in a copy are as alike as in the town itself.
    """

    def __init__(self, town: TextCorpus, towns: int, seed: int) -> None:
        self._town, self._seed = town, seed
        rng = table_generator(seed, "towns")
        west, south, east, north = _TOWNS_WITHIN
        self._centres = np.column_stack([rng.uniform(west, east, towns), rng.uniform(south, north, towns)])
        self._masses = zipf_table(towns, 1.0).cumulative
        self.n_words = town.n_words
        corners = np.tile(np.concatenate([town.bounds[:2], town.bounds[2:]]).reshape(2, 2), (towns, 1))
        reach = self._placed(corners, np.repeat(np.arange(towns), 2))
        self.bounds = np.concatenate([reach.min(axis=0), reach.max(axis=0)])

    def words(self) -> pa.Array:
        return self._town.words()

    def sources(self, indices: np.ndarray) -> DrawnItems:
        return self._moved(self._town.sources(indices), "sources", indices)

    def messages(self, stream: str, indices: np.ndarray, lengths: tuple[int, int]) -> DrawnItems:
        return self._moved(self._town.messages(stream, indices, lengths), stream, indices)

    def _moved(self, drawn: DrawnItems, stream: str, indices: np.ndarray) -> DrawnItems:
        chances = units(stream_key(self._seed, f"{stream}/towns"), indices)
        towns = np.searchsorted(self._masses, chances, side="right")
        return drawn._replace(boxes=np.tile(self._placed(drawn.boxes[:, :2], towns), 2))

    def _placed(self, points: np.ndarray, towns: np.ndarray) -> np.ndarray:
        """The points of the original town, moved to other towns. A degree of longitude is shorter near the poles."""
        middle = (self._town.bounds[:2] + self._town.bounds[2:]) / 2
        centres = self._centres[towns]
        offsets = points - middle
        offsets[:, 0] *= np.cos(np.radians(middle[1])) / np.cos(np.radians(centres[:, 1]))
        return np.asarray(centres + offsets)


def sample_corpus(workload: Workload) -> Corpus:
    """The corpus of the messages that come with nearcast, copied to as many towns as the workload has clusters."""
    with as_file(files("nearcast") / "demo" / "sample" / SAMPLE) as path:
        town = text_corpus(path, workload)
    return TownCorpus(town, workload.clusters, workload.seed) if workload.clusters else town


def corpus_for(workload: Workload, source: Any = None) -> Corpus:
    """The corpus of a messages table. Without a table: of the shipped sample or synthetic, as the workload says."""
    if source is not None:
        return text_corpus(source, workload)
    return sample_corpus(workload) if workload.texts == "sample" else SyntheticCorpus(workload)

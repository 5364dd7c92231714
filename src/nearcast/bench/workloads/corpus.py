"""Sources of messages for a workload: the protocol `Corpus`, and `SyntheticCorpus`, which invents messages."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import starts_of
from nearcast.bench.workloads.places import draw_place, place_model, ranges_around
from nearcast.bench.workloads.random_numbers import DrawNumbers, begin, stream_key, whole_numbers
from nearcast.bench.workloads.words import draw_words, spell_words, word_model
from nearcast.bench.workloads.workload import Workload, group_of


class DrawnItems(NamedTuple):
    """Messages (a point is a box of size 0) or subscriptions. Terms are word numbers: distinct, not sorted."""

    terms: np.ndarray  # int32[...]
    starts: np.ndarray  # int64[n+1]
    boxes: np.ndarray  # float64[n,4]

    @property
    def size(self) -> int:
        return len(self.starts) - 1


class Corpus(Protocol):
    """Numbered messages at points. The same stream and number always give the same message."""

    n_words: int
    bounds: np.ndarray  # float64[4]  the space: shares of the space are shares of this box

    def words(self) -> pa.Array:
        """The words, by number."""
        ...

    def sources(self, indices: np.ndarray) -> DrawnItems:
        """The messages that subscriptions are drawn from, at points."""
        ...

    def messages(self, stream: str, indices: np.ndarray, lengths: tuple[int, int]) -> DrawnItems:
        """Messages at points. Their numbers of tokens are within `lengths` if the corpus has enough words."""
        ...


class SyntheticCorpus:
    """Messages with Zipf-distributed words and clustered places, by the parameters of the workload."""

    def __init__(self, workload: Workload) -> None:
        self._seed = workload.seed
        self._source_lengths = workload.short
        self._words = word_model(workload.words, workload.seed)
        bounds = workload.geometry.bounds
        self._places = place_model(bounds, workload.clusters, workload.background, workload.seed)
        self.n_words, self.bounds = workload.vocabulary, self._places.bounds

    def words(self) -> pa.Array:
        return spell_words(self.n_words)

    def sources(self, indices: np.ndarray) -> DrawnItems:
        return self.messages("sources", indices, self._source_lengths)

    def messages(self, stream: str, indices: np.ndarray, lengths: tuple[int, int]) -> DrawnItems:
        # Beyond half of the words, most draws would repeat a word that the message already has.
        low, high = (min(length, self.n_words // 2) for length in lengths)
        starts = starts_of(whole_numbers(stream_key(self._seed, f"{stream}/lengths"), indices, low, high))
        out = DrawnItems(np.empty(starts[-1], np.int32), starts, np.empty((len(indices), 4)))
        marks = np.zeros(self.n_words, np.int32)
        _draw_messages(self._words, self._places, DrawNumbers(stream_key(self._seed, stream), indices), marks, out)
        return out


@kernel
def _draw_messages(words, places, draws, marks, out):
    """Fill the terms and boxes of `out`, whose starts are given."""
    state = np.zeros(1, np.uint64)
    for i in range(len(draws.indices)):
        begin(state, draws.key, draws.indices[i])
        x, y, cluster = draw_place(places, state)
        out.boxes[i, 0] = out.boxes[i, 2] = x
        out.boxes[i, 1] = out.boxes[i, 3] = y
        draw_words(words, state, cluster, marks, i + 1, out.terms[out.starts[i] : out.starts[i + 1]])


def message_group(corpus: Corpus, workload: Workload, group: str, indices: np.ndarray | None = None) -> DrawnItems:
    """The workload's messages of a group: all of them, or those with the given numbers.

    Groups of one stem share their places, and a longer message begins with the words of the shorter one. Their costs
    therefore differ by the length alone.
    """
    if indices is None:
        indices = np.arange(workload.messages)
    stem, tokens = group_of(group)
    lengths = workload.short if stem.startswith("short") else workload.long
    drawn = corpus.messages(f"messages/{stem}", indices, lengths if tokens is None else (tokens, tokens))
    if stem.endswith("point"):
        return drawn
    draws = DrawNumbers(stream_key(workload.seed, f"messages/{stem}/ranges"), indices)
    return drawn._replace(boxes=ranges_around(corpus.bounds, drawn.boxes, workload.range_share, draws))

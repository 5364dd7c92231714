"""Where messages come from: `MadeUp` invents them, texts.py has real ones. Either feeds subscriptions."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import starts_of
from nearcast.bench.workloads.draws import begin, stream_key, whole_numbers
from nearcast.bench.workloads.places import draw_place, place_model, ranges_around
from nearcast.bench.workloads.words import draw_words, spelled, word_model
from nearcast.bench.workloads.workload import Workload, group_of


class Drawn(NamedTuple):
    """Messages (a point is a box of size 0) or subscriptions. Terms are word numbers, distinct, unsorted."""

    terms: np.ndarray  # int32[...]
    starts: np.ndarray  # int64[n+1]
    boxes: np.ndarray  # float64[n,4]

    @property
    def size(self) -> int:
        return len(self.starts) - 1


class Corpus(Protocol):
    """Numbered messages at points: the same stream and number give the same message."""

    @property
    def n_words(self) -> int: ...

    @property
    def bounds(self) -> np.ndarray:
        """float64[4]: shares of the space are shares of this box."""
        ...

    def words(self) -> pa.Array:
        """The words, by number."""
        ...

    def sources(self, indices: np.ndarray) -> Drawn:
        """The messages that subscriptions are drawn from, at points."""
        ...

    def messages(self, stream: str, indices: np.ndarray, lengths: tuple[int, int]) -> Drawn:
        """Messages at points, with a number of tokens within `lengths` as far as the words suffice."""
        ...


class MadeUp:
    """A corpus by the workload's own parameters."""

    def __init__(self, workload: Workload) -> None:
        self._seed = workload.seed
        self._source_lengths = workload.short
        self._words = word_model(workload.words, workload.seed)
        bounds = workload.geometry.bounds
        self._places = place_model(bounds, workload.clusters, workload.background, workload.seed)
        self.n_words = workload.vocabulary

    @property
    def bounds(self) -> np.ndarray:
        return self._places.bounds

    def words(self) -> pa.Array:
        return spelled(self.n_words)

    def sources(self, indices: np.ndarray) -> Drawn:
        return self.messages("sources", indices, self._source_lengths)

    def messages(self, stream: str, indices: np.ndarray, lengths: tuple[int, int]) -> Drawn:
        low, high = (
            min(length, self.n_words // 2) for length in lengths
        )  # beyond half the words, draws are all repeats
        counts = whole_numbers(stream_key(self._seed, f"{stream}/lengths"), indices, low, high)
        starts = starts_of(counts)
        terms, boxes = np.empty(starts[-1], np.int32), np.empty((len(indices), 4))
        marks = np.zeros(self.n_words, np.int32)
        key = stream_key(self._seed, stream)
        _make_up(self._words, self._places, (key, indices), marks, starts, terms, boxes)
        return Drawn(terms, starts, boxes)


@kernel
def _make_up(words, places, numbers, marks, starts, out_terms, out_boxes):
    key, indices = numbers
    state = np.zeros(1, np.uint64)
    for i in range(len(indices)):
        begin(state, key, indices[i])
        x, y, cluster = draw_place(places, state)
        out_boxes[i, 0] = out_boxes[i, 2] = x
        out_boxes[i, 1] = out_boxes[i, 3] = y
        draw_words(words, state, cluster, marks, i + 1, out_terms[starts[i] : starts[i + 1]])


def message_group(corpus: Corpus, workload: Workload, group: str, indices: np.ndarray | None = None) -> Drawn:
    """The workload's messages of a group; all of them, or some by number. Groups of one stem have their places in
    common, and a longer message begins with the words of the shorter: what they cost differs by the length alone.
    """
    if indices is None:
        indices = np.arange(workload.messages)
    stem, tokens = group_of(group)
    lengths = workload.short if stem.startswith("short") else workload.long
    drawn = corpus.messages(f"messages/{stem}", indices, lengths if tokens is None else (tokens, tokens))
    if stem.endswith("point"):
        return drawn
    key = stream_key(workload.seed, f"messages/{stem}/ranges")
    return drawn._replace(boxes=ranges_around(corpus.bounds, drawn.boxes, workload.range_share, (key, indices)))

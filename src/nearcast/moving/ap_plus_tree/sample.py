"""What a build reads: rows by position, and a sample of messages, which say where and with which words others come."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.ragged import starts_of
from nearcast.matching.store import RowStore, gathered
from nearcast.moving.live_messages import LiveMessages

SAMPLE = 20_000
_FEWEST = 100  # messages; rows stand for messages where fewer are live
_NO_RANK = np.iinfo(np.int32).max


class Sample(NamedTuple):
    """Rows, and messages of which each stands for `scale` live ones."""

    ranks: np.ndarray  # int32[n,k]  the ranks of each row, ascending; -1 behind the last
    boxes: np.ndarray  # float64[n,4]
    points: np.ndarray  # float64[m,2]  places of messages
    message_ranks: np.ndarray  # int32[...]  ascending for each message
    starts: np.ndarray  # int64[m+1]
    scale: float

    def below(self, messages: np.ndarray, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(int64[...]: places of the ranks that messages have not used up, int64[...]: the message of each)."""
        firsts = self.starts[messages] + positions
        counts = np.maximum(0, self.starts[messages + 1] - firsts)
        owners = np.repeat(np.arange(len(messages)), counts)
        return np.arange(counts.sum()) + np.repeat(firsts - starts_of(counts)[:-1], counts), owners


def sample_of(
    store: RowStore, messages: LiveMessages, ranks: np.ndarray, rows: np.ndarray, slots: np.ndarray
) -> Sample:
    """The sample for rows that messages of some slots may enter."""
    own, boxes = messages.arrays, store.arrays.boxes
    row_ranks = _row_ranks(store, ranks, rows)
    if len(slots) >= _FEWEST:
        drawn = slots[:: max(1, len(slots) // SAMPLE)]
        terms, starts = gathered(own.terms, own.offsets[drawn], own.n_terms[drawn]), starts_of(own.n_terms[drawn])
        return _sample(row_ranks, boxes[rows], own.boxes[drawn], ranks[terms], starts, len(slots))
    places = np.arange(0, len(rows), max(1, len(rows) // SAMPLE))
    flat = row_ranks[places]
    counts = (flat >= 0).sum(axis=1)
    return _sample(row_ranks, boxes[rows], boxes[rows[places]], flat[flat >= 0], starts_of(counts), len(rows))


def _sample(
    row_ranks: np.ndarray,
    row_boxes: np.ndarray,
    message_boxes: np.ndarray,
    message_ranks: np.ndarray,
    starts: np.ndarray,
    live: int,
) -> Sample:
    n = len(message_boxes)
    owners = np.repeat(np.arange(n), np.diff(starts))
    ordered = message_ranks[np.lexsort((message_ranks, owners))]
    middles = message_boxes[:, :2] / 2 + message_boxes[:, 2:] / 2
    return Sample(row_ranks, row_boxes, middles, ordered, starts, live / max(1, n))


def _row_ranks(store: RowStore, ranks: np.ndarray, rows: np.ndarray) -> np.ndarray:
    own = store.arrays
    counts = own.n_terms[rows].astype(np.int64)
    out = np.full((len(rows), int(counts.max(initial=0))), _NO_RANK, np.int32)
    for k in range(out.shape[1]):
        has = counts > k
        out[has, k] = ranks[own.terms[own.offsets[rows[has]] + k]]
    out.sort(axis=1)
    out[out == _NO_RANK] = -1
    return out

"""How likely a message is to have a term, or to be in a place: by a sample of messages where one is given, else by the
terms of the rows and by area.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.model import MessageBatch

MOST = 2048  # messages that are kept of a sample
MADE_UP_TERMS = 10  # of a message, where no sample tells


class Expected:
    """The chances of all ranks, and the places of the sample."""

    def __init__(self, sample: MessageBatch | None, by_term: np.ndarray, frequencies: np.ndarray, n_ranks: int) -> None:
        self._boxes = np.zeros((0, 4)) if sample is None else sample.boxes
        rows = np.zeros(n_ranks + 1)
        np.add.at(rows, by_term[: len(frequencies)], frequencies[: len(by_term)])
        rows[0] = 0.0
        self.chances = _chances(_found(sample, by_term, n_ranks), rows, len(self._boxes))

    def know(self, n_ranks: int) -> None:
        """Ranks that came after are as rare as the rarest before."""
        if n_ranks >= len(self.chances):
            rare = float(self.chances[1:].min()) if len(self.chances) > 1 else 1.0
            self.chances = grown(self.chances, n_ranks + 1, fill=rare)

    def within(self, region: np.ndarray) -> np.ndarray:
        """The boxes of the messages that overlap a region."""
        boxes = self._boxes
        inside = (boxes[:, 0] <= region[2]) & (boxes[:, 2] >= region[0])
        return np.asarray(boxes[inside & (boxes[:, 1] <= region[3]) & (boxes[:, 3] >= region[1])])


def _found(sample: MessageBatch | None, by_term: np.ndarray, n_ranks: int) -> np.ndarray:
    """How many messages of the sample have the term of each rank."""
    if sample is None:
        return np.zeros(n_ranks + 1)
    ranks = by_term[sample.terms[sample.terms < len(by_term)]]
    found = np.bincount(ranks, minlength=n_ranks + 1).astype(np.float64)
    found[0] = 0.0
    return found


def _chances(found: np.ndarray, rows: np.ndarray, n_messages: int) -> np.ndarray:
    """Of a term seen c times in m messages (c + 1) / (m + 1 / q), where q is what the rows say of it: messages are
    taken to have terms as often as rows do, so many each as the sample's do, or MADE_UP_TERMS. A term that the sample
    lacks keeps about q, one that it has often keeps its share of the sample.
    """
    terms = found.sum() / n_messages if n_messages and found.any() else MADE_UP_TERMS
    by_rows = np.minimum(1.0, np.maximum(rows, 0.5) * (terms / max(1.0, rows.sum())))
    return np.asarray(np.minimum(1.0, (found + 1.0) / (n_messages + 1.0 / by_rows)))

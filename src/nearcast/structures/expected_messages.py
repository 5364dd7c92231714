"""Estimates of future messages: how likely a message has a term, and where messages are.

A sample of messages, where one is given, and the terms of the rows are combined.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.matching.sample import sample_messages
from nearcast.model import MessageBatch
from nearcast.structures.structure_method import Structure, StructureMethod

_SAMPLE_SIZE = 2048
ASSUMED_TERMS = 10  # terms of a message, where there is no sample


class SampledStructure(Structure, Protocol):
    """A structure that keeps a sample of the messages to come and learns from it when it is built."""

    sample: MessageBatch | None = None

    def _sample_state(self) -> dict[str, np.ndarray]:
        """The arrays of the sample, to be saved; none where there is no sample."""
        return {} if self.sample is None else {f"expected_{k}": array for k, array in self.sample._asdict().items()}

    def _restore_sample(self, arrays: dict[str, np.ndarray]) -> None:
        if "expected_ids" in arrays:
            self.sample = MessageBatch(*(arrays[f"expected_{name}"] for name in MessageBatch._fields))


class SampledMethod(StructureMethod):
    """A method whose structure keeps a sample of the messages to come."""

    structure: SampledStructure

    def expect(self, messages: MessageBatch) -> None:
        self.structure.sample = sample_messages(messages, _SAMPLE_SIZE) if messages.size else None

    @property
    def expected(self) -> MessageBatch | None:
        return self.structure.sample


class ExpectedMessages:
    """The probability of each term rank, and the boxes of a sample. Rank 0 stands for terms without a rank."""

    def __init__(self, sample: MessageBatch | None, by_term: np.ndarray, frequencies: np.ndarray, n_ranks: int) -> None:
        terms = by_term[:0] if sample is None else sample.terms
        self._boxes = np.zeros((0, 4)) if sample is None else sample.boxes
        n = min(len(by_term), len(frequencies))
        counts = np.bincount(by_term[terms[terms < len(by_term)]], minlength=n_ranks + 1).astype(np.float64)
        rows = np.bincount(by_term[:n], frequencies[:n], n_ranks + 1)
        counts[0] = rows[0] = 0.0
        self.chances = _chances(counts, rows, len(self._boxes))

    def extend_to(self, n_ranks: int) -> None:
        """Give ranks that are new the probability of the rarest known rank."""
        if n_ranks >= len(self.chances):
            rare = float(self.chances[1:].min()) if len(self.chances) > 1 else 1.0
            self.chances = grown(self.chances, n_ranks + 1, fill=rare)

    def boxes_within(self, region: np.ndarray) -> np.ndarray:
        """The boxes of the sampled messages that overlap a region."""
        boxes = self._boxes
        inside = (boxes[:, 0] <= region[2]) & (boxes[:, 2] >= region[0])
        return np.asarray(boxes[inside & (boxes[:, 1] <= region[3]) & (boxes[:, 3] >= region[1])])


def _chances(counts: np.ndarray, rows: np.ndarray, n_messages: int) -> np.ndarray:
    """(c + 1) / (m + 1 / q) for a term in c of m sampled messages, where q is its probability estimated from the rows.

    q assumes that messages have terms in the proportions of the rows, and as many each as the sample's messages, or
    ASSUMED_TERMS. A term that the sample lacks thus gets about q; a frequent one gets its share of the sample.
    """
    terms = counts.sum() / n_messages if n_messages and counts.any() else ASSUMED_TERMS
    by_rows = np.minimum(1.0, np.maximum(rows, 0.5) * (terms / max(1.0, rows.sum())))
    return np.asarray(np.minimum(1.0, (counts + 1.0) / (n_messages + 1.0 / by_rows)))

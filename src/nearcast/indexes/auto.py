"""Auto: the method that costs least on a sample.

Paper      nearcast; the default everywhere.
Idea       Build each method that knows its costs on a sample of the rows, let all match messages made from that sample,
           and keep the one whose work, counted in nodes and candidates, costs least.
Layout     that of the method chosen.
Cost       that of the method chosen, and a trial on at most 4,096 rows at each build.
Deviates   nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nearcast.arrays.ragged import sorted_sets
from nearcast.geo.space import Space
from nearcast.matching.method import REGISTRY, Method, make_method
from nearcast.matching.store import RowStore
from nearcast.model import NO_TIME, Hits, MessageBatch, RowBatch, Work

DEFAULT = "keyword-first"
SAMPLE_ROWS = 4096
ROWS_PER_MESSAGE = 4  # a made-up message holds the terms of four rows: 8 to 12 terms, as short messages have
MESSAGES = 256


class Auto(Method):
    name = "auto"
    paper = "nearcast"
    effort_ceiling = 0.1

    def __init__(self, store: RowStore, space: Space) -> None:
        super().__init__(store, space)
        self.chosen = make_method(DEFAULT, store, space, {})

    def build(self, rows: np.ndarray) -> None:
        self.chosen = make_method(self._best(rows), self.store, self.space, {})
        self.chosen.build(rows)

    def _best(self, rows: np.ndarray) -> str:
        if len(rows) < 64:
            return DEFAULT
        rng = np.random.default_rng(len(rows))  # seeded: the same rows make the same choice
        batch, _ = self.store.batch(np.sort(rng.choice(rows, min(len(rows), SAMPLE_ROWS), replace=False)))
        messages = _made_up(batch, rng)
        names = [name for name, method in sorted(REGISTRY.items()) if method.cost_ns is not None]
        return min(names, key=lambda name: self._cost(name, batch, messages))

    def _cost(self, name: str, batch: RowBatch, messages: MessageBatch) -> float:
        """Nanoseconds, from the work counted on the sample and the rough cost of each piece: no clock, no chance."""
        store = RowStore(self.space)
        sample = store.add(batch._replace(shapes=np.full(batch.size, -1, np.int32)), [])
        method = make_method(name, store, self.space, {})
        method.build(sample)
        work = method.match(messages)[1]
        node_ns, candidate_ns = method.cost_ns or (0.0, 0.0)
        return work.nodes * node_ns + work.candidates * candidate_ns

    def insert(self, rows: np.ndarray) -> None:
        self.chosen.insert(rows)

    def remove(self, rows: np.ndarray) -> None:
        self.chosen.remove(rows)

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        return self.chosen.match(messages)

    def match_point(self, terms: np.ndarray, place: np.ndarray) -> tuple[np.ndarray, Work]:
        return self.chosen.match_point(terms, place)

    @property
    def nbytes(self) -> int:
        return self.chosen.nbytes

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays, header = self.chosen.state()
        return arrays, {"chosen": self.chosen.name, "inner": header}

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        self.chosen = make_method(header["chosen"], self.store, self.space, {})
        self.chosen.restore(arrays, header["inner"])


def _made_up(batch: RowBatch, rng: np.random.Generator) -> MessageBatch:
    """Messages of the terms of a few rows each, at the middle of the first one's box."""
    groups = rng.integers(0, batch.size, (MESSAGES, ROWS_PER_MESSAGE))
    counts = np.diff(batch.term_starts)[groups].sum(axis=1)
    terms = np.concatenate([batch.terms[batch.term_starts[row] : batch.term_starts[row + 1]] for row in groups.ravel()])
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    terms, starts = sorted_sets(terms, starts)
    boxes = batch.boxes[groups[:, 0]]
    middles = np.tile((boxes[:, :2] / 2 + boxes[:, 2:] / 2), 2)
    return MessageBatch(np.arange(MESSAGES), terms, starts, middles, np.full(MESSAGES, NO_TIME))

"""Rows, live messages and steps for moving subscriptions. The same seed gives every method the same steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from nearcast.arrays.ragged import sorted_sets, starts_of
from nearcast.bench.workloads.corpus import DrawnItems, SyntheticCorpus
from nearcast.bench.workloads.random_numbers import table_generator
from nearcast.bench.workloads.subscriptions import draw_subscriptions, message_batch, row_batch
from nearcast.bench.workloads.workload import Workload
from nearcast.geo.shapes.columns import NO_SHAPES
from nearcast.model import MessageBatch, RowBatch
from nearcast.moving.method import EVERYWHERE
from nearcast.moving.moving_set import Arrivals, Subscribed
from nearcast.moving.subscribers import moving_rows

WORDS = (6, 12)
"""The words of a message, the least and the most."""
LIFETIME = 10
"""The steps that a message lives: a tenth of the messages comes, and a tenth expires, in each step."""
MOVING = 0.2
"""The share of the subscriptions that moves in a step."""
JUMPING = 0.02
"""The share of those that jump to another place; the others shift by SHIFT times their side."""
SHIFT = (0.1, 1.0)


class Step(NamedTuple):
    """One step: messages expire at `now`, others come, subscriptions shift and others jump."""

    now: int
    arrivals: Arrivals
    shifts: tuple[np.ndarray, np.ndarray]  # ids, new boxes
    jumps: tuple[np.ndarray, np.ndarray]


class MovingWorkload:
    """`window` is the number of live messages; `boxes` are drawn as those of the base workload."""

    def __init__(self, base: Workload, subscriptions: int, window: int) -> None:
        self.base = base.but(subscriptions=subscriptions, short=WORDS)
        self.per_step = max(1, window // LIFETIME)
        self._corpus = SyntheticCorpus(self.base)
        self._drawn = draw_subscriptions(self._corpus, self.base, 0, subscriptions)

    @property
    def space(self) -> tuple[float, float, float, float] | None:
        return self.base.space

    @property
    def window(self) -> int:
        """The messages that are live between two steps: rate x lifetime."""
        return self.per_step * LIFETIME

    def rows(self) -> RowBatch:
        """The subscriptions at their first places, as methods for subscriptions that stay see them."""
        return row_batch(self._drawn)

    def subscriptions(self) -> Subscribed:
        """All subscriptions, at their first places."""
        rows = self.rows()
        return Subscribed(rows.owner_ids, moving_rows(rows), NO_SHAPES)

    def first_messages(self) -> Arrivals:
        """The messages that are live at the beginning, of all ages."""
        return self._arrivals(0, self.window, np.arange(self.window) // self.per_step + 1)

    def arriving(self, number: int) -> MessageBatch:
        """The messages that come in a step, numbered from 0, as methods for subscriptions that stay see them."""
        return message_batch(self._drawn_messages(self._first_of(number), self.per_step))

    def steps(self) -> Iterator[Step]:
        """Steps without end."""
        rng = table_generator(self.base.seed, "moving-steps")
        boxes, n = self._drawn.boxes.copy(), len(self._drawn.boxes)
        bounds = self._corpus.bounds
        now = 0
        while True:
            now += 1
            movers = rng.permutation(n)[: max(1, round(MOVING * n))]
            n_jumps = round(JUMPING * len(movers))
            jumping, shifting = np.sort(movers[:n_jumps]), np.sort(movers[n_jumps:])
            middles = self._drawn.boxes[rng.integers(0, n, len(jumping))]
            boxes[jumping] = _around(boxes[jumping], middles[:, :2] / 2 + middles[:, 2:] / 2, bounds)
            boxes[shifting] = _shifted(rng, boxes[shifting], bounds)
            arrivals = self._arrivals(self._first_of(now - 1), self.per_step, np.full(self.per_step, now + LIFETIME))
            yield Step(now, arrivals, (shifting, boxes[shifting]), (jumping, boxes[jumping]))

    def _first_of(self, number: int) -> int:
        """The first message of a step."""
        return self.window + number * self.per_step

    def _arrivals(self, first: int, n: int, expires: np.ndarray) -> Arrivals:
        return Arrivals(_with_everywhere(self._drawn_messages(first, n), first), expires.astype(np.int64))

    def _drawn_messages(self, first: int, n: int) -> DrawnItems:
        return self._corpus.messages("stream", np.arange(first, first + n), self.base.short)


def _with_everywhere(drawn: DrawnItems, first: int) -> MessageBatch:
    """Messages as methods see them: terms shifted by one, and EVERYWHERE first."""
    starts = starts_of(np.diff(drawn.starts) + 1)
    terms = np.full(starts[-1], EVERYWHERE, np.int32)
    is_word = np.ones(len(terms), bool)
    is_word[starts[:-1]] = False
    terms[is_word] = drawn.terms + 1
    return MessageBatch(np.arange(first, first + drawn.size), *sorted_sets(terms, starts), drawn.boxes, starts[1:] * 0)


def _shifted(rng: np.random.Generator, boxes: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Boxes moved by a share of their sides in any direction."""
    sides = boxes[:, 2:] - boxes[:, :2]
    angles, shares = rng.uniform(0, 2 * np.pi, len(boxes)), rng.uniform(*SHIFT, len(boxes))
    shifts = np.stack([np.cos(angles), np.sin(angles)], axis=1) * shares[:, None] * sides
    return _around(boxes, boxes[:, :2] / 2 + boxes[:, 2:] / 2 + shifts, bounds)


def _around(boxes: np.ndarray, middles: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Boxes of the same sizes around other middles, pushed back into the bounds."""
    halves = (boxes[:, 2:] - boxes[:, :2]) / 2
    middles = np.clip(middles, bounds[:2] + halves, bounds[2:] - halves)
    return np.concatenate([middles - halves, middles + halves], axis=1)

"""Subscriptions drawn from messages, so that they can match: some of the tokens, a box around the place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import sorted_sets
from nearcast.bench.workloads.corpus import Corpus, Drawn
from nearcast.bench.workloads.draws import begin, below, log_uniform, stream_key, unit, units
from nearcast.bench.workloads.drift import wandering
from nearcast.bench.workloads.places import draw_box
from nearcast.bench.workloads.workload import Workload
from nearcast.model import NEVER, NO_SHAPE, NO_TIME, MessageBatch, RowBatch

CHUNK = 1 << 18
"""Drawn at a time: 25 MB of source messages. What is drawn does not depend on it."""


class _Settings(NamedTuple):
    tokens: tuple[int, int]
    box_share: tuple[float, float]
    hot_share: float
    world_share: float
    tiny_share: float


def draw_subscriptions(corpus: Corpus, workload: Workload, start: int, stop: int) -> Drawn:
    """Subscriptions number start .. stop - 1."""
    sources = wandering(corpus, workload, source_numbers(workload, start, stop))
    messages = corpus.sources(sources)
    settings = _Settings(
        workload.tokens, workload.box_share, workload.hot_share, workload.world_share, workload.tiny_share
    )
    terms = np.empty(messages.size * workload.tokens[1], np.int32)
    starts, boxes = np.zeros(messages.size + 1, np.int64), np.empty((messages.size, 4))
    numbers = (stream_key(workload.seed, "subscriptions"), sources)
    _draw(settings, corpus.bounds, messages, numbers, terms, starts, boxes)
    return Drawn(terms[: starts[-1]].copy(), starts, boxes)


def source_numbers(workload: Workload, start: int, stop: int) -> np.ndarray:
    """int64[n]: the number of each subscription's source message and draw. Equal numbers are equal draws."""
    numbers = np.arange(start, stop)
    if workload.identical_share > 0:
        key = stream_key(workload.seed, "identical")
        numbers[units(key, numbers) < workload.identical_share] = 0
    return numbers


@kernel
def _draw(settings, bounds, messages, numbers, out_terms, out_starts, out_boxes):
    key, indices = numbers
    state = np.zeros(1, np.uint64)
    at = 0
    for i in range(len(indices)):
        begin(state, key, indices[i])
        tokens = messages.terms[messages.starts[i] : messages.starts[i + 1]].copy()
        least, most = settings.tokens
        count = min(least + below(state, most - least + 1), len(tokens))
        if unit(state) < settings.hot_share:
            tokens.sort()  # small numbers are frequent words
        else:
            _shuffle_first(tokens, count, state)
        out_terms[at : at + count] = tokens[:count]
        at += count
        out_starts[i + 1] = at
        _draw_region(settings, bounds, messages.boxes[i], state, out_boxes[i])


@kernel
def _shuffle_first(values, count, state):
    """Bring `count` random ones of the values to the front."""
    for k in range(count):
        other = k + below(state, len(values) - k)
        values[k], values[other] = values[other], values[k]


@kernel
def _draw_region(settings, bounds, place, state, out_box):
    kind = unit(state)
    share = log_uniform(state, settings.box_share[0], settings.box_share[1])
    if kind < settings.world_share:
        out_box[:] = bounds
    elif kind < settings.world_share + settings.tiny_share:
        out_box[:] = place
    else:
        draw_box(bounds, place[0], place[1], share, state, out_box)


def subscription_chunks(
    corpus: Corpus, workload: Workload, chunk: int = CHUNK, stop: int | None = None
) -> Iterator[tuple[int, Drawn]]:
    """(first number, subscriptions), chunk by chunk: of all, or of the first so many."""
    stop = workload.subscriptions if stop is None else stop
    for start in range(0, stop, chunk):
        yield start, draw_subscriptions(corpus, workload, start, min(start + chunk, stop))


def row_batch(drawn: Drawn, first_id: int = 0) -> RowBatch:
    """As rows, without strings: terms are word numbers, ids count up."""
    n = drawn.size
    terms, starts = sorted_sets(drawn.terms, drawn.starts)
    return RowBatch(
        np.arange(first_id, first_id + n),
        terms,
        starts,
        np.empty(0, np.int32),
        np.zeros(n + 1, np.int64),
        drawn.boxes,
        np.full(n, NO_SHAPE, np.int32),
        np.full(n, NEVER),
    )


def message_batch(drawn: Drawn) -> MessageBatch:
    """As messages, without strings."""
    terms, starts = sorted_sets(drawn.terms, drawn.starts)
    return MessageBatch(np.arange(drawn.size), terms, starts, drawn.boxes, np.full(drawn.size, NO_TIME))

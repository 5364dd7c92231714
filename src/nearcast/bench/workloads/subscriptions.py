"""Subscriptions drawn from messages, so that messages can match: some tokens of a message, a box around its place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import sorted_sets, starts_of
from nearcast.bench.workloads.corpus import Corpus, DrawnItems
from nearcast.bench.workloads.places import draw_box, draw_box_km
from nearcast.bench.workloads.random_numbers import DrawNumbers, begin, below, log_uniform, stream_key, unit, units
from nearcast.bench.workloads.workload import Workload
from nearcast.geo.space import LONLAT
from nearcast.model import NEVER, NO_SHAPE, NO_TIME, MessageBatch, RowBatch

CHUNK = 1 << 18
"""Subscriptions drawn at a time: 25 MB of source messages. The chunk size does not change what is drawn."""
_CHOICES = 8  # source messages that a drifting subscription chooses from
_CHOICE_STRIDE = 1 << 40  # between the numbers of two choices: more than there are subscriptions


class _Settings(NamedTuple):
    tokens: tuple[int, int]
    box_share: tuple[float, float]
    radius_km: tuple[float, float]
    hot_share: float
    world_share: float
    tiny_share: float


def draw_subscriptions(corpus: Corpus, workload: Workload, start: int, stop: int) -> DrawnItems:
    """Subscriptions number start .. stop - 1."""
    sources = _drifted(corpus, workload, source_numbers(workload, start, stop))
    messages = corpus.sources(sources)
    settings = _Settings(*(getattr(workload, name) for name in _Settings._fields))
    n = messages.size
    out = DrawnItems(np.empty(n * workload.tokens[1], np.int32), np.zeros(n + 1, np.int64), np.empty((n, 4)))
    draws = DrawNumbers(stream_key(workload.seed, "subscriptions"), sources)
    bounds = np.array(LONLAT.bounds) if workload.radius_km[1] > 0 else corpus.bounds
    _draw(settings, bounds, messages, draws, out)
    return _without_words(out._replace(terms=out.terms[: out.starts[-1]].copy()), workload, sources)


def _without_words(drawn: DrawnItems, workload: Workload, sources: np.ndarray) -> DrawnItems:
    """The subscriptions; the share `wordless_share` loses its words."""
    if workload.wordless_share == 0:
        return drawn
    counts = np.diff(drawn.starts)
    keeps = units(stream_key(workload.seed, "wordless"), sources) >= workload.wordless_share
    return drawn._replace(terms=drawn.terms[np.repeat(keeps, counts)], starts=starts_of(counts * keeps))


def source_numbers(workload: Workload, start: int, stop: int) -> np.ndarray:
    """The number of each subscription's source message and draw, int64[n]. Equal numbers are equal draws."""
    numbers = np.arange(start, stop)
    if workload.identical_share > 0:
        key = stream_key(workload.seed, "identical")
        numbers[units(key, numbers) < workload.identical_share] = 0
    return numbers


def _drifted(corpus: Corpus, workload: Workload, sources: np.ndarray) -> np.ndarray:
    """The source numbers, with the share `drift_share` replaced so that places drift from west to east.

    A drifting subscription takes, of eight messages, the one nearest to a line of longitude. That line moves from the
    west border to the east border between the first subscription and the last.
    """
    if workload.drift_share == 0 or not len(sources):
        return sources
    west, east = corpus.bounds[0], corpus.bounds[2]
    line = west + (sources + 0.5) / workload.subscriptions * (east - west)
    choices = sources[:, None] + _CHOICE_STRIDE * np.arange(_CHOICES)
    xs = corpus.sources(choices.ravel()).boxes[:, 0].reshape(choices.shape)
    nearest = choices[np.arange(len(sources)), np.abs(xs - line[:, None]).argmin(axis=1)]
    drifts = units(stream_key(workload.seed, "drift"), sources) < workload.drift_share
    return np.asarray(np.where(drifts, nearest, sources))


@kernel
def _draw(settings, bounds, messages, draws, out):
    """Fill `out` with one subscription for each source message."""
    state = np.zeros(1, np.uint64)
    at = 0
    for i in range(len(draws.indices)):
        begin(state, draws.key, draws.indices[i])
        tokens = messages.terms[messages.starts[i] : messages.starts[i + 1]].copy()
        least, most = settings.tokens
        count = min(least + below(state, most - least + 1), len(tokens))
        if unit(state) < settings.hot_share:
            tokens.sort()  # small numbers are frequent words
        else:
            _shuffle_first(tokens, count, state)
        out.terms[at : at + count] = tokens[:count]
        at += count
        out.starts[i + 1] = at
        _draw_region(settings, bounds, messages.boxes[i], state, out.boxes[i])


@kernel
def _shuffle_first(values, count, state):
    """Move `count` randomly chosen values to the front."""
    for k in range(count):
        other = k + below(state, len(values) - k)
        values[k], values[other] = values[other], values[k]


@kernel
def _draw_region(settings, bounds, place, state, out_box):
    kind = unit(state)
    in_km = settings.radius_km[1] > 0.0
    sizes = settings.radius_km if in_km else settings.box_share
    size = log_uniform(state, sizes[0], sizes[1])
    if kind < settings.world_share:
        out_box[:] = bounds
    elif kind < settings.world_share + settings.tiny_share:
        out_box[:] = place
    elif in_km:
        draw_box_km(place[0], place[1], size, state, out_box)
    else:
        draw_box(bounds, place[0], place[1], size, state, out_box)


def subscription_chunks(
    corpus: Corpus, workload: Workload, chunk: int = CHUNK, stop: int | None = None
) -> Iterator[tuple[int, DrawnItems]]:
    """All subscriptions, or the first `stop`, chunk by chunk: (number of the first, subscriptions)."""
    stop = workload.subscriptions if stop is None else stop
    for start in range(0, stop, chunk):
        yield start, draw_subscriptions(corpus, workload, start, min(start + chunk, stop))


def row_batch(drawn: DrawnItems, first_id: int = 0) -> RowBatch:
    """The subscriptions as rows. Terms are word numbers; ids count up from `first_id`."""
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


def message_batch(drawn: DrawnItems, times: np.ndarray | None = None) -> MessageBatch:
    """The messages as a batch. Terms are word numbers; ids count up from 0."""
    terms, starts = sorted_sets(drawn.terms, drawn.starts)
    times = np.full(drawn.size, NO_TIME) if times is None else times
    return MessageBatch(np.arange(drawn.size), terms, starts, drawn.boxes, times)

"""Subscriptions whose places wander: the later one comes, the further east it is."""

from __future__ import annotations

import numpy as np

from nearcast.bench.workloads.corpus import Corpus
from nearcast.bench.workloads.draws import stream_key, units
from nearcast.bench.workloads.workload import Workload

_CHOICES = 8  # messages that a wandering subscription chooses its source from
_APART = 1 << 40  # between the numbers of two choices: more than there are subscriptions


def wandering(corpus: Corpus, workload: Workload, sources: np.ndarray) -> np.ndarray:
    """The numbers of source messages, some replaced by one of eight others: the one whose place is nearest to where the
    subscriptions then come from. That moves from the west border to the east one, from the first number to the last.
    """
    if workload.drift_share == 0 or not len(sources):
        return sources
    west, east = corpus.bounds[0], corpus.bounds[2]
    wave = west + (sources + 0.5) / workload.subscriptions * (east - west)
    choices = sources[:, None] + _APART * np.arange(_CHOICES)
    xs = corpus.sources(choices.ravel()).boxes[:, 0].reshape(choices.shape)
    nearest = choices[np.arange(len(sources)), np.abs(xs - wave[:, None]).argmin(axis=1)]
    wanders = units(stream_key(workload.seed, "drift"), sources) < workload.drift_share
    return np.asarray(np.where(wanders, nearest, sources))

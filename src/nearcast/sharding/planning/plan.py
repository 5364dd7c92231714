"""Makes the shard plan: a router whose shards all cost about the same.

The costs come from samples: the expected messages are matched with a sample of the subscriptions. The cost of a message
is its reading, its terms and its matches; the cost of a shard is the sum over the messages that visit it.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from nearcast.sharding.planning.kd_tree import Plane, grow_areas
from nearcast.sharding.planning.keyword_placement import place_keywords
from nearcast.sharding.planning.loads import home_shards, shard_loads
from nearcast.sharding.planning.text_division import choose_divided_leaves, most_leaves, place_keys, rows_over
from nearcast.sharding.planning.workload_sample import WorkloadSample, read_sample
from nearcast.sharding.routing.areas import Areas
from nearcast.sharding.routing.router import Router
from nearcast.sharding.weights import Weights
from nearcast.tables import Dialect

_ROUNDS = 6  # of planning, at most; each learns from the loads of the one before
_EVEN = 1.1  # the largest load over the mean at which planning stops


def make_router(
    subscriptions: pa.Table,
    messages: pa.Table | None,
    n_shards: int,
    dialect: Dialect,
    scale: float = 1.0,
    weights: Weights | None = None,
) -> Router:
    """A router for `n_shards` shards, made from samples.

    Without messages, the terms of the subscriptions at places within their boxes stand in for messages. Without
    weights, token weights are computed from the sample. A sampled subscription stands for `scale` subscriptions.
    """
    sample = read_sample(subscriptions, messages, dialect, scale, weights)
    factors = np.ones(sample.messages.size)
    best, least = None, np.inf
    for _ in range(_ROUNDS):
        router = _router(sample, factors, n_shards, dialect)
        loads = shard_loads(router, sample)
        if loads.uneven < least:
            best, least = router, loads.uneven
        if loads.uneven <= _EVEN:
            break
        # Messages that visit several shards cost more than assumed: scale their cost by the load of their home shard.
        of_home = loads.shards[home_shards(router, sample)]
        factors *= np.clip(of_home / max(loads.shards.mean(), 1.0), 0.25, 4.0)
    assert best is not None
    return best


def _router(sample: WorkloadSample, factors: np.ndarray, n_shards: int, dialect: Dialect) -> Router:
    areas = _areas(sample, np.ones(sample.rows.size, bool), factors, n_shards)
    most = most_leaves(areas, sample.rows)
    if most < len(areas.is_divided):
        # Matches of rows that are routed by text are not part of the leaves' cost: grow the tree again without them.
        areas = _areas(sample, ~rows_over(areas, sample.rows, most), factors, n_shards)
        areas.limits[0] = min(most, len(areas.is_divided))
    return place_keywords(place_keys(Router(areas, dialect), sample), sample)


def _areas(sample: WorkloadSample, is_counted: np.ndarray, factors: np.ndarray, n_shards: int) -> Areas:
    boxes = sample.messages.boxes
    centres = boxes[:, :2] / 2 + boxes[:, 2:] / 2
    areas = grow_areas(Plane(centres, sample.costs(is_counted) * factors, sample.rows.boxes), n_shards)
    return choose_divided_leaves(areas, sample.rows.boxes)

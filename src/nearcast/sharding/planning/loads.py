"""The load of each shard if a given router routes the sampled messages."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import starts_of, take
from nearcast.sharding.planning.workload_sample import MATCH_NS, WorkloadSample
from nearcast.sharding.routing.keyword_shards import SPREAD_OVER_ALL, shards_of_keyword
from nearcast.sharding.routing.router import Router, distinct_keys, hashes_of_terms
from nearcast.sharding.routing.visits import Messages


class Loads(NamedTuple):
    """The loads that a router causes."""

    shards: np.ndarray  # float64[n_shards]  nanoseconds
    is_visited: np.ndarray  # bool[n, n_shards]  which shards each message visits

    @property
    def uneven(self) -> float:
        """The largest load over the mean load."""
        return float(self.shards.max() / self.shards.mean()) if self.shards.any() else 1.0


def shard_loads(router: Router, sample: WorkloadSample, by_keyword: bool = True) -> Loads:
    """The loads with all rows or, with by_keyword=False, without the rows that are filed by keyword."""
    triples = router.assign_read(sample.rows, sample.vocabulary)
    filed, keywords = [triples], sample.keywords.hashes
    if by_keyword:
        filed.append(router.assign_by_keyword(np.arange(len(keywords)), keywords, keywords))
    visits = _visits(router.with_keys(distinct_keys(np.concatenate(filed))), sample)
    n_shards = router.n_shards
    loads = np.bincount(visits[:, 1], sample.visit_ns[visits[:, 0]], minlength=n_shards).astype(np.float64)
    loads += MATCH_NS * sample.scale * _matches(sample, triples, visits, n_shards)
    is_visited = np.zeros((sample.messages.size, n_shards), np.bool_)
    is_visited[visits[:, 0], visits[:, 1]] = True
    if by_keyword:
        add_lookups(router.placements.arrays, sample.keywords, is_visited, loads)
    return Loads(loads, is_visited)


def home_shards(router: Router, sample: WorkloadSample) -> np.ndarray:
    """int64[n]: the shard of each message's place."""
    visits = _visits(router, sample)  # the router has no keys yet: a message is routed by place and id alone
    return np.asarray(visits[np.searchsorted(visits[:, 0], np.arange(sample.messages.size)), 1])


@kernel
def add_lookups(placements, keywords, is_visited, loads):
    """Add the cost of the rows that messages meet under their keywords to the load of each shard."""
    n_shards = len(loads)
    for keyword in range(len(keywords.hashes)):
        first, size = shards_of_keyword(placements, n_shards, keywords.hashes[keyword])
        cost = keywords.lookup_ns[keyword]
        if size == SPREAD_OVER_ALL:
            size, cost = n_shards, cost / n_shards
        for k in range(keywords.starts[keyword], keywords.starts[keyword + 1]):
            for at in range(size):
                shard = (first + at) % n_shards
                if is_visited[keywords.messages[k], shard]:
                    loads[shard] += cost


def _visits(router: Router, sample: WorkloadSample) -> np.ndarray:
    batch = sample.messages
    hashes, starts = np.empty(0, np.int64), np.zeros(batch.size + 1, np.int64)
    if router.keys.size:
        hashes, starts = hashes_of_terms(sample.vocabulary)[batch.terms], batch.term_starts
    return router.route_read(Messages(batch.ids, batch.boxes, hashes, starts))


def _matches(sample: WorkloadSample, triples: np.ndarray, visits: np.ndarray, n_shards: int) -> np.ndarray:
    """float64[n_shards]: matches found in each shard. A match that several shards find counts in each of them."""
    starts = starts_of(np.bincount(triples[:, 0], minlength=sample.rows.size))  # the triples of a row are adjacent
    shards, copy_starts = take(np.ascontiguousarray(triples[:, 1]), starts, sample.match_rows)
    messages = np.repeat(np.arange(sample.messages.size), np.diff(sample.match_starts))
    messages = np.repeat(messages, np.diff(copy_starts))
    met = np.isin(messages * n_shards + shards, visits[:, 0] * n_shards + visits[:, 1])
    return np.bincount(shards[met], minlength=n_shards).astype(np.float64)

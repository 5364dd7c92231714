"""What each shard would have to do for the sampled messages, with a router as it is."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.sharding.planning.costs import MATCH_NS
from nearcast.sharding.planning.workload_sample import WorkloadSample
from nearcast.sharding.routing.keyword_shards import SPREAD_OVER_ALL, shards_of_word
from nearcast.sharding.routing.router import Router, distinct_keys, hashes_of_terms
from nearcast.sharding.routing.visits import Messages


class Loads(NamedTuple):
    """What came of a router."""

    shards: np.ndarray  # float64[n_shards]  nanoseconds
    is_visited: np.ndarray  # bool[n, n_shards]  by each message

    @property
    def uneven(self) -> float:
        """The largest over the mean."""
        return float(self.shards.max() / self.shards.mean()) if self.shards.any() else 1.0


def shard_loads(router: Router, sample: WorkloadSample, by_words: bool = True) -> Loads:
    """With all rows, or without those that are found by words wherever a message is."""
    triples = router.assign_read(sample.rows, sample.vocabulary)
    filed, words = [triples], sample.keywords.words
    if by_words:
        filed.append(router.assign_by_words(np.arange(len(words)), words, words))
    visits = _visits(router.with_keys(distinct_keys(np.concatenate(filed))), sample)
    n_shards = router.n_shards
    loads = np.bincount(visits[:, 1], sample.visit_ns[visits[:, 0]], minlength=n_shards).astype(np.float64)
    loads += MATCH_NS * sample.scale * _matches(sample, triples, visits, n_shards)
    is_visited = np.zeros((sample.messages.size, n_shards), np.bool_)
    is_visited[visits[:, 0], visits[:, 1]] = True
    if by_words:
        add_looks(router.placements.arrays, sample.keywords, is_visited, loads)
    return Loads(loads, is_visited)


def homes(router: Router, sample: WorkloadSample) -> np.ndarray:
    """int64[n]: the shard of each message's place."""
    visits = _visits(router, sample)  # without keys: a message goes by its place and id alone
    return np.asarray(visits[np.searchsorted(visits[:, 0], np.arange(sample.messages.size)), 1])


@kernel
def add_looks(placements, keywords, is_visited, loads):
    """What the rows cost that messages meet under their words, in each shard."""
    n_shards = len(loads)
    for word in range(len(keywords.words)):
        first, size = shards_of_word(placements, n_shards, keywords.words[word])
        cost = keywords.look_ns[word]
        if size == SPREAD_OVER_ALL:
            size, cost = n_shards, cost / n_shards
        for k in range(keywords.starts[word], keywords.starts[word + 1]):
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
    """float64[n_shards]: matches found in each shard; where several find one, each has the work."""
    counts = np.bincount(triples[:, 0], minlength=sample.rows.size)
    starts = np.concatenate([[0], np.cumsum(counts)])
    messages = np.repeat(np.arange(sample.messages.size), np.diff(sample.match_starts))
    copies = counts[sample.match_rows]
    # The triples of a match's row lie together, from starts[row].
    offsets = np.arange(copies.sum()) - np.repeat(np.cumsum(copies) - copies, copies)
    shards = triples[np.repeat(starts[sample.match_rows], copies) + offsets, 1]
    met = np.isin(np.repeat(messages, copies) * n_shards + shards, visits[:, 0] * n_shards + visits[:, 1])
    return np.bincount(shards[met], minlength=n_shards).astype(np.float64)

"""What each shard would have to do for the sampled messages, with a router as it is."""

from __future__ import annotations

import numpy as np

from nearcast.spark.areas import Messages
from nearcast.spark.router import Router, distinct_keys, hashes_of_terms
from nearcast.spark.sample import MATCH_NS, MESSAGE_NS, TERM_NS, Sampled


def shard_loads(router: Router, sample: Sampled) -> tuple[np.ndarray, np.ndarray]:
    """(float64[n_shards] nanoseconds, int64[n] the shard of each message's place)."""
    triples = router.assign_read(sample.rows, sample.vocabulary)
    visits = _visits(router.with_keys(distinct_keys(triples)), sample)
    n_shards = router.n_shards
    n_terms = np.diff(sample.messages.term_starts)[visits[:, 0]]
    loads = np.bincount(visits[:, 1], MESSAGE_NS + TERM_NS * n_terms, minlength=n_shards).astype(np.float64)
    loads += MATCH_NS * sample.scale * _matches(sample, triples, visits, n_shards)
    homes = _visits(router, sample)  # without keys: a message goes by its place and id alone
    first = np.searchsorted(homes[:, 0], np.arange(sample.messages.size))
    return loads, homes[first, 1]


def _visits(router: Router, sample: Sampled) -> np.ndarray:
    batch = sample.messages
    hashes, starts = np.empty(0, np.int64), np.zeros(batch.size + 1, np.int64)
    if router.keys.size:
        hashes, starts = hashes_of_terms(sample.vocabulary)[batch.terms], batch.term_starts
    return router.route_read(Messages(batch.ids, batch.boxes, hashes, starts))


def _matches(sample: Sampled, triples: np.ndarray, visits: np.ndarray, n_shards: int) -> np.ndarray:
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

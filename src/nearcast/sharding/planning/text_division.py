"""Chooses what is divided by text: leaves with too many messages at one spot, and rows over too many leaves."""

from __future__ import annotations

import heapq

import numpy as np

from nearcast.arrays.intmap import IntMap
from nearcast.arrays.ragged import distinct
from nearcast.model import RowBatch
from nearcast.sharding.planning.workload_sample import MATCH_NS, MESSAGE_NS, WorkloadSample
from nearcast.sharding.routing.areas import EVERYWHERE_AREA, NO_KEY, Areas, Rows, assign_rows, mix_hash
from nearcast.sharding.routing.router import Router, hashes_of_terms

MOST_COPIES = 3.0
"""Copies of a row with terms, on average. Beyond it, the rows over the most leaves are divided by text."""

MOST_ADDED = 1.0
"""Extra copies per row caused by leaves of several parts. Beyond it, the fullest such leaves are divided by text."""

_HEAVY = 0.25  # of a shard's mean cost: a key that costs more is not divided
_LIGHT = 1e-3  # of a shard's mean cost: keys that cost less are placed by hash


def leaf_pairs(areas: Areas, boxes: np.ndarray) -> np.ndarray:
    """int64[k,2]: (row, leaf) for each leaf that contains a point of the row's box."""
    n_leaves = len(areas.is_divided)
    plain = areas._replace(
        part_starts=np.arange(n_leaves + 1, dtype=np.int64),
        part_shards=np.arange(n_leaves, dtype=np.int32),
        is_divided=np.zeros(n_leaves, np.uint8),
        limits=np.array([n_leaves, n_leaves], np.int64),
    )
    rows = Rows(np.ascontiguousarray(boxes), np.full(len(boxes), NO_KEY, np.int64))
    return np.asarray(assign_rows(plain, IntMap().arrays, rows)[:, :2])


def choose_divided_leaves(areas: Areas, boxes: np.ndarray) -> Areas:
    """Mark as divided the leaves of several parts whose rows are too many to copy to each part."""
    n_parts = np.diff(areas.part_starts)
    counts = np.bincount(leaf_pairs(areas, boxes)[:, 1], minlength=len(n_parts))
    added = (n_parts - 1) * counts
    order = np.argsort(added, kind="stable")
    too_many = np.zeros(len(n_parts), bool)
    too_many[order] = np.cumsum(added[order]) >= MOST_ADDED * max(1, len(boxes))
    return areas._replace(is_divided=((n_parts > 1) & too_many).astype(np.uint8))


def most_leaves(areas: Areas, rows: RowBatch) -> int:
    """The number of leaves beyond which rows are divided, so that MOST_COPIES holds; all leaves if none need be."""
    copies = np.bincount(leaf_pairs(areas, rows.boxes)[:, 0], minlength=rows.size)[np.diff(rows.term_starts) > 0]
    steps, counts = np.unique(copies, return_counts=True)
    # With the limit at a step, rows up to the limit have all their copies, and rows beyond it have one.
    totals = np.cumsum(steps * counts) + counts.sum() - np.cumsum(counts)
    fits = steps[totals <= MOST_COPIES * counts.sum()]
    return len(areas.is_divided) if len(fits) == len(steps) else max(1, int(fits.max(initial=1)))


def rows_over(areas: Areas, rows: RowBatch, most: int) -> np.ndarray:
    """bool[n]: rows with terms that reach over more than `most` leaves."""
    copies = np.bincount(leaf_pairs(areas, rows.boxes)[:, 0], minlength=rows.size)
    return np.asarray((copies > most) & (np.diff(rows.term_starts) > 0))


def place_keys(router: Router, sample: WorkloadSample) -> Router:
    """The same router with token frequencies, which choose keys, and with the costliest keys placed one by one."""
    if not router.divides_by_text:
        return router
    _count_frequencies(router, sample)
    keys = router.keys_of(sample.rows, sample.vocabulary)
    areas, n_messages = router.areas, sample.messages.size
    is_wide = rows_over(areas, sample.rows, int(areas.limits[0]))
    pairs = leaf_pairs(areas, sample.messages.boxes)
    loads = _loads(areas, sample.costs(~is_wide), pairs)
    if router.divides_wide:
        found = _weights(sample, keys, is_wide, np.ones(n_messages, bool))
        _place(router, found, EVERYWHERE_AREA, (np.arange(router.n_shards), loads))
    for leaf in np.flatnonzero(areas.is_divided).tolist():
        in_leaf = np.zeros(n_messages, bool)
        in_leaf[pairs[pairs[:, 1] == leaf, 0]] = True
        shards = areas.part_shards[areas.part_starts[leaf] : areas.part_starts[leaf + 1]]
        _place(router, _weights(sample, keys, ~is_wide, in_leaf), leaf + 1, (shards, np.zeros(len(shards))))
    return router


def _count_frequencies(router: Router, sample: WorkloadSample) -> None:
    counts = np.bincount(sample.messages.terms, minlength=len(sample.vocabulary))
    seen = counts > 0
    router.frequencies.put(hashes_of_terms(sample.vocabulary)[seen], counts[seen].astype(np.int32))


def _loads(areas: Areas, costs: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """float64[n_shards]: the cost of the leaves without the rows that are divided over all shards."""
    n_parts = np.diff(areas.part_starts)
    of_leaf = np.bincount(pairs[:, 1], costs[pairs[:, 0]], minlength=len(n_parts)) / n_parts
    loads = np.zeros(int(areas.limits[1]))
    loads[areas.part_shards] = np.repeat(of_leaf, n_parts)
    return loads


def _weights(
    sample: WorkloadSample, keys: np.ndarray, is_divided: np.ndarray, is_here: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(keys, nanoseconds): the cost of the visits and matches that each key causes among the messages here."""
    known = distinct(keys[is_divided & (keys != NO_KEY)])
    of_message = np.repeat(is_here, np.diff(sample.messages.term_starts))
    hashes = hashes_of_terms(sample.vocabulary)[sample.messages.terms[of_message]]
    of_match = np.repeat(is_here, np.diff(sample.match_starts))
    rows = sample.match_rows[of_match]
    matched = keys[rows[is_divided[rows]]]
    visits, matches = (
        np.bincount(np.searchsorted(known, values[np.isin(values, known)]), minlength=len(known))
        for values in (hashes, matched)
    )
    return known, MESSAGE_NS * visits + MATCH_NS * sample.scale * matches


def _place(router: Router, found: tuple[np.ndarray, np.ndarray], area: int, to: tuple[np.ndarray, np.ndarray]) -> None:
    """Place the costliest key first, each in the shard with the smallest load."""
    (keys, weights), (shards, loads) = found, to
    mean = (weights.sum() + loads.sum()) / max(1, len(shards))
    lightest = [(float(load), int(shard)) for load, shard in zip(loads, shards, strict=True)]
    heapq.heapify(lightest)
    order = np.argsort(-weights, kind="stable")
    filed, chosen = [], []
    for k in order[weights[order] > _LIGHT * mean].tolist():
        filed.append(mix_hash(keys[k], area))
        if weights[k] > _HEAVY * mean:
            chosen.append(router.n_shards)  # not divided
            continue
        load, shard = lightest[0]
        heapq.heapreplace(lightest, (load + float(weights[k]), shard))
        chosen.append(shard)
    router.placements.put(np.array(filed, np.int64), np.array(chosen, np.int32))

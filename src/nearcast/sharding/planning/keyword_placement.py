"""Where the key words of ranked rows are placed: by what they cost in a sample, the dearest first.

A word brings the messages that have it to its shard, unless they visit it already, and has them look at its rows. Each
goes where the least is then to do. One that would give a shard too much gets a span of shards, as long as copies are
few, or is spread (see word_codes.py).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import take
from nearcast.sharding.planning.loads import shard_loads
from nearcast.sharding.planning.workload_sample import WorkloadSample
from nearcast.sharding.routing.areas import mix_hash
from nearcast.sharding.routing.keyword_shards import MOST_SHARDS, SPREAD_OVER_ALL, code_of_span, file_words
from nearcast.sharding.routing.router import Router

MOST_IN_SPANS = 0.5
"""Copies more by words in spans, for each time that a row is filed under a word."""

_FEWEST_SEEN = 8  # messages of the sample with a word: below, what they cost is chance, and the word goes by its hash
_EVEN = 1.1  # the largest load over the mean that is aimed at
_PASSES = 4  # each knows from the one before what a shard has to do on average
_CHOOSE = -1


class CostlyKeywords(NamedTuple):
    """Words in the order in which they are placed, and what they cost."""

    n_rows: np.ndarray  # int64[n]
    look_ns: np.ndarray  # float64[n]  at all rows of a word, for each message that has it
    starts: np.ndarray  # int64[n+1]
    messages: np.ndarray  # int64[...]  which have each
    visit_ns: np.ndarray  # float64[n_messages]


def place_keywords(router: Router, sample: WorkloadSample) -> Router:
    """The same router, with those words placed that matter."""
    keywords = sample.keywords
    n_seen = np.diff(keywords.starts)
    if not 1 < router.n_shards <= MOST_SHARDS or not (n_seen >= _FEWEST_SEEN).any():
        return router
    visit_ns = sample.visit_ns
    by_hash = router.assign_by_words(np.arange(len(n_seen)), keywords.words, keywords.words)[:, 1]
    codes = np.where(n_seen < _FEWEST_SEEN, by_hash, _CHOOSE)
    order = np.lexsort((-n_seen * (visit_ns.mean() + keywords.look_ns), codes == _CHOOSE))
    messages, starts = take(keywords.messages, keywords.starts, order)
    costly = CostlyKeywords(keywords.n_rows[order], keywords.look_ns[order], starts, messages, visit_ns)
    chosen = _chosen(router, sample, costly, codes[order])
    is_placed = codes[order] == _CHOOSE
    router.placements.put(file_words(keywords.words[order][is_placed]), chosen[is_placed].astype(np.int32))
    return router


def _chosen(router: Router, sample: WorkloadSample, costly: CostlyKeywords, codes: np.ndarray) -> np.ndarray:
    """int64[n]: all codes, of the most even pass."""
    before = shard_loads(router, sample, by_words=False)
    cap, best, least = np.inf, codes, np.inf
    for _ in range(_PASSES):
        loads, is_visited, made = before.shards.copy(), before.is_visited.copy(), codes.copy()
        place_costly_keywords(costly, np.array([cap, MOST_IN_SPANS * costly.n_rows.sum()]), is_visited, loads, made)
        uneven = loads.max() / loads.mean()
        if uneven < least:
            best, least = made, uneven
        if uneven <= _EVEN:
            break
        cap = _EVEN * loads.mean()
    return best


@kernel
def place_costly_keywords(costly, limits, is_visited, loads, codes):
    """Choose codes where there are none; visits and loads are kept. `limits`: the most that a shard should have to do,
    and how many copies may still be made.
    """
    n_shards = len(loads)
    added = np.empty(n_shards)
    for word in range(len(codes)):
        own = costly.messages[costly.starts[word] : costly.starts[word + 1]]
        sum_new_visits(own, costly.visit_ns, is_visited, added)
        look_ns = costly.look_ns[word]
        first, size = np.int64(codes[word]), np.int64(1)
        if codes[word] == _CHOOSE:
            first, size = shards_for(loads, added, look_ns * len(own), costly.n_rows[word], limits)
            codes[word] = first if size == 1 else code_of_span(first, size, n_shards)
        if size == SPREAD_OVER_ALL:
            for shard in range(n_shards):
                loads[shard] += added[shard] + look_ns * len(own) / n_shards
                for m in own:
                    is_visited[m, shard] = True
        else:
            visit_span((first, size, word), own, costly.visit_ns, look_ns, is_visited, loads)


@kernel
def sum_new_visits(own, visit_ns, is_visited, added):
    """added[s]: what the messages cost that do not visit shard s yet."""
    added[:] = 0.0
    for m in own:
        for shard in range(len(added)):
            added[shard] += 0.0 if is_visited[m, shard] else visit_ns[m]


@kernel
def shards_for(loads, added, looks_ns, n_rows, limits):
    """(first, size) for a word: the fewest shards that do not have too much to do then, else what comes nearest."""
    n_shards = len(loads)
    best, least = (np.int64(np.argmin(loads + added)), np.int64(1)), (loads + added).min() + looks_ns
    size = np.int64(1)
    while least > limits[0] and size < n_shards:
        size = min(2 * size, np.int64(n_shards))
        if (size - 1) * n_rows > limits[1]:
            break
        first, most = evenest_span(loads, added, looks_ns, size)
        if most < least:
            best, least = (first, size), most
    if least > limits[0] and (loads + added).max() + looks_ns / n_shards < least:
        best = (np.int64(0), np.int64(SPREAD_OVER_ALL))
    limits[1] -= max(best[1] - 1, 0) * n_rows
    return best


@kernel
def evenest_span(loads, added, looks_ns, size):
    """(first, the most that one of its shards has to do) of the span of this size where that is least."""
    n_shards = len(loads)
    new = 0.0 if size == n_shards else 1.0 / size  # where all shards hold the rows, nobody has to come
    best, least = np.int64(0), np.inf
    for first in range(n_shards):
        most = 0.0
        for k in range(size):
            shard = (first + k) % n_shards
            most = max(most, loads[shard] + new * added[shard] + looks_ns / size)
        if most < least:
            best, least = np.int64(first), most
    return best, least


@kernel
def visit_span(span, own, visit_ns, look_ns, is_visited, loads):
    """Messages come to one shard of a span, unless they are in one; where they are, they look at the rows."""
    n_shards = len(loads)
    first, size, word = span
    for m in own:
        is_there = False
        for k in range(size):
            shard = (first + k) % n_shards
            if is_visited[m, shard]:
                is_there = True
                loads[shard] += look_ns
        if not is_there:
            shard = (first + mix_hash(m, word) % size) % n_shards
            is_visited[m, shard] = True
            loads[shard] += visit_ns[m] + look_ns

"""Places the keywords of ranked rows in shards, by what they cost in a sample, the costliest keyword first.

A keyword brings the messages that contain it to its shard, unless they visit the shard already, and makes them test its
rows. Each keyword goes to the shard whose load is then the smallest. A keyword that would overload one shard gets a
span of shards as long as there are few copies; otherwise its rows are spread (see routing/keyword_shards.py).
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import take
from nearcast.sharding.planning.loads import shard_loads
from nearcast.sharding.planning.workload_sample import RoutedKeywords, WorkloadSample
from nearcast.sharding.routing.areas import mix_hash
from nearcast.sharding.routing.keyword_shards import MOST_SHARDS, SPREAD_OVER_ALL, code_of_span, file_keywords
from nearcast.sharding.routing.router import Router

MOST_IN_SPANS = 0.5
"""Extra copies caused by keywords in spans, for each time that a row is filed under a keyword."""

_FEWEST_SEEN = 8  # sampled messages with a keyword: with fewer, the cost is chance, and the keyword goes by its hash
_EVEN = 1.1  # the largest load over the mean at which the search stops
_PASSES = 4  # each pass knows the mean load of the pass before
_CHOOSE = -1


def place_keywords(router: Router, sample: WorkloadSample) -> Router:
    """The same router, with the keywords placed that enough sampled messages contain."""
    keywords = sample.keywords
    n_seen = np.diff(keywords.starts)
    if not 1 < router.n_shards <= MOST_SHARDS or not (n_seen >= _FEWEST_SEEN).any():
        return router
    by_hash = router.assign_by_keyword(np.arange(len(n_seen)), keywords.hashes, keywords.hashes)[:, 1]
    codes = np.where(n_seen < _FEWEST_SEEN, by_hash, _CHOOSE)
    order = np.lexsort((-n_seen * (sample.visit_ns.mean() + keywords.lookup_ns), codes == _CHOOSE))
    messages, starts = take(keywords.messages, keywords.starts, order)
    hashes, n_rows, lookup_ns = (column[order] for column in keywords[:3])
    costly = RoutedKeywords(hashes, n_rows, lookup_ns, starts, messages)
    chosen = _chosen_codes(router, sample, costly, codes[order])
    is_placed = codes[order] == _CHOOSE
    router.placements.put(file_keywords(hashes[is_placed]), chosen[is_placed].astype(np.int32))
    return router


def _chosen_codes(router: Router, sample: WorkloadSample, costly: RoutedKeywords, codes: np.ndarray) -> np.ndarray:
    """int64[n]: the codes of the pass with the most even loads."""
    visit_ns = sample.visit_ns
    before = shard_loads(router, sample, by_keyword=False)
    cap, best, least = np.inf, codes, np.inf
    for _ in range(_PASSES):
        loads, is_visited, chosen = before.shards.copy(), before.is_visited.copy(), codes.copy()
        limits = np.array([cap, MOST_IN_SPANS * costly.n_rows.sum()])
        place_costly_keywords(costly, visit_ns, limits, is_visited, loads, chosen)
        uneven = loads.max() / loads.mean()
        if uneven < least:
            best, least = chosen, uneven
        if uneven <= _EVEN:
            break
        cap = _EVEN * loads.mean()
    return best


@kernel
def place_costly_keywords(costly, visit_ns, limits, is_visited, loads, codes):
    """Replace each _CHOOSE in `codes`; update visits and loads. `limits`: the largest load that a shard should have,
    and how many copies may still be made.
    """
    n_shards = len(loads)
    added = np.empty(n_shards)
    for keyword in range(len(codes)):
        own = costly.messages[costly.starts[keyword] : costly.starts[keyword + 1]]
        sum_new_visits(own, visit_ns, is_visited, added)
        lookups_ns = costly.lookup_ns[keyword] * len(own)
        first, size = np.int64(codes[keyword]), np.int64(1)
        if codes[keyword] == _CHOOSE:
            first, size = shards_for(loads, added, lookups_ns, costly.n_rows[keyword], limits)
            codes[keyword] = first if size == 1 else code_of_span(first, size, n_shards)
        if size == SPREAD_OVER_ALL:
            for shard in range(n_shards):
                loads[shard] += added[shard] + lookups_ns / n_shards
                for m in own:
                    is_visited[m, shard] = True
        else:
            visit_span(costly, keyword, visit_ns, first, size, is_visited, loads)


@kernel
def sum_new_visits(own, visit_ns, is_visited, added):
    """added[s]: the cost of the visits of those messages that do not visit shard s yet."""
    added[:] = 0.0
    for m in own:
        for shard in range(len(added)):
            added[shard] += 0.0 if is_visited[m, shard] else visit_ns[m]


@kernel
def shards_for(loads, added, lookups_ns, n_rows, limits):
    """(first, size) for a keyword: the fewest shards within the load limit, or else the best that was found."""
    n_shards = len(loads)
    best, least = (np.int64(np.argmin(loads + added)), np.int64(1)), (loads + added).min() + lookups_ns
    size = np.int64(1)
    while least > limits[0] and size < n_shards:
        size = min(2 * size, np.int64(n_shards))
        if (size - 1) * n_rows > limits[1]:
            break
        first, most = evenest_span(loads, added, lookups_ns, size)
        if most < least:
            best, least = (first, size), most
    if least > limits[0] and (loads + added).max() + lookups_ns / n_shards < least:
        best = (np.int64(0), np.int64(SPREAD_OVER_ALL))
    limits[1] -= max(best[1] - 1, 0) * n_rows
    return best


@kernel
def evenest_span(loads, added, lookups_ns, size):
    """(first, largest load of its shards) of the span of this size whose largest load is smallest."""
    n_shards = len(loads)
    new = 0.0 if size == n_shards else 1.0 / size  # if all shards store the rows, no message needs an extra visit
    best, least = np.int64(0), np.inf
    for first in range(n_shards):
        most = 0.0
        for k in range(size):
            shard = (first + k) % n_shards
            most = max(most, loads[shard] + new * added[shard] + lookups_ns / size)
        if most < least:
            best, least = np.int64(first), most
    return best, least


@kernel
def visit_span(costly, keyword, visit_ns, first, size, is_visited, loads):
    """Let each message of a keyword visit one shard of the span, unless it visits one already; add the loads."""
    n_shards = len(loads)
    lookup_ns = costly.lookup_ns[keyword]
    for m in costly.messages[costly.starts[keyword] : costly.starts[keyword + 1]]:
        is_there = False
        for k in range(size):
            shard = (first + k) % n_shards
            if is_visited[m, shard]:
                is_there = True
                loads[shard] += lookup_ns
        if not is_there:
            shard = (first + mix_hash(m, keyword) % size) % n_shards
            is_visited[m, shard] = True
            loads[shard] += visit_ns[m] + lookup_ns

"""`nearcast warmup` leaves nothing to compile for the pipeline's workers."""

from __future__ import annotations

import pytest

from nearcast.arrays.jit import JIT_DISABLED
from nearcast.sharding import match_shards
from nearcast.sharding.planning import keyword_placement, loads, workload_sample
from nearcast.sharding.routing import areas, keyword_shards, rank_routes, replicas, visits
from nearcast.spark.batch.one_process import warm_up_pipeline


@pytest.mark.skipif(JIT_DISABLED, reason="there is nothing to compile")
def test_every_kernel_of_the_pipeline_has_been_called() -> None:
    warm_up_pipeline()
    called = [
        areas.hash_tokens,
        areas.rarest_keys,
        areas.assign_rows,
        visits.route_messages,
        replicas.mark_reported_pairs,
    ]
    called += [match_shards._sort_ids, match_shards._sort_scored_ids, rank_routes.find_required_keywords]
    called += [keyword_shards.file_by_keyword, keyword_shards.file_keywords, loads.add_lookups]
    called += [keyword_placement.place_costly_keywords, workload_sample.expect_matches]
    assert all(kernel.signatures for kernel in called)

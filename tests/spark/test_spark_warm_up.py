"""`nearcast warmup` leaves nothing to compile for the pipeline's workers."""

from __future__ import annotations

import pytest

from nearcast.arrays.jit import JIT_DISABLED
from nearcast.sharding import merging
from nearcast.sharding.planning import keyword_placement as word_plan
from nearcast.sharding.planning import keyword_routing as worded
from nearcast.sharding.planning import loads
from nearcast.sharding.routing import areas, rank_routes, visits
from nearcast.sharding.routing import keyword_shards as word_codes
from nearcast.sharding.routing import replicas as copies
from nearcast.spark.batch.warm_up import warm_up_pipeline


@pytest.mark.skipif(JIT_DISABLED, reason="there is nothing to compile")
def test_every_kernel_of_the_pipeline_has_been_called() -> None:
    warm_up_pipeline()
    called = [
        areas.hash_tokens,
        areas.rarest_keys,
        areas.assign_rows,
        visits.route_messages,
        copies.mark_reported_pairs,
    ]
    called += [merging._sort_where_several, merging._sort_scored, rank_routes.find_required_keywords]
    called += [word_codes.file_by_words, word_codes.file_words, word_plan.place_costly_keywords, loads.add_looks]
    called += [worded.expect_matches]
    assert all(kernel.signatures for kernel in called)

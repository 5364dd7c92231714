"""`nearcast warmup` leaves nothing to compile for the pipeline's workers."""

from __future__ import annotations

import pytest

from nearcast.arrays.jit import JIT_DISABLED
from nearcast.spark import areas, copies, merging, rank_routes
from nearcast.spark.warm_up import warm_up_pipeline


@pytest.mark.skipif(JIT_DISABLED, reason="there is nothing to compile")
def test_every_kernel_of_the_pipeline_has_been_called() -> None:
    warm_up_pipeline()
    called = [areas.hash_tokens, areas.rarest_keys, areas.assign_rows, areas.route_messages, copies.tells]
    called += [merging._sort_where_several, merging._sort_scored, rank_routes.find_needed, rank_routes.shards_of_keys]
    assert all(kernel.signatures for kernel in called)

"""How evenly shards share the work of ranked subscriptions that are found by words, on messages not seen before."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import nearcast as nc
from nearcast.arrays.jit import JIT_DISABLED
from nearcast.geo.space import LONLAT
from nearcast.sharding.planning.plan import make_router
from nearcast.tables import Dialect
from spark.balance import FILES, MOST_UNEVEN, N_MESSAGES, reach_of, read_real, shuffled, work_of
from spark.drawn_tables import drawn
from spark.ranked_draws import ASKED, ranked, skewed_messages
from stream_world import weights_of

pytestmark = pytest.mark.skipif(JIT_DISABLED, reason="too few messages for a balance, in plain Python")

N_SUBSCRIPTIONS = 8_000
BY_WORDS = ASKED[1:]
"""Those ways to ask in which words alone are enough."""


def spread_of(subscriptions: pa.Table, messages: pa.Table, n_shards: int) -> tuple[np.ndarray, np.ndarray, float]:
    """(visits of each shard, its nanoseconds by the work that its index counted, copies a subscription)."""
    half = messages.num_rows // 2
    held_out = messages.slice(half)
    router = make_router(subscriptions, messages.slice(0, half), n_shards, Dialect(nc.Analyser(), LONLAT, "skip"))
    assigned = router.assign(subscriptions)
    rows, shards = router.with_keys(assigned.filed).route(held_out)[:2]
    weights = weights_of(subscriptions)
    visits, work = np.bincount(shards, minlength=n_shards), np.zeros(n_shards)
    for shard in range(n_shards):
        held = subscriptions.take(pa.array(assigned.rows[assigned.shards == shard]))
        visitors = held_out.take(pa.array(rows[shards == shard]))
        work[shard] = work_of(nc.build_index(held, "rt++-tree", weights), visitors)
    return visits, work, len(assigned.rows) / subscriptions.num_rows


def assert_even(subscriptions: pa.Table, messages: pa.Table, n_shards: int, most_copies: float) -> None:
    visits, work, copies = spread_of(subscriptions, messages, n_shards)
    assert visits.max() / visits.mean() <= MOST_UNEVEN
    assert work.max() / work.mean() <= MOST_UNEVEN
    assert copies <= most_copies


@pytest.mark.parametrize(("asked", "n_shards"), [(BY_WORDS[0], 7), *((asked, 32) for asked in BY_WORDS)])
def test_words_that_most_messages_have_do_not_fill_one_shard(asked: tuple[float, float], n_shards: int) -> None:
    messages = skewed_messages(3, N_MESSAGES)
    subscriptions = ranked(drawn(messages, N_SUBSCRIPTIONS, (0.003, 0.3)), [asked])
    assert_even(subscriptions, messages, n_shards, 4.0)


def test_a_word_that_everyone_has_and_half_ask_for_is_spread() -> None:
    """Too many rows for copies: each shard has its part of them, and as much to do as the others."""
    messages = skewed_messages(5, N_MESSAGES)
    subscriptions = ranked(drawn(messages, N_SUBSCRIPTIONS, (0.003, 0.3)), [(0.2, 0.7)])
    words = [["w0"] if k % 2 else row for k, row in enumerate(subscriptions["tokens"].to_pylist())]
    subscriptions = subscriptions.set_column(subscriptions.column_names.index("tokens"), "tokens", pa.array(words))
    assert_even(subscriptions, messages, 7, 3.0)


@pytest.mark.data
@pytest.mark.parametrize("name", FILES)
def test_ranked_rows_over_real_data_are_divided_evenly(large_data: Path, name: str) -> None:
    messages = shuffled(read_real(large_data, name))
    subscriptions = drawn(messages, N_SUBSCRIPTIONS, reach_of(name))
    for n_shards in (7, 32):
        assert_even(ranked(subscriptions, BY_WORDS), messages, n_shards, 4.0)

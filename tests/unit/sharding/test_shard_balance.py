"""How evenly the shards share the work that is really done, on messages that the plan has not seen."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import nearcast as nc
from nearcast.arrays.jit import JIT_DISABLED
from nearcast.demo.demo_subscriptions import sample_messages, subscriptions_table
from nearcast.geo.space import LONLAT
from nearcast.sharding.planning.plan import make_router
from nearcast.sharding.planning.text_division import MOST_ADDED, MOST_COPIES
from nearcast.tables import Dialect
from spark.balance import FILES, MOST_UNEVEN, N_MESSAGES, reach_of, read_real, shuffled, work_of
from spark.drawn_tables import drawn

pytestmark = pytest.mark.skipif(JIT_DISABLED, reason="too few messages for a balance, in plain Python")

N_SUBSCRIPTIONS = 10_000


def work_of_shards(
    subscriptions: pa.Table, sample: pa.Table, unseen: pa.Table, n_shards: int
) -> tuple[np.ndarray, float, float]:
    """(nanoseconds of each shard by the work that its index counted, shards a message, copies a subscription)."""
    router = make_router(subscriptions, sample, n_shards, Dialect(nc.Analyser(), LONLAT, "skip"))
    assigned = router.assign(subscriptions)
    rows, shards = router.with_keys(assigned.filed).route(unseen)[:2]
    work = np.zeros(n_shards)
    for shard in range(n_shards):
        own = subscriptions.take(pa.array(assigned.rows[assigned.shards == shard]))
        index = nc.build_index(own, method="pyramid", extra="ignore")
        visitors = unseen.take(pa.array(rows[shards == shard]))
        work[shard] = work_of(index, visitors)
    return work, len(rows) / unseen.num_rows, len(assigned.rows) / subscriptions.num_rows


def assert_even(subscriptions: pa.Table, messages: pa.Table, n_shards: int, most_visits: float) -> None:
    half = messages.num_rows // 2
    work, visits, copies = work_of_shards(subscriptions, messages.slice(0, half), messages.slice(half), n_shards)
    assert work.max() / work.mean() <= MOST_UNEVEN
    assert visits <= most_visits and copies <= MOST_COPIES + MOST_ADDED


@pytest.mark.parametrize("n_shards", [2, 7, 32])
def test_the_sample_of_calgary_is_divided_evenly(n_shards: int) -> None:
    messages = shuffled(sample_messages())
    assert_even(subscriptions_table(messages, 5_000), messages, n_shards, 3.0)


@pytest.mark.parametrize("n_shards", [2, 7, 32])
def test_a_skewed_world_is_divided_evenly(n_shards: int) -> None:
    """A tenth of the messages at one spot, the rest in a few towns; words by Zipf's law; some boxes are the world."""
    rng = np.random.default_rng(3)
    towns = rng.uniform((-120, -50), (120, 60), (12, 2))
    of_town = np.minimum(rng.zipf(1.6, N_MESSAGES) - 1, 11)
    places = towns[of_town] + rng.normal(0, 0.4, (N_MESSAGES, 2))
    places[rng.random(N_MESSAGES) < 0.1] = towns[0]
    ranks = np.minimum(rng.zipf(1.2, (N_MESSAGES, 8)), 5_000)
    texts = [" ".join(f"w{rank}" for rank in row) for row in ranks]
    messages = pa.table({"id": np.arange(N_MESSAGES), "text": texts, "lon": places[:, 0], "lat": places[:, 1]})
    subscriptions = drawn(messages, N_SUBSCRIPTIONS, (0.003, 0.3))
    is_world = rng.random(N_SUBSCRIPTIONS) < 0.05
    for name, value in (("xmin", -180.0), ("ymin", -90.0), ("xmax", 180.0), ("ymax", 90.0)):
        column = np.where(is_world, value, subscriptions[name].to_numpy())
        subscriptions = subscriptions.set_column(subscriptions.column_names.index(name), name, pa.array(column))
    assert_even(subscriptions, messages, n_shards, 6.0)


@pytest.mark.data
@pytest.mark.parametrize("name", FILES)
def test_real_data_are_divided_evenly(large_data: Path, name: str) -> None:
    messages = shuffled(read_real(large_data, name))
    subscriptions = drawn(messages, N_SUBSCRIPTIONS, reach_of(name))
    for n_shards in (2, 7, 32):
        assert_even(subscriptions, messages, n_shards, 3.0)

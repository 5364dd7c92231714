"""The router, the plan and the shards, without Spark: the same tasks run in this process."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nearcast as nc
from nearcast.arrays.jit import JIT_DISABLED
from nearcast.engine.saved.saved_index import open_index
from nearcast.errors import CorruptFile, InvalidInput, UnknownMethod
from nearcast.geo.space import LONLAT
from nearcast.ingest.row_groups import in_tasks, pieces_of, read_pieces, sampled_rows
from nearcast.sharding.match_shards import match_all_shards, match_one_shard, route_table
from nearcast.sharding.planning.kd_tree import best_cut
from nearcast.sharding.planning.plan import make_router
from nearcast.sharding.routing.replicas import first_common
from nearcast.sharding.routing.router import Router
from nearcast.sharding.sharded_index import ShardedIndex, forget_old, open_sharded, shard_index
from nearcast.spark.batch.build import build_sharded
from nearcast.spark.batch.match import match_batch
from nearcast.spark.batch.one_process import OneProcess
from nearcast.tables import Dialect
from spark.nasty_tables import nasty_messages, nasty_subscriptions

DIALECT = Dialect(nc.Analyser(), LONLAT, "skip")
SIZES = (40, 60) if JIT_DISABLED else (150, 250)


def router_of(subscriptions: pa.Table, messages: pa.Table | None, n_shards: int) -> Router:
    router = make_router(subscriptions, messages, n_shards, DIALECT)
    return router.with_keys(router.assign(subscriptions).filed)


def sets_by_id(table: pa.Table, rows: np.ndarray, shards: np.ndarray) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {int(key): set() for key in table["id"].to_numpy()}
    for key, shard in zip(table["id"].to_numpy()[rows].tolist(), shards.tolist(), strict=True):
        found[key].add(shard)
    return found


def meet(router: Router, subscriptions: pa.Table, messages: pa.Table) -> bool:
    """Whether each pair that matches has a shard in common."""
    holders = sets_by_id(subscriptions, *router.assign(subscriptions)[:2])
    visited = sets_by_id(messages, *router.route(messages)[:2])
    wanted = nc.build_index(subscriptions, method="brute").match(messages)
    pairs = zip(wanted["message"].to_pylist(), wanted["subscription"].to_pylist(), strict=True)
    return all(holders[subscription] & visited[message] for message, subscription in pairs)


def written(folder: Path, subscriptions: pa.Table, messages: pa.Table) -> tuple[str, str]:
    pq.write_table(subscriptions, folder / "subscriptions.parquet", row_group_size=64)
    pq.write_table(messages, folder / "messages.parquet", row_group_size=100)
    return str(folder / "subscriptions.parquet"), str(folder / "messages.parquet")


def sorted_matches(folder: str | Path) -> pa.Table:
    return pq.read_table(folder).sort_by([("message", "ascending"), ("subscription", "ascending")])


# -- the router


@given(seed=st.integers(0, 10_000), n_shards=st.sampled_from([1, 2, 3, 7, 19]), hot=st.sampled_from([0.0, 0.4, 1.0]))
def test_a_message_meets_every_subscription_that_it_concerns(seed: int, n_shards: int, hot: float) -> None:
    subscriptions, messages = nasty_subscriptions(seed, SIZES[0]), nasty_messages(seed + 1, SIZES[1], hot)
    sample = [None, messages.slice(0, SIZES[1] // 2), nasty_messages(seed + 2, 30, 1.0)][seed % 3]
    assert meet(router_of(subscriptions, sample, n_shards), subscriptions, messages)


@pytest.mark.parametrize("hot", [0.0, 1.0])
def test_the_same_samples_give_the_same_router(tmp_path: Path, hot: float) -> None:
    subscriptions, messages = nasty_subscriptions(1, SIZES[0]), nasty_messages(1, SIZES[1], hot)
    first, second = (router_of(subscriptions, messages, 7) for _ in range(2))
    first.save(tmp_path / "router")
    for other in (second, Router.open(tmp_path / "router")):
        assert all((a == b).all() for a, b in zip(first.areas, other.areas, strict=True))
        for ours, theirs in zip(first.route(messages)[:2], other.route(messages)[:2], strict=True):
            assert (ours == theirs).all()
        for ours, theirs in zip(first.assign(subscriptions)[:2], other.assign(subscriptions)[:2], strict=True):
            assert (ours == theirs).all()


def test_a_point_on_a_cut_is_in_one_leaf_and_a_box_that_ends_there_in_both() -> None:
    x = np.array([0.0, 1.0, 2.0, 3.0])
    messages = pa.table({"id": np.arange(4), "tokens": [["a"]] * 4, "x": x, "y": np.zeros(4)})
    boxes = pa.table(
        {
            "id": [1, 2],
            "tokens": [["a"], ["a"]],
            "xmin": [1.0, 2.0],
            "ymin": [0.0, 0.0],
            "xmax": [2.0, 2.0],
            "ymax": [0.0, 0.0],
        }
    )
    router = make_router(boxes, messages, 2, DIALECT)
    assert router.areas.cuts[0] == 2.0
    assert router.route(messages)[1].tolist() == [0, 0, 1, 1]
    assert sets_by_id(boxes, *router.assign(boxes)[:2]) == {1: {0, 1}, 2: {1}}


def test_messages_at_one_spot_are_spread_by_their_ids_where_few_subscriptions_lie() -> None:
    n = 400
    x = np.where(np.arange(n) % 2 == 0, 5.0, np.linspace(-50, 50, n))
    messages = pa.table({"id": np.arange(n), "tokens": [["a"]] * n, "x": x, "y": np.zeros(n)})
    places = np.linspace(-50, 50, 100)
    subscriptions = pa.table(
        {
            "id": np.arange(100),
            "tokens": [["a"]] * 100,
            "xmin": places,
            "ymin": places * 0,
            "xmax": places,
            "ymax": places * 0,
        }
    )
    router = router_of(subscriptions, messages, 8)
    assert (np.diff(router.areas.part_starts) > 1).any() and not router.reads_text
    rows, shards = router.route(messages)[:2]
    assert len(rows) == n, "each message visits one shard"
    visits = np.bincount(shards, minlength=8)
    assert visits.max() / visits.mean() < 1.5


def test_subscriptions_over_many_leaves_are_divided_by_text_and_copies_stay_bounded() -> None:
    rng = np.random.default_rng(5)
    n, words = 600, np.array([f"w{k}" for k in range(200)])
    tokens = [words[rng.integers(0, 200, 2)].tolist() for _ in range(n)]
    world = {"xmin": np.full(n, -180.0), "ymin": np.full(n, -90.0), "xmax": np.full(n, 180.0), "ymax": np.full(n, 90.0)}
    subscriptions = pa.table({"id": np.arange(n), "tokens": tokens, **world})
    places = {"x": rng.uniform(-100, 100, n), "y": rng.uniform(-80, 80, n)}
    messages = pa.table(
        {"id": np.arange(n), "tokens": [words[rng.integers(0, 200, 3)].tolist() for _ in range(n)], **places}
    )
    router = router_of(subscriptions, messages, 16)
    assert router.divides_wide and len(router.assign(subscriptions)[0]) <= 2 * n
    n_stored = np.bincount(router.assign(subscriptions)[1], minlength=16)
    assert n_stored.max() / n_stored.mean() < 2
    assert len(router.route(messages)[0]) <= 5 * n, "a message visits its place and the shards of its three tokens"
    assert meet(router, subscriptions, messages)


def test_bad_rows_go_nowhere_and_are_reported() -> None:
    subscriptions = pa.table(
        {
            "id": [1, None, 3, 4],
            "expression": ["a", "b", "(", "a NOT a"],
            "region": ["world", "world", "world", "world"],
        }
    )
    assigned = make_router(subscriptions, None, 2, DIALECT).assign(subscriptions)
    assert set(assigned.rows.tolist()) == {0} and assigned.n_good == 2
    assert assigned.rejects["row"].to_pylist() == [2, 3]
    messages = pa.table({"id": [1, 2], "text": ["a", "b"], "x": [0.0, 999.0], "y": [0.0, 0.0]})
    routed = make_router(subscriptions, None, 2, DIALECT).route(messages)
    assert set(routed.rows.tolist()) == {0} and routed.rejects["row"].to_pylist() == [2]


# -- cuts


def test_a_cut_gives_each_side_shards_in_proportion_to_its_cost() -> None:
    points = np.column_stack([np.arange(30.0), np.zeros(30)])
    cut = best_cut(points, np.ones(30), np.empty((0, 4)), 3)
    assert cut is not None and cut.axis == 0
    assert (cut.at, cut.shards_below) in ((10.0, 1), (20.0, 2))


def test_of_even_cuts_the_one_that_crosses_few_boxes_is_taken() -> None:
    grid = np.array([(x, y) for x in range(10) for y in range(10)], float)
    tall = np.array([(x, 0.0, x, 9.0) for x in range(10)], float)  # a cut at some y crosses them all
    cut = best_cut(grid, np.ones(100), tall, 2)
    assert cut is not None and cut.axis == 0 and cut.crossed == 0


def test_one_spot_cannot_be_cut() -> None:
    assert best_cut(np.zeros((9, 2)), np.ones(9), np.empty((0, 4)), 4) is None
    assert best_cut(np.empty((0, 2)), np.empty(0), np.empty((0, 4)), 4) is None


def test_the_first_common_shard_is_found() -> None:
    assert first_common(np.array([1, 4, 9]), np.array([2, 4, 9])) == 4
    assert first_common(np.array([1, 2]), np.array([3])) == -1


def test_tables_come_in_pieces_and_small_pieces_go_together(tmp_path: Path) -> None:
    table = pa.table({"id": np.arange(1_000), "text": ["x" * 50] * 1_000})
    pq.write_table(table.slice(0, 700), tmp_path / "a.parquet", row_group_size=350)
    pq.write_table(table.slice(700), tmp_path / "b.parquet", row_group_size=10)
    (tmp_path / "_hidden").mkdir()
    pq.write_table(table, tmp_path / "_hidden" / "c.parquet")
    tasks = in_tasks(pieces_of(str(tmp_path), 200), 200)
    assert [sum(piece.n_rows for piece in task) for task in tasks] == [175, 175, 175, 195, 200, 80]
    assert pa.concat_tables([read_pieces(task) for task in tasks]).equals(table)
    sample, total = sampled_rows(str(tmp_path), 100)
    assert sample is not None and (sample.num_rows, total) == (100, 1_000)
    assert sample.equals(sampled_rows(str(tmp_path), 100)[0])


def test_long_texts_make_small_tasks(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("nearcast.ingest.row_groups.MOST_BYTES", 10_000)
    texts = [f"{k:05d}" * 200 for k in range(100)]
    pq.write_table(pa.table({"id": np.arange(100), "text": texts}), tmp_path / "a.parquet", use_dictionary=False)
    tasks = in_tasks(pieces_of(str(tmp_path), 1_000), 1_000)
    assert len(tasks) > 9 and sum(piece.n_rows for task in tasks for piece in task) == 100


# -- the whole: build and match


@pytest.mark.parametrize("n_shards", [1, 2, 7, 32])
def test_shards_report_each_pair_of_the_library_once(tmp_path: Path, n_shards: int) -> None:
    subscriptions, messages = nasty_subscriptions(7, 2 * SIZES[0]), nasty_messages(8, 2 * SIZES[1])
    paths = written(tmp_path, subscriptions, messages)
    wanted = nc.build_index(subscriptions, method="brute").match(messages)
    sharded = build_sharded(
        OneProcess(), paths[0], str(tmp_path / "index"), shards=n_shards, messages=paths[1], method="pyramid"
    )
    assert match_all_shards(sharded, messages).equals(wanted)
    parts, rejects = route_table(sharded, messages)
    reported = pa.concat_tables([match_one_shard(sharded, shard, part) for shard, part in parts.items()])
    assert not len(rejects)
    assert reported.sort_by([("message", "ascending"), ("subscription", "ascending")]).equals(wanted)
    for layout in ("replicated", "sharded"):
        counts = match_batch(
            OneProcess(), str(tmp_path / "index"), paths[1], str(tmp_path / layout), layout=layout, rows_per_task=130
        )
        assert sorted_matches(tmp_path / layout).equals(wanted), layout
        assert counts["pairs"] == wanted.num_rows and counts["messages"] == messages.num_rows
        for file in sorted((tmp_path / layout).glob("*.parquet")):
            assert pq.read_table(file).equals(sorted_matches(file)), "sorted within files"


def test_a_shard_is_an_index_of_the_library(tmp_path: Path) -> None:
    subscriptions, messages = nasty_subscriptions(3, SIZES[0]), nasty_messages(3, SIZES[1])
    paths = written(tmp_path, subscriptions, messages)
    sharded = build_sharded(OneProcess(), paths[0], str(tmp_path / "index"), shards=2, method="pyramid")
    pairs = {
        pair
        for shard in range(2)
        for pair in map(tuple, open_index(sharded.shard_path(shard)).match(messages).to_pandas().to_numpy().tolist())
    }
    wanted = nc.build_index(subscriptions, method="brute").match(messages).to_pandas().to_numpy().tolist()
    assert pairs == set(map(tuple, wanted))
    manifest = sharded.manifest
    assert manifest["copies"] == sum(shard["subscriptions"] for shard in manifest["shards"])
    assert manifest["subscriptions"] + manifest["never"] == subscriptions.num_rows
    assert manifest["replication"] == manifest["copies"] / manifest["subscriptions"] >= 1


def test_no_subscriptions_and_no_messages_make_empty_tables(tmp_path: Path) -> None:
    paths = written(tmp_path, nasty_subscriptions(1, 20).slice(0, 0), nasty_messages(1, 20).slice(0, 0))
    sharded = build_sharded(OneProcess(), paths[0], str(tmp_path / "index"), shards=3, messages=paths[1])
    assert sharded.n_shards == 3 and sharded.manifest["subscriptions"] == 0
    counts = match_batch(OneProcess(), str(tmp_path / "index"), paths[1], str(tmp_path / "out"))
    assert counts["pairs"] == counts["messages"] == 0 and pq.read_table(tmp_path / "out").num_rows == 0
    (tmp_path / "nothing").mkdir()
    build_sharded(OneProcess(), str(tmp_path / "nothing"), str(tmp_path / "index"), shards=1)


def test_a_new_build_becomes_current_in_one_step_and_a_failed_one_leaves_nothing(
    tmp_path: Path, monkeypatch: Any
) -> None:
    paths = written(tmp_path, nasty_subscriptions(1, 20), nasty_messages(1, 20))
    index = str(tmp_path / "index")
    first = build_sharded(OneProcess(), paths[0], index, shards=1, method="pyramid")
    second = build_sharded(OneProcess(), paths[0], index, shards=2, method="pyramid")
    assert open_sharded(index).path == second.path != first.path
    monkeypatch.setattr("nearcast.spark.batch.build.build_shard", lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        build_sharded(OneProcess(), paths[0], index, shards=2)
    assert open_sharded(index).path == second.path and not list((tmp_path / "index" / "versions").glob("unfinished*"))
    forget_old(index, hours=0)
    assert [folder.name for folder in (tmp_path / "index" / "versions").iterdir()] == [Path(second.path).name]


def test_a_build_removes_versions_that_were_replaced_long_ago(tmp_path: Path) -> None:
    subscriptions = nasty_subscriptions(1, 20)
    paths, index = written(tmp_path, subscriptions, nasty_messages(1, 20)), str(tmp_path / "index")

    def build(hours_ago: float, **options: Any) -> ShardedIndex:
        """A version that is current since so many hours ago."""
        made = build_sharded(OneProcess(), paths[0], index, shards=1, method="brute", **options)
        when = time.time() - 3600 * hours_ago
        os.utime(Path(made.path) / "manifest.json", (when, when))
        return made

    def names() -> list[str]:
        return sorted(folder.name for folder in (tmp_path / "index" / "versions").iterdir())

    first, second, third, fourth = (build(hours) for hours in (90, 30, 20, 1))
    opened = shard_index(second, 0)
    assert names() == [Path(each.path).name for each in (second, third, fourth)], "the first was replaced 30 hours ago"
    fifth = build(0, keep_hours=5)
    assert names() == [Path(each.path).name for each in (third, fourth, fifth)]
    assert opened.match(nasty_messages(1, 20)).num_rows, "what is open stays open"
    with pytest.raises(InvalidInput, match=r"v-000001-\w+ was replaced and is removed by now; open the index again"):
        shard_index(first, 0)
    build(0, keep_hours=None)
    assert len(names()) == 4
    with pytest.raises(InvalidInput, match="keep_hours is a number of hours from 0 on"):
        build(0, keep_hours=-1)
    forget_old(index, hours=0)
    assert names() == [Path(open_sharded(index).path).name]


def test_bad_messages_and_subscriptions_are_kept_beside_the_results(tmp_path: Path) -> None:
    subscriptions = pa.table({"id": [1, 2], "expression": ["a", "("], "region": ["world", "world"]})
    messages = pa.table({"id": [1, 2, 3], "text": ["a", "a", "b"], "x": [0.0, np.inf, 1.0], "y": [0.0, 0.0, 1.0]})
    paths = written(tmp_path, subscriptions, messages)
    sharded = build_sharded(OneProcess(), paths[0], str(tmp_path / "index"), shards=2, method="pyramid")
    assert sharded.manifest["rejected"] == 1
    assert "expression" in pq.read_table(Path(sharded.path) / "rejects.parquet")["column"].to_pylist()
    for layout in ("replicated", "sharded"):
        counts = match_batch(OneProcess(), str(tmp_path / "index"), paths[1], str(tmp_path / "out"), layout=layout)
        assert (counts["messages"], counts["rejected"], counts["pairs"]) == (2, 1, 1)
        assert pq.read_table(tmp_path / "out" / "_rejects.parquet")["column"].to_pylist() == ["x"]
        assert pq.read_table(tmp_path / "out").num_rows == 1, "files of another name do not count as matches"


def test_what_cannot_be_done_is_said_in_one_line(tmp_path: Path) -> None:
    paths = written(tmp_path, nasty_subscriptions(1, 20), nasty_messages(1, 20))
    index = str(tmp_path / "index")
    with pytest.raises(InvalidInput, match="at least one shard"):
        build_sharded(OneProcess(), paths[0], index, shards=0)
    with pytest.raises(UnknownMethod):
        build_sharded(OneProcess(), paths[0], index, shards=1, method="none")
    with pytest.raises(InvalidInput, match="does not exist"):
        build_sharded(OneProcess(), str(tmp_path / "absent"), index, shards=1)
    with pytest.raises(InvalidInput, match="no file CURRENT"):
        match_batch(OneProcess(), index, paths[1], str(tmp_path / "out"))
    sharded = build_sharded(OneProcess(), paths[0], index, shards=1, method="pyramid")
    with pytest.raises(InvalidInput, match="no layout"):
        match_batch(OneProcess(), index, paths[1], str(tmp_path / "out"), layout="other")  # type: ignore[arg-type]
    (Path(sharded.path) / "manifest.json").write_text("{")
    with pytest.raises(CorruptFile):
        open_sharded(index)

"""Kind `rank` in shards, without Spark: the same tasks run in this process. Scores are the library's, bit for bit."""

from __future__ import annotations

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
from nearcast.errors import InvalidInput, UnsupportedKind
from nearcast.geo.space import LONLAT
from nearcast.sharding.match_shards import match_all_shards
from nearcast.sharding.planning.keyword_placement import shards_for
from nearcast.sharding.planning.plan import make_router
from nearcast.sharding.routing.keyword_shards import SPREAD_OVER_ALL, code_of_span, file_keywords
from nearcast.sharding.routing.router import Router, hashes_of
from nearcast.sharding.sharded_index import index_weights, open_sharded
from nearcast.sharding.weights import given_weights
from nearcast.spark.batch.build import build_sharded
from nearcast.spark.batch.match import match_batch
from nearcast.spark.batch.one_process import OneProcess
from nearcast.tables import Dialect
from nearcast.text.vocabulary import Vocabulary
from spark.balance import read_real
from spark.nasty_tables import WORDS, nasty_messages
from spark.ranked_draws import real_tables
from spark.ranked_tables import random_weights, ranked_subscriptions

DIALECT = Dialect(nc.Analyser(), LONLAT, "skip")
SIZES = (20, 30) if JIT_DISABLED else (80, 150)


def sets_of(table: pa.Table, found: tuple[np.ndarray, np.ndarray]) -> dict[int, set[int]]:
    sets: dict[int, set[int]] = {key: set() for key in table["id"].to_pylist()}
    for key, shard in zip(table["id"].to_numpy()[found[0]].tolist(), found[1].tolist(), strict=True):
        sets[key].add(shard)
    return sets


def sorted_matches(folder: str | Path) -> pa.Table:
    return pq.read_table(folder).sort_by([("message", "ascending"), ("subscription", "ascending")])


def written(folder: Path, **tables: pa.Table) -> list[str]:
    for name, table in tables.items():
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=max(64, table.num_rows // 8))
    return [str(folder / f"{name}.parquet") for name in tables]


@given(
    seed=st.integers(0, 10_000),
    n_shards=st.sampled_from([1, 2, 3, 7, 19]),
    hot=st.sampled_from([0.0, 0.4, 1.0]),
    share=st.sampled_from([0.3, 1.0]),
)
def test_a_message_meets_every_ranked_subscription_that_it_concerns(
    seed: int, n_shards: int, hot: float, share: float
) -> None:
    subscriptions = ranked_subscriptions(seed, SIZES[0], share)
    messages = nasty_messages(seed + 1, SIZES[1], hot)
    sample = [None, messages.slice(0, SIZES[1] // 2), nasty_messages(seed + 2, 30, 1.0)][seed % 3]
    weights = None if seed % 2 else random_weights(seed)
    router = make_router(subscriptions, sample, n_shards, DIALECT)
    assert all_meet(router, (subscriptions, messages), weights)


def all_meet(router: Router, tables: tuple[pa.Table, pa.Table], weights: pa.Table | None = None) -> bool:
    """Whether each pair of the library's has a shard in common."""
    subscriptions, messages = tables
    assigned = router.assign(subscriptions, weights=None if weights is None else given_weights(weights))
    holders = sets_of(subscriptions, (assigned.rows, assigned.shards))
    visited = sets_of(messages, router.with_keys(assigned.filed).route(messages)[:2])
    wanted = nc.build_index(subscriptions, "brute", weights).match(messages)
    pairs = zip(wanted["message"].to_pylist(), wanted["subscription"].to_pylist(), strict=True)
    return all(holders[subscription] & visited[message] for message, subscription in pairs)


def random_codes(router: Router, seed: int) -> Router:
    """Some words go by hash; others have a shard, a span, all shards, or are spread over all."""
    rng, n_shards = np.random.default_rng(seed), router.n_shards
    if n_shards == 1:
        return router
    words = file_keywords(hashes_of(pa.array(WORDS)))[rng.random(len(WORDS)) < 0.8]
    firsts, sizes = rng.integers(0, n_shards, len(words)), rng.integers(2, n_shards + 1, len(words))
    spans = [code_of_span(*span, n_shards) for span in zip(firsts, sizes, strict=True)]
    others = code_of_span(0, SPREAD_OVER_ALL, n_shards), code_of_span(0, n_shards, n_shards)
    codes = [
        (firsts[k], spans[k], *others)[kind] for k, kind in enumerate(rng.choice(4, len(words), p=[0.2, 0.5, 0.2, 0.1]))
    ]
    router.placements.put(words, np.array(codes, np.int32))
    return router


@given(seed=st.integers(0, 10_000), n_shards=st.sampled_from([2, 3, 7, 19]))
def test_wherever_words_are_placed_a_message_meets_what_it_concerns(seed: int, n_shards: int) -> None:
    subscriptions, messages = ranked_subscriptions(seed, SIZES[0], 1.0), nasty_messages(seed + 1, SIZES[1], 0.3)
    router = random_codes(make_router(subscriptions, messages, n_shards, DIALECT), seed)
    assert all_meet(router, (subscriptions, messages))


@pytest.mark.parametrize(
    ("lookups_ns", "n_rows", "cap", "wanted", "copies_left"),
    [
        (5.0, 1, 100.0, (2, 1), 10.0),  # one shard, where the least is to do
        (5.0, 1, 8.0, (2, 2), 9.0),  # too much for one
        (5.0, 1, 2.0, (0, 4), 7.0),  # and for two: all have it, and nobody has to come
        (5.0, 100, 2.0, (0, SPREAD_OVER_ALL), 10.0),  # too many rows for copies
        (0.0, 100, 2.0, (2, 1), 10.0),  # to spread it would only bring messages everywhere
    ],
)
def test_a_word_gets_no_more_shards_than_it_needs(
    lookups_ns: float, n_rows: int, cap: float, wanted: tuple[int, int], copies_left: float
) -> None:
    limits = np.array([cap, 10.0])
    loads, added = np.array([0.2, 0.1, 0.0, 0.0]), np.full(4, 10.0)
    assert shards_for(loads, added, lookups_ns, n_rows, limits) == wanted
    assert limits[1] == copies_left


@pytest.mark.parametrize("n_shards", [1, 2, 7, 32])
def test_wherever_words_are_placed_the_library_is_equalled_bit_for_bit(
    tmp_path: Path, monkeypatch: Any, n_shards: int
) -> None:
    monkeypatch.setattr(
        "nearcast.sharding.planning.plan.place_keywords", lambda router, sample: random_codes(router, n_shards)
    )
    subscriptions, messages = ranked_subscriptions(n_shards, SIZES[0]), nasty_messages(n_shards, SIZES[1])
    assert_equals_the_library(tmp_path, (subscriptions, messages), n_shards)


def assert_equals_the_library(folder: Path, tables: tuple[pa.Table, pa.Table], n_shards: int) -> None:
    """In both layouts."""
    paths, index = written(folder, subscriptions=tables[0], messages=tables[1]), str(folder / "index")
    build_sharded(OneProcess(), paths[0], index, shards=n_shards, messages=paths[1], method="rt++-tree")
    wanted = nc.build_index(tables[0], "rt++-tree").match(tables[1])
    assert wanted["score"].null_count < wanted.num_rows
    for layout in ("replicated", "sharded"):
        match_batch(OneProcess(), index, paths[1], str(folder / layout), layout=layout)
        assert sorted_matches(folder / layout).equals(wanted), layout


@pytest.mark.data
@pytest.mark.skipif(JIT_DISABLED, reason="minutes in plain Python")
@pytest.mark.parametrize("n_shards", [1, 2, 7, 32])
def test_real_data_are_ranked_as_by_the_library_bit_for_bit(tmp_path: Path, large_data: Path, n_shards: int) -> None:
    messages = read_real(large_data, "osm_notes").slice(0, 4_000)
    assert_equals_the_library(tmp_path, real_tables(messages, 2_000), n_shards)


def test_rows_that_need_their_words_and_place_are_not_everywhere() -> None:
    """The bound is worth something: few shards hold such a row, and a message far away visits none of them for it."""
    x = np.linspace(-50, 50, 200)
    boxes = {"xmin": x, "ymin": x * 0, "xmax": x + 0.1, "ymax": x * 0 + 1}
    words = [[f"w{k}", f"v{k}", "the"] for k in range(200)]
    rank_columns = {"kind": ["rank"] * 200, "alpha": [0.5] * 200}
    near = pa.table({"id": np.arange(200), "tokens": words, **boxes, **rank_columns, "threshold": [0.9] * 200})
    far = near.set_column(near.column_names.index("threshold"), "threshold", pa.array([0.5] * 200))
    by_keyword = near.set_column(near.column_names.index("alpha"), "alpha", pa.array([0.1] * 200))
    messages = pa.table({"id": np.arange(200), "tokens": [["the"]] * 200, "x": x, "y": x * 0})
    copies, visits = [], []
    for table in (near, far, by_keyword):
        router = make_router(table, messages, 8, DIALECT)
        assigned = router.assign(table)
        copies.append(len(assigned.rows) / 200)
        visits.append(len(router.with_keys(assigned.filed).route(messages)[0]) / 200)
    assert copies[0] < 1.5 and copies[1] < 4.5 and copies[2] < 3.5, "place; place and words; two words"
    assert all(each < 2.5 for each in visits), "a common word, which is no key word, sends no message anywhere"


@pytest.mark.parametrize(("n_shards", "weighted"), [(1, True), (2, False), (7, True), (7, False), (32, False)])
def test_both_layouts_equal_the_library_bit_for_bit(
    tmp_path: Path, monkeypatch: Any, n_shards: int, weighted: bool
) -> None:
    monkeypatch.setattr("nearcast.spark.batch.duplicate_ids._ROWS_PER_TASK", 64)
    subscriptions, messages = ranked_subscriptions(n_shards, 2 * SIZES[0]), nasty_messages(n_shards, SIZES[1])
    paths = written(tmp_path, subscriptions=subscriptions, messages=messages)
    weights = random_weights(n_shards) if weighted else None
    index = str(tmp_path / "index")
    sharded = build_sharded(
        OneProcess(), paths[0], index, shards=n_shards, messages=paths[1], method="rt++-tree", weights=weights
    )
    wanted = nc.build_index(subscriptions, "rt++-tree", weights).match(messages)
    assert wanted["score"].null_count and wanted["score"].null_count < wanted.num_rows
    assert match_all_shards(sharded, messages).equals(wanted)
    assert sharded.n_ranked == subscriptions["kind"].to_pylist().count("rank")
    for layout in ("replicated", "sharded"):
        out = str(tmp_path / layout)
        counts = match_batch(OneProcess(), index, paths[1], out, layout=layout, rows_per_task=70)
        assert sorted_matches(out).equals(wanted), layout
        assert counts["pairs"] == wanted.num_rows


def test_a_shard_without_ranked_ones_and_messages_without_matches_have_the_column_too(tmp_path: Path) -> None:
    columns: dict[str, Any] = {"id": [1, 2, 3], "tokens": [["a"], ["b"], []], "kind": [None, "rank", None]}
    box = {"xmin": [0.0, 50.0, 0.0], "ymin": [0.0] * 3, "xmax": [1.0, 51.0, 1.0], "ymax": [1.0] * 3}
    subscriptions = pa.table(columns | box | {"threshold": [None, 0.9, None]})
    messages = pa.table({"id": [1, 2, 3], "tokens": [["a"], ["b"], []], "x": [0.5, 50.5, -70.0], "y": [0.5] * 3})
    paths = written(tmp_path, subscriptions=subscriptions, messages=messages, none=messages.slice(2))
    build_sharded(OneProcess(), paths[0], str(tmp_path / "index"), shards=2, messages=paths[1], method="brute")
    wanted = [(1, 1, None), (1, 3, None), (2, 2, 1.0)]
    for layout in ("replicated", "sharded"):
        match_batch(OneProcess(), str(tmp_path / "index"), paths[1], str(tmp_path / "out"), layout=layout)
        assert [tuple(row.values()) for row in sorted_matches(tmp_path / "out").to_pylist()] == wanted
        match_batch(OneProcess(), str(tmp_path / "index"), paths[2], str(tmp_path / "none"), layout=layout)
        assert pq.read_table(tmp_path / "none").column_names == ["message", "subscription", "score"]


def test_weights_are_those_of_the_whole_table_and_kept_for_what_comes_later(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("nearcast.spark.batch.duplicate_ids._ROWS_PER_TASK", 16)
    table = ranked_subscriptions(5, SIZES[0])
    (path,) = written(tmp_path, subscriptions=table)
    weights = index_weights(build_sharded(OneProcess(), path, str(tmp_path / "index"), shards=3))
    index = nc.build_index(table)
    tokens = index.vocabulary.tokens(np.arange(len(index.vocabulary)))
    assert weights.vocabulary.tokens(np.arange(len(weights.vocabulary))).equals(tokens), "numbered as the library does"
    assert (weights.by_term == index._weights).all()  # type: ignore[attr-defined]
    later = pa.table({"kind": ["rank", "match"], "tokens": [["b", "new", "a"], ["c"]]})
    known = dict(zip(tokens.to_pylist(), weights.by_term.tolist(), strict=True))
    by_token = {row["token"]: row["weight"] for row in weights.of_ranked(later).to_pylist()}
    assert by_token == {"a": known["a"], "b": known["b"], "new": max(known.values())}


def test_a_vocabulary_gives_weights_also_from_its_file(tmp_path: Path) -> None:
    vocabulary = Vocabulary()
    vocabulary.count_documents(vocabulary.add(pa.array(["a", "b", "a", "c"])), np.array([0, 2, 3, 4]))
    vocabulary.save(tmp_path / "vocabulary")
    table = ranked_subscriptions(6, SIZES[0])
    messages = nasty_messages(6, SIZES[1])
    (path,) = written(tmp_path, subscriptions=table)
    wanted = nc.build_index(table, weights=vocabulary).match(messages)
    for given_as in (vocabulary, str(tmp_path / "vocabulary")):
        sharded = build_sharded(OneProcess(), path, str(tmp_path / "index"), shards=2, weights=given_as)
        assert match_all_shards(sharded, messages).equals(wanted)


def test_what_cannot_be_ranked_is_said_before_anything_is_published(tmp_path: Path) -> None:
    (path,) = written(tmp_path, subscriptions=ranked_subscriptions(7, 40))
    with pytest.raises(UnsupportedKind, match="'pyramid' does not serve subscriptions of kind 'rank'"):
        build_sharded(OneProcess(), path, str(tmp_path / "index"), shards=2, method="pyramid")
    with pytest.raises(InvalidInput, match="is not a weight"):
        build_sharded(OneProcess(), path, str(tmp_path / "index"), shards=2, weights={"token": ["a"], "weight": [-1.0]})
    with pytest.raises(InvalidInput, match="CURRENT"):
        open_sharded(tmp_path / "index")


def test_rows_of_kind_top_and_ranked_ones_that_are_wrong_are_rejected(tmp_path: Path) -> None:
    columns: dict[str, Any] = {"id": [1, 2, 3, 4], "tokens": [["a"]] * 4, "kind": ["rank", "top", "rank", None]}
    box = {"xmin": [0.0] * 4, "ymin": [0.0] * 4, "xmax": [1.0] * 4, "ymax": [1.0] * 4}
    (path,) = written(tmp_path, subscriptions=pa.table(columns | box | {"threshold": [0.5, 0.5, None, None]}))
    sharded = build_sharded(OneProcess(), path, str(tmp_path / "index"), shards=2)
    manifest = sharded.manifest
    assert (manifest["subscriptions"], manifest["ranked"], manifest["rejected"]) == (2, 1, 2)
    rejects = pq.read_table(Path(sharded.path) / "rejects.parquet").to_pylist()
    assert [(row["row"], row["column"]) for row in rejects] == [(2, "kind"), (3, "threshold")]
    assert rejects[0]["reason"] == "kind 'top' is not served here yet, only match, rank"

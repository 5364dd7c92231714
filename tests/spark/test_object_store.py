"""Sharded indexes, tables and DataFrames in an object store: the same pairs as on local disk."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearcast as nc
from nearcast import spark as ncs
from nearcast.arrays.jit import JIT_DISABLED
from nearcast.errors import InvalidInput, StorageError
from nearcast.ingest.row_groups import in_tasks, n_rows_of, parquet_files, pieces_of, read_pieces
from nearcast.sharding.index_handle import open_handle
from nearcast.sharding.match_shards import match_all_shards, match_one_shard, route_table
from nearcast.sharding.sharded_index import forget_old, open_sharded
from nearcast.spark.batch.build import build_sharded
from nearcast.spark.batch.match import match_batch
from nearcast.spark.batch.one_process import OneProcess
from nearcast.storage.location import locate
from s3_server import S3Server
from spark.nasty_tables import nasty_messages, nasty_subscriptions
from spark.ranked_tables import ranked_subscriptions

SIZES = (40, 60) if JIT_DISABLED else (150, 250)
BY_PAIR = [("message", "ascending"), ("subscription", "ascending")]
needs_speed = pytest.mark.skipif(JIT_DISABLED, reason="Spark's workers in plain Python take minutes")


def put(url: str, table: pa.Table, row_group_size: int = 64) -> str:
    content = pa.BufferOutputStream()
    pq.write_table(table, content, row_group_size=row_group_size)
    locate(url).write(content.getvalue().to_pybytes())
    return url


# -- without Spark


def test_a_table_is_read_in_pieces_from_a_store(bucket: str) -> None:
    table = pa.table({"id": range(300), "text": [f"word{k}" for k in range(300)]})
    put(f"{bucket}/table/b.parquet", table.slice(200))
    put(f"{bucket}/table/a.parquet", table.slice(0, 200))
    locate(f"{bucket}/table/_counts.json").write(b"{}")
    locate(f"{bucket}/table/.hidden/c.parquet").write(b"no table")
    url = f"{bucket}/table".replace("s3:", "s3a:")
    tasks = in_tasks(pieces_of(url, 50), 50)
    assert len(tasks) > 4 and pa.concat_tables([read_pieces(task) for task in tasks]).equals(table)
    assert n_rows_of(f"{bucket}/table/b.parquet") == 100 and read_pieces(tasks[0], ("id",)).column_names == ["id"]
    locate(f"{bucket}/table/_files.json").write(b'["b.parquet"]')
    assert [file.name for file in parquet_files(url)] == ["b.parquet"], "the list says what counts"
    with pytest.raises(InvalidInput, match="s3://.*nothing does not exist"):
        pieces_of(f"{bucket}/nothing", 50)
    locate(f"{bucket}/bad.parquet").write(b"no table")
    with pytest.raises(InvalidInput, match=r"s3://.*bad\.parquet cannot be read"):
        pieces_of(f"{bucket}/bad.parquet", 50)


@pytest.mark.parametrize("n_shards", [1, 3])
def test_shards_in_a_store_report_each_pair_of_the_library_once(bucket: str, tmp_path: Path, n_shards: int) -> None:
    subscriptions, messages = nasty_subscriptions(7, SIZES[0]), nasty_messages(8, SIZES[1])
    wanted = nc.build_index(subscriptions, method="brute").match(messages)
    given = put(f"{bucket}/s.parquet", subscriptions), put(f"{bucket}/m.parquet", messages)
    sharded = build_sharded(
        OneProcess(), given[0], f"{bucket}/index", shards=n_shards, messages=given[1], method="brute"
    )
    assert sharded.path.startswith("s3://") and sharded == open_sharded(f"{bucket}/index")
    assert match_all_shards(sharded, messages).equals(wanted)
    parts, _ = route_table(sharded, messages)
    reported = pa.concat_tables([match_one_shard(sharded, shard, part) for shard, part in parts.items()])
    assert reported.sort_by(BY_PAIR).equals(wanted)
    counts = match_batch(OneProcess(), f"{bucket}/index", given[1], str(tmp_path / "out"))
    assert counts["pairs"] == wanted.num_rows
    assert not any(name.startswith("s3:") for name in map(str, Path().iterdir()))


def test_a_build_that_fails_leaves_the_old_version_and_none_of_its_own(
    bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = put(f"{bucket}/s.parquet", nasty_subscriptions(1, 40))
    first = build_sharded(OneProcess(), table, f"{bucket}/index", shards=2, method="brute")
    with monkeypatch.context() as patched, pytest.raises(ZeroDivisionError):
        patched.setattr("nearcast.spark.batch.build.build_shard", lambda *args: 1 / 0)
        build_sharded(OneProcess(), table, f"{bucket}/index", shards=2)
    assert open_sharded(f"{bucket}/index") == first
    assert locate(f"{bucket}/index/versions").names() == [locate(first.path).name]
    second = build_sharded(OneProcess(), table, f"{bucket}/index", shards=1, method="brute")
    assert open_sharded(f"{bucket}/index") == second and locate(second.path).name > locate(first.path).name
    forget_old(f"{bucket}/index", hours=0)
    assert locate(f"{bucket}/index/versions").names() == [locate(second.path).name]


KILLED_WHILE_PUBLISHING = """
import sys
from nearcast.spark.batch.build import build_sharded
from nearcast.spark.batch.one_process import OneProcess
from spark.deadly_step import die_at

die_at("nearcast.sharding.sharded_index", "_make_current", 1)
build_sharded(OneProcess(), sys.argv[1], sys.argv[2], shards=2, method="brute")
"""


def test_a_build_that_is_killed_leaves_the_old_version_current(bucket: str) -> None:
    table = put(f"{bucket}/s.parquet", nasty_subscriptions(1, 40))
    first = build_sharded(OneProcess(), table, f"{bucket}/index", shards=1, method="brute")
    command = [sys.executable, "-c", KILLED_WHILE_PUBLISHING, table, f"{bucket}/index"]
    paths = os.pathsep.join([*sys.path, str(Path(__file__).parents[1])])
    done = subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONPATH": paths})
    assert done.returncode == -9, done.stderr
    assert open_sharded(f"{bucket}/index") == first and len(locate(f"{bucket}/index/versions").names()) == 2
    second = build_sharded(OneProcess(), table, f"{bucket}/index", shards=2, method="brute")
    assert open_sharded(f"{bucket}/index") == second and second.n_shards == 2


def test_a_handle_names_the_generation_of_an_index_in_a_store(bucket: str) -> None:
    subscriptions = nasty_subscriptions(3, 40)
    nc.build_index(subscriptions, "brute").save(f"{bucket}/plain")
    first = open_handle(f"{bucket}/plain")
    old = first.open()
    assert first.path == f"{bucket}/plain" and len(old) == len(nc.open_index(f"{bucket}/plain"))
    nc.build_index(subscriptions.slice(20), "brute").save(f"{bucket}/plain")
    second = open_handle(f"{bucket}/plain")
    assert second.generation != first.generation and len(second.open()) < len(old)
    with pytest.raises(InvalidInput, match="s3://.*plain was replaced since it was opened"):
        first.open()
    with pytest.raises(InvalidInput, match="s3://.*nothing does not exist; save an index there"):
        open_handle(f"{bucket}/nothing")


# -- with Spark


@needs_speed
@pytest.mark.parametrize("draw", [nasty_subscriptions, ranked_subscriptions])
def test_a_dataframe_becomes_an_index_in_a_store(
    spark: Any, bucket: str, object_store: S3Server, tmp_path: Path, draw: Any
) -> None:
    subscriptions, messages = draw(7, SIZES[0]), nasty_messages(8, SIZES[1])
    wanted = nc.build_index(subscriptions, method="brute").match(messages)
    frame, messages_df = spark.createDataFrame(subscriptions), spark.createDataFrame(messages)
    for place in (object_store.whole_url(f"{bucket}/index"), str(tmp_path / "index")):
        index = ncs.build_index(frame, place, shards=3, sample=messages_df, method="brute")
        assert index.n_shards == 3 and not len(index.rejects())
        found = ncs.match(messages_df, index).toArrow().sort_by(BY_PAIR)
        assert found.to_pylist() == wanted.to_pylist(), place
        assert ncs.open_index(place) == index
        table = read_pieces(pieces_of(locate(index.path).child("subscriptions").url, 1 << 20), ("id",))
        assert sorted(table["id"].to_pylist()) == sorted(subscriptions["id"].to_pylist())


@needs_speed
def test_columns_are_mapped_and_bad_rows_kept_or_raised(spark: Any, tmp_path: Path) -> None:
    rows = [(1, "rain", "world", "x"), (2, "(", "world", "y"), (1, "snow", "world", "z"), (3, "wind", "nowhere", "w")]
    frame = spark.createDataFrame(rows, "number long, words string, region string, note string").coalesce(1)
    columns = {"id": "number", "expression": "words"}
    with pytest.raises(InvalidInput, match="unknown column 'note'"):
        ncs.build_index(frame, tmp_path / "index", columns=columns)
    with pytest.raises(InvalidInput, match=r"and 2 more bad rows\); the row is"):
        ncs.build_index(frame, tmp_path / "index", columns=columns, extra="ignore", on_bad="raise")
    with pytest.raises(InvalidInput, match="is not a saved index"):
        ncs.open_index(tmp_path / "index")
    index = ncs.build_index(frame, tmp_path / "index", columns=columns, extra="ignore")
    assert index.n_shards == 1
    assert sorted(index.rejects()["column"].to_pylist()) == ["expression", "id", "region"]
    sent = spark.createDataFrame([(9, "rain and snow", 0.0, 0.0)], "id long, text string, x double, y double")
    assert [tuple(row) for row in ncs.match(sent, index).collect()] == [(9, 1)]


@needs_speed
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"columns": {"txt": "a"}}, r"no 'txt'"),
        ({"shards": 0}, "shards is 'auto' or a whole number"),
        ({"on_bad": "drop"}, "on_bad is"),
        ({"path": "ftp://host/index"}, "no file system 'ftp'"),
        ({"columns": {}}, "need a column 'id'; there are a"),
        ({"sample": 5, "columns": {"id": "a"}}, "are a Spark DataFrame, not int"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_runs(
    spark: Any, tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    frame = spark.createDataFrame([(1,)], "a long")
    arguments = {"path": tmp_path / "index", "extra": "ignore", **change}
    with pytest.raises((InvalidInput, StorageError), match=reason):
        ncs.build_index(frame, **arguments)
    assert not (tmp_path / "index").exists()

"""`stream`: DataFrames of messages and of changes, matched as they arrive, against the engine and brute force."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearcast as nc
from nearcast.errors import InvalidInput, NearcastError
from nearcast.sharding.live.stream_output import read_stream_rejects
from nearcast.spark import open_index, stream
from nearcast.spark.batch.build import build_sharded
from nearcast.spark.streaming.stream import StreamQuery
from stream_world import COLUMNS, IN_ORDER, World, delivered, expected, put, weights_of

MESSAGES = "key long, body string, lon double, lat double, time timestamp, extra struct<a: int>"
CHANGES = (
    "op string, id long, tokens array<string>, expression string, xmin double, ymin double, xmax double, ymax double, "
    "region string, expires timestamp, kind string, alpha double, threshold double"
)
OURS = {"id": "key", "text": "body", "x": "lon", "y": "lat"}


class Notebook:
    """Streaming DataFrames over two folders, and a query that may be stopped and started again."""

    def __init__(self, spark: Any, root: Path, world: World, shards: int) -> None:
        self.spark, self.root, self.world = spark, root, world
        self._names = (f"{k:04d}.parquet" for k in itertools.count())
        self.base = world.table()
        put(self.base, root / "subscriptions")
        for name in ("messages", "changes"):
            (root / name).mkdir()
        build_sharded(spark, str(root / "subscriptions"), str(root / "index"), shards=shards)

    def start(self, **options: Any) -> StreamQuery:
        read = {name: self.spark.readStream.schema(schema) for name, schema in SCHEMAS.items()}
        frames = {name: each.parquet(str(self.root / name)) for name, each in read.items()}
        given = {"changes": frames["changes"], "columns": OURS, "out": self.root / "out"} | options
        return stream(frames["messages"], self.root / "index", **given)

    def say(self, n: int) -> None:
        made = self.world.messages(n).rename_columns(["key", "body", "lon", "lat", "time"])
        extra = pa.array([{"a": 1}] * n, pa.struct([("a", pa.int32())]))
        put(made.append_column("extra", extra), self.root / "messages", next(self._names))

    def change(self, n: int) -> None:
        put(self.world.change(n), self.root / "changes", next(self._names))


SCHEMAS = {"messages": MESSAGES, "changes": CHANGES}


@pytest.mark.parametrize(("shards", "sizes"), [(1, (1, 40)), (2, (15, 15, 15)), (7, (60, 3))])
def test_each_micro_batch_equals_brute_force_across_restarts(
    spark: Any, tmp_path: Path, shards: int, sizes: tuple[int, ...]
) -> None:
    book = Notebook(spark, tmp_path, World(60 + shards, 80), shards)
    engine = Mirror(book)
    query = book.start()
    for k, size in enumerate(sizes):
        if k:
            book.change(12)
            query.processAllAvailable()  # the changes arrive before the messages that see them
            engine.change()
        book.say(size)
        query.processAllAvailable()
        wanted = book.world.all_expected()
        assert delivered(tmp_path / "out").equals(wanted)
        engine.check(book.world.expected[-1], size)
        if k == 0:
            query.stop()
            query = book.start()
    query.stop()
    assert wanted.num_rows and not query.isActive
    assert query.counts["changes"] > 0 and query.counts["rejected"] == query.counts["changes_rejected"] == 0


class Mirror:
    """An in-process index of the library that gets the same changes."""

    def __init__(self, book: Notebook) -> None:
        self._book = book
        self._weights = weights_of(book.base)
        self._index = nc.build_index(book.base, "auto", self._weights)
        self._seen = set(book.root.glob("changes/*.parquet"))

    def change(self) -> None:
        for file in sorted(set(self._book.root.glob("changes/*.parquet")) - self._seen):
            self._seen.add(file)
            for row in pq.read_table(file).to_pylist():
                self._index.remove([row["id"]])
                if row.pop("op") == "insert":
                    self._index.insert(pa.Table.from_pylist([row], COLUMNS))

    def check(self, wanted: pa.Table, size: int) -> None:
        newest = max(self._book.root.glob("messages/*.parquet"))
        table = pq.read_table(newest).drop(["extra"]).rename_columns(["id", "text", "lon", "lat", "time"])
        assert table.num_rows == size
        found = self._index.match(table).select(["message", "subscription"])
        assert found.equals(wanted.select(["message", "subscription"]).sort_by(IN_ORDER))


def test_changes_of_a_micro_batch_take_effect_before_its_messages(spark: Any, tmp_path: Path) -> None:
    book = Notebook(spark, tmp_path, World(70, 60), 2)
    book.change(30)
    book.say(50)
    query = book.start(once=True)
    assert query.awaitTermination(120)
    manifest = json.loads((tmp_path / "out/batch=0/_manifest.json").read_bytes())
    assert (manifest["messages"], manifest["changes"], len(manifest["offsets"])) == (50, 30, 2)
    assert delivered(tmp_path / "out").equals(book.world.all_expected())


def test_a_repeated_batch_has_the_same_changes(spark: Any, tmp_path: Path) -> None:
    book = Notebook(spark, tmp_path, World(71, 60), 1)
    book.change(30)
    book.say(50)
    assert book.start(once=True).awaitTermination(120)
    (tmp_path / "out-checkpoint/spark/commits/0").unlink()
    shutil.rmtree(tmp_path / "out/batch=0")
    for file in (tmp_path / "changes").iterdir():  # what they say now must not matter
        put(pa.table({"op": ["remove"] * 60, "id": range(60)}), tmp_path / "changes", file.name)
    assert book.start(once=True).awaitTermination(120)
    assert delivered(tmp_path / "out").equals(book.world.all_expected())


def test_any_source_will_do_and_bad_rows_are_rejected(spark: Any, tmp_path: Path) -> None:
    book = Notebook(spark, tmp_path, World(72, 60), 1)
    index = open_index(tmp_path / "index")
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    messages = rows.selectExpr("value AS id", "'pizza deal' AS text", "if(value = 3, 500, value) AS x", "0 AS y")
    query = stream(messages, index, out=tmp_path / "out")
    while query.counts["batches"] < 2 and query.isActive:
        query.query.awaitTermination(0.1)
    query.stop()
    n_messages = query.counts["messages"] + query.counts["rejected"]
    table = pa.table({"id": range(n_messages), "text": ["pizza deal"] * n_messages, "y": [0.0] * n_messages})
    x = [500.0 if k == 3 else float(k) for k in range(n_messages)]
    table = table.append_column("x", pa.array(x)).filter(pa.array([k != 3 and k <= 180 for k in range(n_messages)]))
    wanted = expected(book.base, weights_of(book.base), table)
    assert n_messages >= 20 and wanted.num_rows and delivered(tmp_path / "out").equals(wanted)
    rejects = read_stream_rejects(tmp_path / "out").to_pylist()
    assert rejects[0]["column"] == "x" and rejects[0]["row"] is None and '"id": 3' in rejects[0]["record"]


def test_a_damaged_file_of_spark_s_own_source_stops_the_stream_with_one_line(spark: Any, tmp_path: Path) -> None:
    """Which files are passed over is a setting of Spark's; nearcast only shortens its error."""
    book = Notebook(spark, tmp_path, World(74, 40), 1)
    book.say(20)
    query = book.start()
    query.processAllAvailable()
    (tmp_path / "messages/damaged.parquet").write_bytes(b"PAR1 this is not it")
    with pytest.raises(NearcastError, match=r"damaged\.parquet") as caught:
        query.awaitTermination(120)
    assert "\n" not in str(caught.value) and not query.isActive
    assert [path.name for path in (tmp_path / "out").glob("batch=*")] == ["batch=0"]
    book.say(20)
    spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    try:
        assert book.start(once=True).awaitTermination(120)
    finally:
        spark.conf.unset("spark.sql.files.ignoreCorruptFiles")
    assert delivered(tmp_path / "out").equals(book.world.all_expected())


def test_wrong_arguments_are_one_line(spark: Any, tmp_path: Path) -> None:
    book = Notebook(spark, tmp_path, World(73, 20), 1)
    with pytest.raises(InvalidInput, match="no column 'txt'; they have key, body"):
        book.start(columns={"text": "txt"})
    with pytest.raises(InvalidInput, match="messages have no column 'words'"):
        book.start(columns={"words": "body"})
    with pytest.raises(InvalidInput, match="s3.?://b/out: the output of a stream"):
        book.start(out="s3a://b/out", checkpoint=tmp_path / "c1")
    with pytest.raises(InvalidInput, match="s3.?://b/log: the change log of a stream"):
        book.start(changes="s3a://b/log", checkpoint=tmp_path / "c0", out=tmp_path / "o0")
    with pytest.raises(InvalidInput, match="not a streaming DataFrame"):
        stream(spark.range(3), tmp_path / "index", out=tmp_path / "other")
    with pytest.raises(InvalidInput, match="need a column 'op'"):
        book.start(changes=spark.readStream.schema("id long").parquet(str(tmp_path / "changes")))
    query = book.start()
    with pytest.raises(InvalidInput, match="another stream uses the checkpoint"):
        book.start()
    with pytest.raises(InvalidInput, match="holds the matches of another checkpoint"):
        book.start(checkpoint=tmp_path / "c2")
    query.stop()
    assert not Path("s3a:").exists()

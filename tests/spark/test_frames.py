"""DataFrames in, DataFrames out: what the library finds, pair by pair, whatever the columns and shards."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions

import nearcast as nc
from markdown_pages import ROOT, run_python
from nearcast import spark as ncs
from nearcast.arrays.jit import JIT_DISABLED
from nearcast.errors import CorruptFile, ForeignVersion, InvalidInput
from nearcast.sharding.index_handle import IndexHandle
from nearcast.spark.batch.build import build_sharded
from nearcast.spark.batch.one_process import OneProcess
from nearcast.spark.runtime.failures import failure_reason
from spark.nasty_tables import nasty_messages, nasty_subscriptions
from spark.ranked_tables import ranked_subscriptions

pytestmark = pytest.mark.skipif(JIT_DISABLED, reason="Spark's workers in plain Python take minutes")
needs_udtf = pytest.mark.skipif(not hasattr(functions, "arrow_udtf"), reason="SQL table functions need PySpark 4.1")
LAYOUTS = [(n, "replicated") for n in (0, 1, 2, 7)] + [(2, "sharded"), (7, "sharded")]
PIZZA = pa.table({"id": [1, 2], "expression": ["pizza deal", ""], "region": ["circle(1, 2, 2km)", "world"]})
N_SUBSCRIPTIONS, N_MESSAGES = 300, 500


@functools.cache
def tables(kind: str) -> tuple[pa.Table, pa.Table]:
    draw = ranked_subscriptions if kind == "rank" else nasty_subscriptions
    return draw(11, N_SUBSCRIPTIONS), nasty_messages(12, N_MESSAGES)


@functools.cache
def index_of(kind: str, n_shards: int) -> IndexHandle:
    """A saved index: of the library for 0 shards, else a sharded one."""
    folder = Path(tempfile.mkdtemp(prefix="nearcast-frames-"))
    subscriptions, messages = tables(kind)
    if not n_shards:
        nc.build_index(subscriptions, "brute").save(folder / "index")
    else:
        pq.write_table(subscriptions, folder / "subscriptions.parquet")
        pq.write_table(messages, folder / "messages.parquet")
        build_sharded(
            OneProcess(),
            str(folder / "subscriptions.parquet"),
            str(folder / "index"),
            shards=n_shards,
            messages=str(folder / "messages.parquet"),
            method="brute",
        )
    return ncs.open_index(folder / "index")


@functools.cache
def wanted(kind: str) -> pa.Table:
    subscriptions, messages = tables(kind)
    return nc.build_index(subscriptions, "brute").match(messages)


def in_order(frame: Any) -> pa.Table:
    """The rows of a DataFrame of matches, sorted."""
    found = frame.toArrow()
    found = found.cast(pa.schema([pa.field(each.name, each.type) for each in found.schema]))
    return found.sort_by([("message", "ascending"), ("subscription", "ascending")])


def as_frame(spark: Any, table: pa.Table, parts: int = 3) -> Any:
    return spark.createDataFrame(table).repartition(parts)


@functools.cache
def pizza_index() -> IndexHandle:
    path = Path(tempfile.mkdtemp(prefix="nearcast-frames-")) / "index"
    nc.build_index(PIZZA, "brute").save(path)
    return ncs.open_index(path)


def one_line(action: Any) -> str:
    """The reason of a failed action: the line of our error within Spark's text."""
    with pytest.raises(Exception) as caught:
        action()
    return failure_reason(caught.value)


# -- the library's answer


@pytest.mark.parametrize(("n_shards", "layout"), LAYOUTS)
@pytest.mark.parametrize("kind", ["match", "rank"])
def test_frames_find_what_the_library_finds(spark: Any, kind: str, n_shards: int, layout: str) -> None:
    index = index_of(kind, n_shards)
    found = in_order(ncs.match(as_frame(spark, tables(kind)[1]), index, layout=layout))
    assert found.equals(wanted(kind))
    assert ("score" in found.column_names) == (kind == "rank")


@pytest.mark.parametrize(("n_shards", "layout"), [(0, "auto"), (7, "replicated"), (7, "sharded")])
def test_kept_columns_and_repeated_string_ids_belong_to_their_rows(spark: Any, n_shards: int, layout: str) -> None:
    from pyspark.sql import functions as F

    frame = as_frame(spark, tables("match")[1])
    doubled = frame.withColumn("copy", F.explode(F.array(F.lit(1), F.lit(2))))
    doubled = doubled.withColumn("name", F.concat(F.lit("m"), "id")).withColumn(
        "deep", F.struct(F.col("id").alias("id"), F.array("x", "y").alias("place"))
    )
    matches = ncs.match(
        doubled, index_of("match", n_shards), columns={"id": "name"}, keep=["copy", "deep"], layout=layout
    )
    rows = matches.toArrow().to_pylist()
    pairs = {(f"m{row['message']}", row["subscription"]) for row in wanted("match").to_pylist()}
    assert {(row["message"], row["subscription"]) for row in rows} == pairs
    assert len(rows) == 2 * len(pairs), "each row is a message of its own"
    assert {(row["message"], row["subscription"], row["copy"]) for row in rows} == {
        (*pair, copy) for pair in pairs for copy in (1, 2)
    }
    assert all(f"m{row['deep']['id']}" == row["message"] and len(row["deep"]["place"]) == 2 for row in rows)


# -- SQL and columns of text


@needs_udtf
@pytest.mark.parametrize("kind", ["match", "rank"])
def test_sql_finds_what_the_library_finds(spark: Any, kind: str) -> None:
    as_frame(spark, tables(kind)[1]).createOrReplaceTempView("frames_messages")
    ncs.register(spark, index_of(kind, 7), "frames_match")
    found = spark.sql("SELECT * FROM frames_match(TABLE(frames_messages))")
    assert in_order(found).equals(wanted(kind))


@needs_udtf
def test_sql_maps_and_keeps_columns_and_takes_string_ids(spark: Any) -> None:
    rows = [("a", "Pizza deal", 1.0, 2.0, "north"), ("b", "pasta", 1.0, 2.0, "south")]
    spark.createDataFrame(rows, "key string, body string, lon double, lat double, city string").createOrReplaceTempView(
        "frames_notes"
    )
    columns = {"id": "key", "text": "body"}
    ncs.register(spark, pizza_index(), "frames_notes_match", columns=columns, keep="city string", id_type="string")
    found = spark.sql("SELECT * FROM frames_notes_match(TABLE(frames_notes)) ORDER BY message, subscription").collect()
    assert [tuple(row) for row in found] == [("a", 1, "north"), ("a", 2, "north"), ("b", 2, "south")]
    query = "SELECT * FROM frames_notes_match(TABLE(SELECT key AS id, body FROM frames_notes))"
    assert "no column 'key' in the table; there are id, body" in one_line(lambda: spark.sql(query).collect())


def test_tokens_are_those_of_the_analyser(spark: Any) -> None:
    analyser = nc.Analyser(stem="english", stop_words="en")
    texts = ["Running late to the @Bob, #PizzaDeals!", "", None, "日本 naïve"]
    frame = spark.createDataFrame([(text,) for text in texts], "body string")
    found = [row.tokens for row in frame.select(ncs.tokens("body", analyser).alias("tokens")).collect()]
    assert found == [analyser.tokens(text or "") for text in texts]


def test_vocabulary_counts_the_messages_of_each_token(spark: Any) -> None:
    messages = tables("match")[1]
    found = {row.token: row.frequency for row in ncs.vocabulary(as_frame(spark, messages)).collect()}
    counts: dict[str, int] = {}
    for tokens in messages["tokens"].to_pylist():
        for token in set(tokens):
            counts[token] = counts.get(token, 0) + 1
    assert found == counts
    texts = spark.createDataFrame([("Pizza, pizza deal",), (None,), ("PIZZA",)], "body string")
    by_text = ncs.vocabulary(texts, columns={"text": "body"}).collect()
    assert {row.token: row.frequency for row in by_text} == {"pizza": 2, "deal": 1}


# -- rejects and metrics


def bad_messages(spark: Any) -> Any:
    rows = [(1, "pizza deal", 1.0, 2.0), (None, "a", 1.0, 2.0), (3, "b", 999.0, 2.0), (4, "c", 1.0, None)]
    return spark.createDataFrame([(*row, f"n{k}") for k, row in enumerate(rows)], _NOTES)


_NOTES = "key int, body string, lon double, lat double, note string"
_MAPPED = {"id": "key", "text": "body"}


def test_rejects_are_the_rows_that_match_skips(spark: Any) -> None:
    frame = bad_messages(spark)
    found = [row.asDict() for row in ncs.rejects(frame, columns=_MAPPED, keep=["note"]).orderBy("note").collect()]
    assert [(row["note"], row["column"], row["value"]) for row in found] == [
        ("n1", "key", None),
        ("n2", "lon", "999.0"),
        ("n3", "lat", None),
    ]
    assert found[0]["reason"] == "no id; give each row one" and "999" in found[1]["reason"]
    assert found[1]["row"] == '{"key": 3, "body": "b", "lon": 999.0, "lat": 2.0}'
    matched = ncs.match(frame, pizza_index(), columns=_MAPPED, keep=["note"]).collect()
    assert {row.note for row in matched} == {"n0"}


@pytest.mark.parametrize(("n_shards", "layout"), [(0, "auto"), (7, "replicated"), (7, "sharded")])
def test_spark_observes_messages_rejects_matches_and_the_version(spark: Any, n_shards: int, layout: str) -> None:
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    frame = as_frame(spark, tables("rank")[1])
    frame = frame.withColumn("x", F.when(F.col("id") % 10 == 0, F.lit(999.0)).otherwise(F.col("x")))
    frame = frame.withColumn("id", F.when(F.col("id") % 10 == 1, F.lit(None)).otherwise(F.col("id")))
    observed, index = Observation(), index_of("rank", n_shards)
    matches = ncs.match(frame, index, keep=["time"], layout=layout, metrics=observed)
    n_matches = len(matches.collect())
    n_bad = ncs.rejects(frame).count()
    assert 50 < n_bad < N_MESSAGES / 2 and n_matches
    wanted_counts = {"messages": N_MESSAGES - n_bad, "rejects": n_bad, "matches": n_matches, "index": index.generation}
    assert observed.get == wanted_counts
    assert matches.where(F.col("message").isNull()).count() == 0, "rows of counts are dropped"


# -- errors


def test_a_wrong_schema_is_one_line_before_any_job(spark: Any) -> None:
    from pyspark.sql import functions as F

    frame, index = bad_messages(spark), pizza_index()
    wrong: list[tuple[dict[str, Any], str]] = [
        ({}, r"need a column 'id'; there are key, body, lon, lat, note"),
        ({"columns": {"id": "nokey", "text": "body"}}, r"no column 'nokey'; there are key"),
        ({"columns": {"id": "key"}}, r"messages need a column 'text' or 'tokens'"),
        ({"columns": {**_MAPPED, "text": "lon"}}, r"column 'lon': it must hold text, not double"),
        ({"columns": {**_MAPPED, "lon": F.array("lat")}}, r"it cannot be array<double>"),
        ({"columns": {**_MAPPED, "id": "lat"}}, r"column 'lat': ids are whole numbers or strings, not double"),
        ({"columns": {**_MAPPED, "txt": "body"}}, r"columns=\{...\} has no 'txt'"),
        ({"columns": _MAPPED, "keep": ["none"]}, r"no column 'none'"),
        ({"columns": _MAPPED, "keep": [F.col("lat").alias("score")]}, r"cannot be called 'score'"),
        ({"columns": _MAPPED, "keep": ["lat", F.col("lon").alias("lat")]}, r"two kept columns are called 'lat'"),
        ({"columns": _MAPPED, "on_bad": "drop"}, r"on_bad is 'raise' or 'skip', not 'drop'"),
    ]
    for options, reason in wrong:
        with pytest.raises(InvalidInput, match=reason) as caught:
            ncs.match(frame, index, **options)
        assert "\n" not in str(caught.value)
    without_place = {"id": "key", "text": "body"}
    with pytest.raises(InvalidInput, match="no place: give columns x and y"):
        ncs.match(frame.select("key", "body"), index, columns=without_place)
    assert "column 'lon': message 3: lon is 999" in one_line(
        ncs.match(frame.where("key = 3"), index, columns=_MAPPED, on_bad="raise").collect
    )


def test_what_is_no_index_is_one_line(spark: Any, tmp_path: Path) -> None:
    frame = as_frame(spark, tables("match")[1])
    with pytest.raises(InvalidInput, match="does not exist; save an index there"):
        ncs.match(frame, tmp_path / "absent")
    (tmp_path / "other.txt").touch()
    with pytest.raises(InvalidInput, match="is not a saved index"):
        ncs.match(frame, tmp_path)
    with pytest.raises(InvalidInput, match=r"not Index: index.save\(path\)"):
        ncs.match(frame, nc.build_index(PIZZA, "brute"))
    with pytest.raises(InvalidInput, match="messages are a Spark DataFrame, not Table"):
        ncs.match(tables("match")[1], index_of("match", 2))
    nc.build_index(PIZZA, "brute").save(tmp_path / "index")
    manifest = tmp_path / "index" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"version": ', '"version": 9'))
    with pytest.raises(ForeignVersion, match="build it again"):
        ncs.open_index(tmp_path / "index")
    manifest.write_text("{")
    with pytest.raises(CorruptFile, match="damaged"):
        ncs.open_index(tmp_path / "index")


def test_the_library_refuses_a_spark_frame_by_name(spark: Any) -> None:
    frame = as_frame(spark, tables("match")[1])
    with pytest.raises(InvalidInput, match=r"nearcast\.spark\.match\(df, index\)") as caught:
        nc.build_index(PIZZA, "brute").match(frame)
    assert "\n" not in str(caught.value)


# -- replaced indexes


@pytest.mark.parametrize("n_shards", [0, 2])
def test_a_replaced_index_is_never_served_stale(spark: Any, tmp_path: Path, n_shards: int) -> None:
    path, frame = tmp_path / "index", as_frame(spark, pa.table({"id": [1], "text": ["a b"], "x": [0.0], "y": [0.0]}), 1)

    def replace_by(word: str) -> IndexHandle:
        table = pa.table({"id": [ord(word)], "expression": [word], "region": ["world"]})
        if n_shards:
            pq.write_table(table, tmp_path / "subscriptions.parquet")
            build_sharded(
                OneProcess(), str(tmp_path / "subscriptions.parquet"), str(path), shards=n_shards, method="brute"
            )
        else:
            nc.build_index(table, "brute").save(path)
        return ncs.open_index(path)

    first = replace_by("a")
    of_first = ncs.match(frame, first)
    assert [row.subscription for row in of_first.collect()] == [ord("a")]
    second = replace_by("b")
    assert second.generation != first.generation
    assert [row.subscription for row in ncs.match(frame, second).collect()] == [ord("b")]
    assert [row.subscription for row in ncs.match(frame, path).collect()] == [ord("b")]
    if n_shards:  # a version of a sharded index stays, and a handle goes on naming it
        assert [row.subscription for row in of_first.collect()] == [ord("a")]
    else:
        assert "was replaced since it was opened; open it again" in one_line(of_first.collect)


@needs_udtf
def test_the_page_about_dataframes_runs(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_python(ROOT / "docs" / "how-to" / "match-spark-dataframes.md") > 5

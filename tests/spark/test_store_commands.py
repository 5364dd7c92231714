"""`nearcast pipeline` with URLs of an object store, as typed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearcast as nc
from nearcast.arrays.jit import JIT_DISABLED
from nearcast.storage.location import locate
from s3_server import S3Server
from spark.nasty_tables import nasty_messages, nasty_subscriptions
from spark.typed_commands import ORDER, nearcast, run_json


def put(url: str, table: pa.Table) -> None:
    content = pa.BufferOutputStream()
    pq.write_table(table, content)
    locate(url).write(content.getvalue())


@pytest.mark.skipif(JIT_DISABLED, reason="Spark's workers in plain Python take minutes")
def test_tables_vocabulary_and_index_in_a_store(
    spark: Any, bucket: str, object_store: S3Server, tmp_path: Path
) -> None:
    subscriptions, messages = nasty_subscriptions(7, 200), nasty_messages(8, 300)
    names = ("s.parquet", "m.parquet", "index", "words")
    s, m, index, words = (object_store.whole_url(f"{bucket}/{name}") for name in names)
    put(s, subscriptions)
    put(m, messages)
    assert run_json("pipeline", "vocabulary", "--messages", m, "--out", words)["messages"] == 300
    assert len(nc.Vocabulary.open(words)) > 5
    build = ["pipeline", "build", "--subscriptions", s, "--messages", m, "--weights", words, "--out", index]
    build += ["--shards", 2, "--method", "pyramid"]
    assert run_json(*build)["up_to_date"] is False
    assert run_json(*build)["up_to_date"] is True
    put(s, subscriptions.slice(1))
    assert run_json(*build)["up_to_date"] is False
    out = f"file://{tmp_path}/matches"
    run_json("pipeline", "match", "--index", index, "--messages", m, "--out", out)
    wanted = nc.build_index(subscriptions.slice(1), "brute").match(messages)
    assert pq.read_table(tmp_path / "matches").sort_by(ORDER).combine_chunks().equals(wanted.combine_chunks())
    assert sorted(path.name for path in tmp_path.iterdir()) == [".matches.step.json", "copies", "matches"]


def test_what_cannot_be_in_a_store_is_one_line_before_spark_starts(bucket: str, tmp_path: Path) -> None:
    put(f"{bucket}/m.parquet", nasty_messages(1, 20))
    match = ["pipeline", "match", "--index", f"{bucket}/index", "--messages", f"{bucket}/m.parquet", "--out"]
    stream = ["pipeline", "stream", "--index", f"{bucket}/index", "--once"]
    places = ["--out", tmp_path / "out", "--checkpoint", tmp_path / "c", "--messages"]
    (tmp_path / "p.toml").write_text(f'out = "{bucket}/run"\n[messages]\nsources = ["m.csv"]\n')
    ingest = ["pipeline", "ingest", f"{bucket}/raw.csv", "--kind", "messages", "--out"]
    for command, reason in (
        ([*match, bucket.replace("s3:", "s3a:") + "/out"], "this output must be on a file system that all workers see"),
        ([*match, tmp_path / "out"], "index: no such file or folder"),
        ([*match, "ftp://host/out"], "no file system 'ftp'"),
        ([*ingest, tmp_path / "out"], "raw files are on a file system that all workers see"),
        ([*ingest, f"{bucket}/out"], "this output must be on a file system"),
        ([*stream, *places, f"{bucket}/in"], "the folder of messages of a stream must be on a file system"),
        ([*stream, *places, tmp_path, "--changes", f"{bucket}/log"], "the change log of a stream must be on a file"),
        ([*stream, "--out", f"{bucket}/o", "--checkpoint", tmp_path / "c", "--messages", tmp_path], "the output of a"),
        (["pipeline", "run", "--out", f"{bucket}/run"], "this output must be on a file system"),
        (["pipeline", "run", tmp_path / "p.toml"], "this output must be on a file system"),
    ):
        done = nearcast(*command)
        assert done.exit_code == 2 and reason in done.output and done.output.count("\n") == 1, done.output
    assert [path.name for path in tmp_path.iterdir()] == ["p.toml"] and not Path("s3a:").exists()

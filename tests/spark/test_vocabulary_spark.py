"""The vocabulary that Spark counts is the one that the library counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from nearcast.arrays.arrow import list_parts
from nearcast.arrays.jit import JIT_DISABLED
from nearcast.errors import InvalidInput
from nearcast.ingest.reports.message_counts import open_frequencies
from nearcast.spark.batch.ingest import IngestOptions, ingest
from nearcast.spark.batch.statistics import build_vocabulary
from nearcast.text.analyser import Analyser
from nearcast.text.vocabulary import Vocabulary

WORDS = np.array(["fog", "ice", "straße", "雪道", "a\x00b", "", "z", "zz", "é"], object)


def token_lists(n: int, seed: int) -> list[list[str] | None]:
    """Some are empty, some null, many repeat a word."""
    rng = np.random.default_rng(seed)
    return [None if k % 17 == 0 else rng.choice(WORDS, rng.integers(0, 6)).tolist() for k in range(n)]


def counted_by_the_library(tokens: pa.Array) -> dict[str, int]:
    vocabulary = Vocabulary()
    flat, starts = list_parts(tokens)
    vocabulary.count_documents(vocabulary.add(flat), starts)
    return dict(
        zip(vocabulary.tokens(np.arange(len(vocabulary))).to_pylist(), vocabulary.frequencies.tolist(), strict=True)
    )


def test_spark_counts_what_the_library_counts_however_the_table_is_divided(spark: Any, tmp_path: Path) -> None:
    tokens = pa.array(token_lists(1000, seed=3), pa.list_(pa.string()))
    expected = counted_by_the_library(tokens)
    table = pa.table({"id": range(1000), "tokens": tokens})
    (tmp_path / "many").mkdir()
    for k in range(4):
        pq.write_table(table.slice(250 * k, 250), tmp_path / "many" / f"{k}.parquet", row_group_size=100)
    pq.write_table(table, tmp_path / "one.parquet")

    counts = build_vocabulary(spark, str(tmp_path / "many"), str(tmp_path / "new" / "many.vocabulary"))
    build_vocabulary(spark, str(tmp_path / "one.parquet"), str(tmp_path / "one.vocabulary"))
    made = Vocabulary.open(tmp_path / "one.vocabulary")
    names = made.tokens(np.arange(len(made))).to_pylist()
    assert dict(zip(names, made.frequencies.tolist(), strict=True)) == expected
    assert (made.n_documents, counts["messages"], counts["tokens"]) == (1000, 1000, len(WORDS))
    assert [-expected[name] for name in names] == sorted(-count for count in expected.values())
    assert names == sorted(names, key=lambda name: (-expected[name], name.encode()))
    assert made.analyser is None  # the tokens were taken as they are
    assert (tmp_path / "new" / "many.vocabulary").read_bytes() == (tmp_path / "one.vocabulary").read_bytes()
    assert made.term("fog") == names.index("fog") and made.term("unknown") == -1
    found = open_frequencies(str(tmp_path / "one.vocabulary"))
    assert found.tokens.to_pylist() == names and found.n_documents == 1000


def test_text_goes_through_the_analyser_that_is_stored_along(spark: Any, tmp_path: Path) -> None:
    texts = ["Running late", "runs LATE, late", None, ""]
    pq.write_table(pa.table({"id": range(4), "text": texts}), tmp_path / "text.parquet")
    stemming = Analyser(stem="english")
    build_vocabulary(spark, str(tmp_path / "text.parquet"), str(tmp_path / "v"), analyser=stemming)
    made = Vocabulary.open(tmp_path / "v")
    assert made.analyser == stemming and made.n_documents == 4
    assert (made.token(0), made.token(1), made.frequencies.tolist()) == ("late", "run", [2, 2])


def test_the_analyser_of_the_ingest_is_remembered(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,text,x,y\n1,Running,2,3\n2,,2,3\n")
    options = IngestOptions(analyser=Analyser(stem="english"))
    out = str(tmp_path / "out")
    ingest(spark, [str(tmp_path / "a.csv")], "messages", {}, out, str(tmp_path / "rejects"), options=options)
    build_vocabulary(spark, out, str(tmp_path / "v"))
    made = Vocabulary.open(tmp_path / "v")
    assert made.analyser == options.analyser and made.n_documents == 2 and made.token(0) == "run"


def test_tables_without_words_differ_from_tables_without_rows(spark: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "no_words.parquet")
    with pytest.raises(InvalidInput, match="no column 'tokens' or 'text'"):
        build_vocabulary(spark, str(tmp_path / "no_words.parquet"), str(tmp_path / "v"))
    with pytest.raises(InvalidInput, match="does not exist"):
        build_vocabulary(spark, str(tmp_path / "nothing"), str(tmp_path / "v"))
    empty = pa.table({"id": pa.array([], pa.int64()), "text": pa.array([], pa.string())})
    pq.write_table(empty, tmp_path / "empty.parquet")
    assert build_vocabulary(spark, str(tmp_path / "empty.parquet"), str(tmp_path / "v"))["tokens"] == 0
    assert len(Vocabulary.open(tmp_path / "v")) == 0


@pytest.mark.data
@pytest.mark.skipif(JIT_DISABLED, reason="a million tokens take minutes in plain Python")
def test_real_texts_are_counted_as_the_library_counts_them(spark: Any, tmp_path: Path, large_data: Path) -> None:
    airbnb = str(next(large_data.glob("airbnb*")))
    out = str(tmp_path / "out")
    ingest(spark, [airbnb], "messages", {}, out, str(tmp_path / "rejects"))
    build_vocabulary(spark, out, str(tmp_path / "v"))
    made = Vocabulary.open(tmp_path / "v")
    expected = counted_by_the_library(Analyser().tokens_batch(pq.read_table(out)["text"]))
    tokens = made.tokens(np.arange(len(made)))
    assert dict(zip(tokens.to_pylist(), made.frequencies.tolist(), strict=True)) == expected
    assert pc.count_distinct(tokens).as_py() == len(made)

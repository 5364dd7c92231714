"""Statistics add up to what a plain loop counts, and the report shows them."""

from __future__ import annotations

import re
import sys
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nearcast.ingest.reports.table_report import _pictures, write_report
from nearcast.spark.batch.ingest import ingest
from nearcast.spark.batch.statistics import build_vocabulary, statistics

SAMPLE = str(resources.files("nearcast.demo") / "sample" / "calgary_traffic_2024.csv.gz")


def test_the_sample_s_statistics_add_up_and_make_a_page(spark: Any, tmp_path: Path) -> None:
    out, vocabulary = str(tmp_path / "messages [all]"), str(tmp_path / "v")
    dirty = tmp_path / "dirty.csv"
    dirty.write_text("id,text,lon,lat,time\nx,<b>,1,2,\n,,,,\n")
    counts = ingest(spark, [SAMPLE, str(dirty)], "messages", {}, out, str(tmp_path / "rejects"))
    assert counts["rejected"] == 2
    build_vocabulary(spark, out, vocabulary)
    found = statistics(spark, out, vocabulary=vocabulary)
    assert statistics(spark, out)["words"] == found["words"]

    table = pq.read_table(out)
    n = table.num_rows
    lengths = [len(tokens) for tokens in table["tokens"].to_pylist()]
    assert found["messages"] == n == sum(map(sum, found["places"]["density"])) == sum(found["lengths"]["tokens"])
    assert found["lengths"]["tokens"][: max(lengths) + 1] == np.bincount(lengths).tolist()
    assert sum(found["lengths"]["characters_bits"]) == n == sum(found["times"]["messages"])
    assert found["words"]["occurrences"] == sum(lengths)
    top = found["words"]["top"][0]
    assert top[1] == sum(top[0] in tokens for tokens in table["tokens"].to_pylist())
    assert found["times"]["first_day"] == "2024-01-01" and len(found["times"]["hours"]) == 24
    xs = table["x"].to_numpy()
    assert found["places"]["box"][0] == xs.min() and found["places"]["box"][2] == xs.max()
    assert found["places"]["density"][0] != found["places"]["density"][-1]

    write_report(tmp_path / "new" / "report.html", found, title="A & B", more=["<p>first</p>"])
    page = (tmp_path / "new" / "report.html").read_text()
    assert page.count("data:image/png;base64,") == 5 and "A &amp; B" in page and "<p>first</p>" in page
    assert f"<td>{top[0]}</td>" in page and re.search(r"rejected</td><td class=\"number\">2<", page)


def test_ranges_one_place_no_times_and_no_text_have_statistics_too(spark: Any, tmp_path: Path) -> None:
    n = 10
    boxes = {"xmin": [0.0] * n, "ymin": [5.0] * n, "xmax": [2.0] * n, "ymax": [5.0] * n}
    tokens = pa.array([["$a$"], ["<script>", "雪"]] * 5, pa.list_(pa.string()))
    pq.write_table(pa.table({"id": range(n), "tokens": tokens, **boxes}), tmp_path / "ranges.parquet")
    found = statistics(spark, str(tmp_path / "ranges.parquet"))
    assert found["times"] is None and found["ingest"] is None and found["places"]["cells_in_use"] == 1
    write_report(tmp_path / "report.html", found)
    page = (tmp_path / "report.html").read_text()
    assert "&lt;script&gt;" in page and "<script>" not in page and page.count("data:image/png") == 3


def test_a_report_without_messages_or_pictures_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_report(tmp_path / "report.html", {"messages": 0, "ingest": None})
    assert "There are no messages" in (tmp_path / "report.html").read_text()
    monkeypatch.setitem(sys.modules, "matplotlib.colors", None)  # as if it were not installed
    monkeypatch.delitem(sys.modules, "nearcast.ingest.reports.pictures", raising=False)
    assert _pictures({}) == ["<p>Pictures need matplotlib: pip install 'nearcast[pictures]'.</p>"]


def test_an_empty_table_has_no_statistics(spark: Any, tmp_path: Path) -> None:
    empty = {"id": pa.array([], pa.int64()), "text": pa.array([], pa.string()), "x": [], "y": []}
    pq.write_table(pa.table(empty), tmp_path / "empty.parquet")
    assert statistics(spark, str(tmp_path / "empty.parquet")) == {"messages": 0, "ingest": None}

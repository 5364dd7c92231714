"""What shards and the stream do not serve yet is rejected by name; nothing vanishes. None of this needs Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from nearcast.geo.space import LONLAT
from nearcast.ingest.stream_batch import served_kinds
from nearcast.sharding.live.changes import read_changes
from nearcast.sharding.planning.plan import make_router
from nearcast.spark.batch.duplicate_ids import open_source
from nearcast.spark.batch.one_process import OneProcess
from nearcast.spark.streaming.compaction import untouched
from nearcast.tables import Dialect, write_table
from nearcast.text.analyser import Analyser

DIALECT = Dialect(Analyser(), LONLAT, "skip")
REASON = "kind 'top' is not served here yet, only match, rank"


@pytest.fixture
def table() -> pa.Table:
    base: dict[str, Any] = {"tokens": [["a"]] * 3, "kind": ["top", None, "rank"], "threshold": [0.5, None, 0.5]}
    return pa.table(
        {"id": [1, 2, 3], **base, "xmin": [0.0] * 3, "ymin": [0.0] * 3, "xmax": [1.0] * 3, "ymax": [1.0] * 3}
    )


def test_shards_reject_subscriptions_of_kind_top(table: pa.Table) -> None:
    assigned = make_router(table, None, 2, DIALECT).assign(table)
    assert set(assigned.rows.tolist()) == {1, 2} and (assigned.n_good, assigned.n_ranked) == (2, 1)
    assert [(row["row"], row["column"], row["reason"]) for row in assigned.rejects.to_pylist()] == [(1, "kind", REASON)]


def test_the_change_log_rejects_subscriptions_of_kind_top(table: pa.Table) -> None:
    found = read_changes(table.append_column("op", pa.array(["insert"] * 3)), "f", DIALECT)
    assert found.inserted["id"].to_pylist() == [2, 3] and found.rejects["reason"].to_pylist() == [REASON]
    assert found.inserted["kind"].to_pylist() == [None, "rank"]


def test_the_change_log_rejects_what_the_base_could_not_take_up(table: pa.Table) -> None:
    assert served_kinds("auto") == served_kinds("rt-tree") == ("match", "rank") and served_kinds("pyramid") == (
        "match",
    )
    dialect = DIALECT._replace(kinds=served_kinds("pyramid"))
    found = read_changes(table.append_column("op", pa.array(["insert"] * 3)), "f", dialect)
    assert found.inserted["id"].to_pylist() == [2] and found.rejects["row"].to_pylist() == [1, 3]


def test_compaction_leaves_out_what_the_base_does_not_have(table: pa.Table, tmp_path: Path) -> None:
    write_table(pa.table({"id": pa.array([3], pa.int64())}), tmp_path / "touched.parquet")
    write_table(table, tmp_path / "base.parquet")
    source = open_source(OneProcess(), str(tmp_path / "base.parquet"), tmp_path / "duplicates")
    tasks = [pa.record_batch({"id": pa.array([0])})]
    kept = [*untouched(source, str(tmp_path / "touched.parquet"), DIALECT, tasks)]
    assert [number for batch in kept for number in batch["id"].to_pylist()] == [2]

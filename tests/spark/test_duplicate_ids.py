"""Message ids that come again in another task of a batch: the first row stands, the others are rejected by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearcast as nc
from nearcast.arrays.jit import JIT_DISABLED
from nearcast.spark.batch.build import build_sharded
from nearcast.spark.batch.duplicate_ids import open_source
from nearcast.spark.batch.match import match_batch
from nearcast.spark.batch.one_process import OneProcess
from spark.nasty_tables import nasty_messages, nasty_subscriptions

N_GOOD = 40 if JIT_DISABLED else 120


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("index")
    pq.write_table(nasty_subscriptions(1, 60), folder / "subscriptions.parquet")
    build_sharded(OneProcess(), str(folder / "subscriptions.parquet"), str(folder / "index"), shards=3, method="brute")
    return str(folder / "index")


def repeating(folder: Path) -> pa.Table:
    """Two files of some row groups; ids come again within a file and in the other one, and one row has no id."""
    good = nasty_messages(2, N_GOOD)
    again = good.slice(5, 9).set_column(0, "id", good["id"].slice(N_GOOD - 20, 9))
    nameless = good.slice(0, 1).set_column(0, "id", pa.array([None], pa.int64()))
    table = pa.concat_tables([good, again, nameless, again.slice(0, 2)]).combine_chunks()
    half = N_GOOD // 2
    pq.write_table(table.slice(0, half), folder / "a.parquet", row_group_size=16)
    pq.write_table(table.slice(half), folder / "b.parquet", row_group_size=16)
    return table


@pytest.mark.parametrize("most_here", [1_000, 30])
@pytest.mark.parametrize("layout", ["replicated", "sharded"])
def test_what_the_library_rejects_in_one_table_is_rejected_over_all_tasks(
    tmp_path: Path, monkeypatch: Any, index: str, layout: Any, most_here: int
) -> None:
    """Whether the driver or Spark compares the ids."""
    monkeypatch.setattr("nearcast.spark.batch.duplicate_ids.MOST_IDS_HERE", most_here)
    (tmp_path / "messages").mkdir()
    table = repeating(tmp_path / "messages")
    out = tmp_path / "out"
    counts = match_batch(OneProcess(), index, str(tmp_path / "messages"), str(out), layout=layout, rows_per_task=16)
    library = nc.build_index(nasty_subscriptions(1, 60), "brute")
    wanted = library.match(table, on_bad="skip")
    found = pq.read_table(out).sort_by([("message", "ascending"), ("subscription", "ascending")])
    assert found.equals(wanted) and wanted.num_rows
    assert (counts["messages"], counts["rejected"], counts["pairs"]) == (N_GOOD, 12, wanted.num_rows)
    rejects = pq.read_table(out / "_rejects.parquet")
    assert library.rejects is not None and rejects.select(["row", "column", "reason"]).equals(
        library.rejects.select(["row", "column", "reason"])
    )
    assert counts["tasks"] > 1 and str(table["id"][N_GOOD].as_py()) in rejects["reason"][0].as_py()


def test_a_table_that_ingest_wrote_is_not_read_for_its_ids(tmp_path: Path, monkeypatch: Any) -> None:
    looked: list[str] = []
    monkeypatch.setattr("nearcast.spark.batch.duplicate_ids._has_repeats", lambda table: bool(looked.append(table)))
    pq.write_table(pa.table({"id": [3, 1, 2]}), tmp_path / "part-0.parquet")
    (tmp_path / "_counts.json").write_text(json.dumps({"kind": "messages", "read": 5, "accepted": 3}))
    assert open_source(OneProcess(), str(tmp_path), tmp_path / ".duplicates-1").n_rows == 3
    assert not looked
    pq.write_table(pa.table({"id": [3]}), tmp_path / "part-1.parquet")  # not by ingest
    open_source(OneProcess(), str(tmp_path), tmp_path / ".duplicates-2")
    assert looked == [str(tmp_path)]


def test_ids_that_differ_are_no_repeats_in_whatever_order_they_come(tmp_path: Path) -> None:
    ids = np.random.default_rng(3).permutation(1_000) - 500
    for k, part in enumerate((ids[:300], ids[300:])):
        pq.write_table(pa.table({"id": part}), tmp_path / f"{k}.parquet", row_group_size=128)
    source = open_source(OneProcess(), str(tmp_path), tmp_path / ".duplicates", 100)
    assert len(source.tasks) > 5 and not list((tmp_path / ".duplicates").iterdir())
    assert sum(source.read(task).table.num_rows for task in range(len(source.tasks))) == 1_000

"""Batches of any columns, as tasks get them: matched, routed and rejected without Spark."""

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
from nearcast.errors import InvalidInput
from nearcast.sharding.frame_match import (
    FrameColumns,
    FrameJob,
    match_frames,
    match_routed,
    reject_frames,
    route_frames,
)
from nearcast.sharding.index_handle import IndexHandle, open_handle
from nearcast.spark.batch.build import build_sharded
from nearcast.spark.batch.one_process import OneProcess
from spark.nasty_tables import nasty_messages
from spark.ranked_tables import ranked_subscriptions

SUBSCRIPTIONS = ranked_subscriptions(3, 60)


@pytest.fixture(scope="module", params=[0, 1, 3])
def handle(request: Any, tmp_path_factory: pytest.TempPathFactory) -> IndexHandle:
    folder = tmp_path_factory.mktemp("frames")
    if not request.param:
        nc.build_index(SUBSCRIPTIONS, "brute").save(folder / "index")
    else:
        pq.write_table(SUBSCRIPTIONS, folder / "s.parquet")
        build_sharded(
            OneProcess(), str(folder / "s.parquet"), str(folder / "index"), shards=request.param, method="brute"
        )
    return open_handle(folder / "index")


def columns_of(table: pa.Table, keep: tuple[str, ...] = ()) -> FrameColumns:
    names = table.column_names
    read = {name: names.index(name) for name in names if name not in keep}
    return FrameColumns(read, tuple((name, names.index(name)) for name in keep), {name: name for name in read})


def matched(job: FrameJob, table: pa.Table, size: int) -> pa.Table:
    return _in_order(match_frames(job, table.to_batches(size)))


def matched_by_shard(job: FrameJob, table: pa.Table, size: int) -> pa.Table:
    """The sharded layout: all payloads of a shard are matched together."""
    by_shard: dict[int, list[pa.Table]] = {}
    for batch in table.to_batches(size):
        for shard, part in route_frames(job, batch)[0].items():
            by_shard.setdefault(shard, []).append(part)
    return _in_order(
        batch for shard, parts in by_shard.items() for batch in match_routed(job, shard, pa.concat_tables(parts))
    )


def _in_order(batches: Any) -> pa.Table:
    found = pa.Table.from_batches(list(batches)).combine_chunks()
    return found.sort_by([(name, "ascending") for name in found.column_names if name != "note"]).combine_chunks()


@given(seed=st.integers(0, 1000), size=st.sampled_from([7, 40, 100]))
def test_batches_of_any_size_find_what_the_library_finds(handle: IndexHandle, seed: int, size: int) -> None:
    messages = nasty_messages(seed, 40)
    wanted = nc.build_index(SUBSCRIPTIONS, "brute").match(messages)
    job = FrameJob(handle, columns_of(messages))
    assert matched(job, messages, size).equals(wanted)
    if handle.n_shards > 1:
        assert matched_by_shard(job, messages, size).equals(wanted)


def test_types_of_any_width_and_kept_columns_of_any_type(handle: IndexHandle) -> None:
    messages = nasty_messages(5, 40)
    notes = pa.array([{"n": k, "words": ["w"] * (k % 3)} for k in range(40)])
    texts = pa.array([" ".join(tokens) for tokens in messages["tokens"].to_pylist()])
    plain = pa.table({"id": messages["id"], "text": texts, "x": messages["x"], "y": messages["y"]})
    wanted = nc.build_index(SUBSCRIPTIONS, "brute").match(plain, on_bad="skip")
    ids = pa.array([f"m{key:+06d}" for key in plain["id"].to_pylist()], pa.large_string())
    for text in (texts.cast(pa.large_string()), texts.dictionary_encode()):
        table = pa.table({"id": ids, "text": text, "x": plain["x"], "y": plain["y"], "note": notes})
        job = FrameJob(handle, columns_of(table, ("note",)))
        found = matched(job, table, 13).to_pylist()
        rows = {key: row for row, key in enumerate(ids.to_pylist())}
        assert all(row["note"]["n"] == rows[row["message"]] for row in found)
        pairs = sorted((int(row["message"][1:]), row["subscription"], row["score"]) for row in found if row["score"])
        assert pairs == [tuple(row.values()) for row in wanted.to_pylist() if row["score"]]
        assert len(found) == wanted.num_rows


def test_rows_of_counts_add_up_to_the_rows_of_the_batches(handle: IndexHandle) -> None:
    messages = nasty_messages(6, 40)
    ids = np.where(np.arange(40) % 8 == 0, None, messages["id"].to_numpy())
    table = messages.set_column(0, "id", pa.array(ids.tolist(), pa.int64()))
    table = table.set_column(table.column_names.index("ymax"), "ymax", pa.array([999.0] * 40))
    job = FrameJob(handle, columns_of(table), counts=True)
    found = matched(job, table, 9).to_pylist()
    counts = [row["subscription"] for row in found if row["message"] is None]
    assert sum(n for n in counts if n > 0) - sum(n for n in counts if n < 0) == 40
    rejects = pa.Table.from_batches(list(reject_frames(job.columns, handle.dialect, table.to_batches(9))))
    assert -sum(n for n in counts if n < 0) == rejects.num_rows > 10
    assert {"id", "ymax"} <= set(rejects["column"].to_pylist())


def test_a_bad_row_raises_with_the_id_of_its_message(handle: IndexHandle) -> None:
    table = pa.table({"id": ["a", "b"], "text": ["x", "y"], "lon": [0.0, 999.0], "lat": [0.0, 0.0]})
    columns = columns_of(table)._replace(sources={"lon": "doc.lon"})
    with pytest.raises(InvalidInput, match=r"column 'doc.lon': message 'b': lon is 999"):
        list(match_frames(FrameJob(handle, columns, "raise"), table.to_batches()))
    no_id = table.set_column(0, "id", pa.array([None, "b"], pa.string()))
    with pytest.raises(InvalidInput, match="column 'id': no id"):
        list(match_frames(FrameJob(handle, columns, "raise"), no_id.to_batches()))


def test_a_handle_says_what_the_index_is(handle: IndexHandle, tmp_path: Path) -> None:
    assert handle.is_scored and handle.nbytes > 0 and handle.n_shards >= 1
    assert handle.dialect.analyser == nc.Analyser() and not handle.dialect.space.planar
    nc.build_index(SUBSCRIPTIONS.filter(pa.array([False] * 60)), "brute", space=(0, 0, 1, 1)).save(tmp_path / "index")
    planar = open_handle(tmp_path / "index")
    assert not planar.is_scored and planar.dialect.space.planar

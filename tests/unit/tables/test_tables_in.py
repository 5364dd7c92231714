"""Every form of table gives the same matches."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearcast as nc
from nearcast.errors import InvalidInput
from nearcast.tables import as_arrow, write_table

SUBSCRIPTIONS = pa.table(
    {
        "id": pa.array([10, 20, 30], pa.int64()),
        "tokens": [["pizza"], ["pizza", "deal"], []],
        "xmin": [0.0, 0.0, 5.0],
        "ymin": [0.0, 0.0, 5.0],
        "xmax": [1.0, 9.0, 9.0],
        "ymax": [1.0, 9.0, 9.0],
    }
)
MESSAGES = pa.table({"id": [2, 1], "text": ["Pizza deal!", "pizza"], "x": [6.0, 0.5], "y": [6.0, 1.0]})
EXPECTED = [(1, 10), (2, 20), (2, 30)]


def pairs(table: pa.Table) -> list[tuple[int, int]]:
    assert table.schema.names == ["message", "subscription"]
    return list(zip(table.column("message").to_pylist(), table.column("subscription").to_pylist(), strict=True))


FORMS: dict[str, Callable[[pa.Table], Any]] = {
    "arrow": lambda table: table,
    "record batch": lambda table: table.combine_chunks().to_batches()[0],
    "chunks": lambda table: pa.concat_tables([table.slice(0, 1), table.slice(1)]),
    "slice": lambda table: pa.concat_tables([table, table]).slice(0, table.num_rows),
    "pandas": lambda table: table.to_pandas(),
    "polars": lambda table: pl.from_arrow(table),
    "dict": lambda table: table.to_pydict(),
    "list of dicts": lambda table: table.to_pylist(),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_table_gives_the_same_matches(form: str) -> None:
    index = nc.build_index(FORMS[form](SUBSCRIPTIONS))
    assert pairs(index.match(FORMS[form](MESSAGES))) == EXPECTED


@pytest.mark.parametrize("ending", ["parquet", "csv", "csv.gz", "jsonl", "jsonl.gz"])
def test_every_kind_of_file_gives_the_same_matches(ending: str, tmp_path: Path) -> None:
    subscriptions, messages = tmp_path / f"s.{ending}", tmp_path / f"m.{ending}"
    if ending == "parquet":
        pq.write_table(SUBSCRIPTIONS, subscriptions)
        pq.write_table(MESSAGES, messages)
    else:
        for table, path in ((SUBSCRIPTIONS, subscriptions), (MESSAGES, messages)):
            write_rows(table, path)
    assert pairs(nc.build_index(str(subscriptions)).match(messages)) == EXPECTED


def write_rows(table: pa.Table, path: Path) -> None:
    if ".csv" in path.name:
        frame = table.to_pandas()
        if "tokens" in frame:
            frame["tokens"] = frame["tokens"].map(" ".join)
        content = frame.to_csv(index=False)
    else:
        content = "".join(json.dumps(row) + "\n" for row in table.to_pylist())
    path.write_bytes(gzip.compress(content.encode()) if path.name.endswith(".gz") else content.encode())


def test_a_folder_of_parquet_files_is_one_table(tmp_path: Path) -> None:
    pq.write_table(SUBSCRIPTIONS.slice(0, 1), tmp_path / "a.parquet")
    pq.write_table(SUBSCRIPTIONS.slice(1), tmp_path / "b.parquet")
    assert len(nc.build_index(tmp_path)) == 3


@pytest.mark.parametrize(
    "kind",
    [
        pa.large_list(pa.string()),
        pa.list_(pa.large_string()),
        pa.list_(pa.dictionary(pa.int32(), pa.string())),
    ],
)
def test_every_type_of_string_list_is_accepted(kind: pa.DataType) -> None:
    tokens = SUBSCRIPTIONS.column("tokens").combine_chunks().cast(pa.list_(pa.string()))
    if pa.types.is_list(kind) and pa.types.is_dictionary(kind.value_type):
        made = pa.ListArray.from_arrays(tokens.offsets, tokens.values.dictionary_encode())
    else:
        made = tokens.cast(kind)
    table = SUBSCRIPTIONS.set_column(1, "tokens", made)
    assert pairs(nc.build_index(table).match(MESSAGES)) == EXPECTED


def test_tokens_take_precedence_over_text_in_each_row() -> None:
    index = nc.build_index({"id": [1], "tokens": [["b"]], "x": [0.0], "y": [0.0]})
    table = pa.table(
        {
            "id": [1, 2, 3],
            "text": ["b", "b", "c"],
            "tokens": pa.array([["a"], None, ["b"]], pa.list_(pa.string())),
            "lon": [0.0] * 3,
            "lat": [0.0] * 3,
        }
    )
    assert pairs(index.match(table)) == [(2, 1), (3, 1)]


def test_tokens_are_not_analysed_but_text_is() -> None:
    index = nc.build_index({"id": [1, 2], "tokens": [["Pizza"], ["pizza"]], "x": [0.0, 0.0], "y": [0.0, 0.0]})
    assert pairs(index.match({"id": [5], "text": ["PIZZA"], "x": [0.0], "y": [0.0]})) == [(5, 2)]
    assert pairs(index.match({"id": [5], "tokens": [["Pizza"]], "x": [0.0], "y": [0.0]})) == [(5, 1)]


def test_ranges_points_and_regions_may_share_a_table() -> None:
    rows = [
        {"id": 1, "xmin": 0.0, "ymin": 0.0, "xmax": 2.0, "ymax": 2.0},
        {"id": 2, "x": 1.0, "y": 1.0},
        {"id": 3, "region": "circle(1, 1, 50km)"},
        {"id": 4, "region": "world", "expression": "a OR b"},
        {
            "id": 5,
            "region": json.dumps({"type": "Polygon", "coordinates": [[[0, 0], [3, 0], [0, 3], [0, 0]]]}),
        },
    ]
    index = nc.build_index(pa.Table.from_pylist(rows, schema=SCHEMA))
    messages = [
        {"id": 1, "text": "b", "x": 1.0, "y": 1.0},
        {"id": 2, "text": "c", "x": 1.2, "y": 1.2},
        {"id": 3, "text": "c", "x": 2.0, "y": 1.8},
        {"id": 4, "text": "c", "xmin": 0.5, "ymin": 0.5, "xmax": 1.0, "ymax": 1.0},
    ]
    assert pairs(index.match(pa.Table.from_pylist(messages, schema=MESSAGE_SCHEMA))) == [
        (1, 1), (1, 2), (1, 3), (1, 4), (1, 5), (2, 1), (2, 3), (2, 5), (3, 1), (4, 1), (4, 2), (4, 3), (4, 5),
    ]  # fmt: skip


SCHEMA = pa.schema(
    [("id", pa.int64()), ("expression", pa.string()), ("region", pa.string())]
    + [(name, pa.float64()) for name in ("x", "y", "xmin", "ymin", "xmax", "ymax")]
)
MESSAGE_SCHEMA = pa.schema(
    [("id", pa.int64()), ("text", pa.string())]
    + [(n, pa.float64()) for n in ("x", "y", "xmin", "ymin", "xmax", "ymax")]
)


def test_times_of_any_unit_and_zone_mean_the_same_instant() -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    index = nc.build_index(
        pa.table(
            {"id": [1], "tokens": [[]], "x": [0.0], "y": [0.0], "expires": pa.array([noon], pa.timestamp("us", "UTC"))}
        )
    )
    for column, expected in [
        (pa.array([noon], pa.timestamp("s", "UTC")), 0),
        (pa.array([noon], pa.timestamp("ns", "America/Edmonton")), 0),
        (pa.array(["2026-01-01T11:59:59Z"]), 1),
        (pa.array(["2026-01-01T12:59:59+01:00"]), 1),
        (pa.array(["2026-01-01T12:00:00Z"]), 0),
        (pa.array([datetime(2026, 1, 1, 11)], pa.timestamp("ms")), 1),
        (pa.array([None], pa.timestamp("ms")), 0),
        (pa.array([noon.date()]), 1),
    ]:
        table = pa.table({"id": [1], "text": ["a"], "x": [0.0], "y": [0.0], "time": column})
        assert index.match(table).num_rows == expected, column


def test_empty_tables_work() -> None:
    index = nc.build_index(SUBSCRIPTIONS.slice(0, 0))
    assert index.match(MESSAGES).num_rows == 0
    assert nc.build_index(SUBSCRIPTIONS).match(MESSAGES.slice(0, 0)).num_rows == 0
    assert (
        index.match(
            pa.table(
                {
                    "text": pa.array([], pa.null()),
                    "id": pa.array([], pa.null()),
                    "x": pa.array([], pa.null()),
                    "y": pa.array([], pa.null()),
                }
            )
        ).num_rows
        == 0
    )


def test_planar_space_takes_any_coordinates() -> None:
    table = {
        "id": [1],
        "tokens": [["a"]],
        "xmin": [1000.0],
        "ymin": [1000.0],
        "xmax": [5000.0],
        "ymax": [5000.0],
    }
    index = nc.build_index(table, space=(0, 0, 10_000, 10_000))
    assert pairs(index.match({"id": [1], "tokens": [["a"]], "x": [5000.0], "y": [1000.0]})) == [(1, 1)]


@pytest.mark.parametrize("source", [42, None, "nowhere.parquet", "table.xlsx"])
def test_sources_that_are_not_tables_are_refused(source: object, tmp_path: Path) -> None:
    if source == "table.xlsx":
        (tmp_path / "table.xlsx").write_text("x")
        source = tmp_path / "table.xlsx"
    with pytest.raises(InvalidInput):
        as_arrow(source)


def test_a_damaged_file_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "damaged.parquet"
    path.write_bytes(b"PAR1 not really")
    with pytest.raises(InvalidInput, match=r"damaged\.parquet cannot be read"):
        as_arrow(path)


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_written_tables_can_be_read(ending: str, tmp_path: Path) -> None:
    table = pa.table({"message": np.arange(5), "subscription": np.arange(5) * 2})
    write_table(table, tmp_path / "deep" / f"out.{ending}")
    assert as_arrow(tmp_path / "deep" / f"out.{ending}").to_pydict() == table.to_pydict()
    assert len(list((tmp_path / "deep").iterdir())) == 1


def test_pandas_frames_with_an_index_work() -> None:
    frame = pd.DataFrame({"id": [1], "tokens": [["a"]], "x": [0.0], "y": [0.0]}, index=["row"])
    assert len(nc.build_index(frame)) == 1


def test_records_may_have_different_keys() -> None:
    table = as_arrow([{"id": 1}, {"id": 2, "expression": "a"}, {"region": "world", "id": 3}])
    assert table.to_pydict() == {"id": [1, 2, 3], "expression": [None, "a", None], "region": [None, None, "world"]}
    with pytest.raises(InvalidInput, match="row 2: a list holds one dict for each row, not int"):
        as_arrow([{"id": 1}, 2])

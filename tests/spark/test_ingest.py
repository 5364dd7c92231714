"""Raw files become the same tables that the library reads, and every record is accounted for."""

from __future__ import annotations

import csv
import gzip
import io
import json
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from nearcast.errors import InvalidInput, NearcastError
from nearcast.geo.space import Space
from nearcast.ingest import ingest_part as ingest_part_module
from nearcast.ingest.csv_records import TextFormat
from nearcast.ingest.ingest_part import IngestJob, ingest_part, reject_rows
from nearcast.ingest.sources import Part, whole
from nearcast.spark.batch import ingest as ingest_module
from nearcast.spark.batch.ingest import IngestOptions, check_ingest, ingest, read_counts
from nearcast.tables import Dialect, read_messages
from nearcast.tables.ids import INT64
from nearcast.text.analyser import Analyser
from nearcast.text.vocabulary import Vocabulary

SAMPLE = str(resources.files("nearcast.demo") / "sample" / "calgary_traffic_2024.csv.gz")
NAMES = ("id", "text", "lon", "lat", "time")
CELLS: dict[str, list[Any]] = {
    "id": [None, "x", "1.5", "99999999999999999999"],
    "lon": [None, "abc", "NaN", "inf", "200", "-181"],
    "lat": ["-90.5", "120", ""],
    "time": ["yesterday", "2024-13-01T00:00:00Z"],
}


def run(spark: Any, folder: Path, sources: list[str], kind: Any = "messages", **options: Any) -> dict[str, Any]:
    mapping = options.pop("mapping", {})
    out, rejects = str(folder / "out"), str(folder / "rejects")
    counts = ingest(spark, sources, kind, mapping, out, rejects, options=IngestOptions(**options))
    assert counts["read"] == counts["accepted"] + counts["rejected"] == clean(folder).num_rows + bad(folder).num_rows
    assert sum(counts["by_reason"].values()) == counts["rejected"]
    assert read_counts(out) == counts
    return counts


def clean(folder: Path) -> pa.Table:
    return pq.read_table(folder / "out").sort_by("id")


def bad(folder: Path) -> pa.Table:
    return pq.read_table(folder / "rejects").sort_by([("source", "ascending"), ("position", "ascending")])


def a_dirty_table(n: int, seed: int) -> list[dict[str, Any]]:
    """Rows of which every fifth has a fault or two, and ids from a small pool."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        row: dict[str, Any] = {
            "id": str(rng.integers(0, 2 * n)),
            "text": " ".join(rng.choice(["Fog", "ICE,", 'the "A4"', "crash", "straße", "雪道"], rng.integers(0, 5))),
            "lon": repr(float(rng.uniform(-180, 180))),
            "lat": repr(float(rng.uniform(-90, 90))),
            "time": "2024-01-01T00:00:00Z",
        }
        for name in rng.choice(list(CELLS), rng.choice([0, 0, 0, 1, 2]), replace=False):
            row[str(name)] = rng.choice(np.array(CELLS[str(name)], object))
        rows.append({name: value or None for name, value in row.items()})
    return rows


def as_csv(rows: list[dict[str, Any]]) -> bytes:
    out = io.StringIO()
    writer = csv.DictWriter(out, NAMES, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def test_dirty_files_of_all_formats_give_what_the_library_gives(spark: Any, tmp_path: Path) -> None:
    rows = a_dirty_table(400, seed=1)
    cut = [rows[:150], rows[150:200], rows[200:300], rows[300:]]
    files = [tmp_path / name for name in ("a.csv", "b.csv.gz", "c.jsonl", "d.parquet")]
    files[0].write_bytes(as_csv(cut[0]))
    files[1].write_bytes(gzip.compress(as_csv(cut[1])))
    files[2].write_bytes("\n".join(json.dumps(row) for row in cut[2]).encode())
    schema = pa.schema([(name, pa.string()) for name in NAMES])
    pq.write_table(pa.Table.from_pylist(cut[3], schema), files[3], row_group_size=20)

    whole = pa.Table.from_pylist(rows, schema).rename_columns(["id", "text", "x", "y", "time"])
    dialect = Dialect(Analyser(), Space.of(None), "skip", id_type=INT64)
    read = read_messages(whole, Vocabulary(), dialect)
    expected, refused = read.batch, read.rejects
    counts = run(spark, tmp_path, [str(tmp_path)], part_bytes=3000)

    found = clean(tmp_path)
    order = np.argsort(expected.ids)
    assert counts["parts"] > 4 and counts["read"] == 400 and 50 < counts["accepted"] < 350
    assert found["id"].to_pylist() == expected.ids[order].tolist()
    assert np.array_equal(np.column_stack([found["x"], found["y"]]), expected.boxes[order][:, :2])
    texts = {int(row["id"]): row["text"] for row in reversed(rows) if row["id"] and row["id"].isdigit()}
    assert found["tokens"].to_pylist() == [Analyser().tokens(texts[number] or "") for number in found["id"].to_pylist()]
    starts = {"a.csv": -2, "b.csv.gz": 148, "c.jsonl": 199, "d.parquet": 299}
    rejected = {starts[Path(row["source"]).name] + row["position"]: row["reason"] for row in bad(tmp_path).to_pylist()}
    expected = {row["row"] - 1: row["reason"] for row in refused.to_pylist()}
    assert rejected.keys() == expected.keys() and len(rejected) == counts["rejected"]
    # A record that is bad for two reasons may have the other reason if it repeats an id of another part.
    differ = [row for row in rejected if rejected[row] != expected[row]]
    assert all("is already in this table" in expected[row] for row in differ) and len(differ) < 40


def test_the_shipped_sample_is_accepted_whole_by_any_number_of_parts(spark: Any, tmp_path: Path) -> None:
    plain = tmp_path / "plain.csv"
    plain.write_bytes(gzip.decompress(Path(SAMPLE).read_bytes()))
    counts = run(spark, tmp_path, [str(plain)], part_bytes=100_000)
    once = clean(tmp_path)
    assert counts["rejected"] == 0 and counts["parts"] > 5
    assert once.schema.names == ["id", "text", "tokens", "x", "y", "time"]
    assert once["tokens"].combine_chunks() == Analyser().tokens_batch(once["text"])
    again = run(spark, tmp_path, [SAMPLE], mapping={"text": "text"})
    assert again["parts"] == 1 and clean(tmp_path).equals(once)


def test_records_over_line_ends_keep_a_large_file_whole(spark: Any, tmp_path: Path) -> None:
    rows = [f'{k},"word\n{k}",1,2\n' for k in range(500)]
    (tmp_path / "a.csv").write_text("id,text,x,y\n" + "".join(rows))
    counts = run(spark, tmp_path, [str(tmp_path / "a.csv")], part_bytes=1000)
    assert (counts["read"], counts["rejected"], counts["parts"]) == (500, 0, 1)
    assert clean(tmp_path)["tokens"].to_pylist() == [["word", str(k)] for k in range(500)]


def test_broken_files_cost_one_record_each_and_made_ids_are_unique(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text,x,y\nfog,1,2\nice,3,4\n")
    (tmp_path / "b.csv").write_bytes("text,x,y\nfog,1,2\n".encode("utf-16"))
    (tmp_path / "c.csv.gz").write_bytes(b"no gzip")
    (tmp_path / "d.parquet").write_bytes(b"no parquet")
    (tmp_path / "e.csv").write_bytes(b"")
    (tmp_path / "f.csv").write_text("text,lon\nfog,1\n")
    counts = run(spark, tmp_path, [str(tmp_path / "*.*")], make_ids=True)
    assert (counts["read"], counts["accepted"]) == (6, 2)
    assert clean(tmp_path)["id"].to_pylist() == [2, 3]
    assert [Path(row["source"]).name for row in bad(tmp_path).to_pylist()] == [
        "b.csv",
        "c.csv.gz",
        "d.parquet",
        "f.csv",
    ]


def test_subscriptions_keep_the_columns_of_the_contract(spark: Any, tmp_path: Path) -> None:
    circle = json.dumps({"type": "Point", "coordinates": [0, 0]})
    lines = [
        {"id": 1, "want": "fog AND NOT ice", "xmin": 0, "ymin": 0, "xmax": 1, "ymax": 1, "k": 5},
        {"id": 2.0, "want": "fog OR", "xmin": 0, "ymin": 0, "xmax": 1, "ymax": 1},
        {"id": 3, "want": "fog", "xmin": 2, "ymin": 0, "xmax": 1, "ymax": 1},
        {"id": 4, "tokens": ["fog"], "region": json.loads(circle), "kind": "top", "alpha": "0.5", "k": 3},
        {"id": 5, "want": "fog", "region": "nowhere"},
        {"id": 6, "want": "fog", "region": circle, "kind": "loud"},
        {"id": 7, "want": "fog", "region": circle, "k": "many"},
        {"id": 1, "want": "fog", "region": circle},
        {"id": 8, "want": "fog", "region": circle, "expires": "2030-01-01"},
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    mapping = {"expression": "want", "tokens": "tokens"}
    counts = run(spark, tmp_path, [str(tmp_path / "a.jsonl")], "subscriptions", mapping=mapping)
    found = clean(tmp_path)
    assert found["id"].to_pylist() == [1, 4, 8] and counts["rejected"] == 6
    assert found["k"].type == pa.int32() and found["k"].to_pylist() == [5, 3, None]
    assert found["alpha"].to_pylist() == [None, 0.5, None] and found["expires"].type == pa.timestamp("us", "UTC")
    assert [row["column"] for row in bad(tmp_path).to_pylist()] == ["expression", "xmin", "region", "kind", "k", "id"]
    from nearcast import build_index

    assert len(build_index(found.filter(pc.field("id") != 4), "brute")) == 2


def test_a_part_that_is_read_again_leaves_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.csv").write_text("id,text,x,y\n1,fog,2,3\n2,ice,999,3\n1,ice,2,3\n5,ice,2,3\n")
    places = (str(tmp_path / "out"), str(tmp_path / "bad"))
    found, rules = check_ingest([str(tmp_path / "a.csv")], "messages", {}, *places, IngestOptions())
    folders = [tmp_path / name for name in ("accepted", "rejects", "seen")]
    for folder in folders:
        folder.mkdir()
    job = IngestJob(rules, TextFormat(), False, *map(str, folders))
    part = Part(3, (whole(found[0]),))
    once = ingest_part(part, job)
    before = {file: file.read_bytes() for folder in folders for file in folder.iterdir()}
    assert ingest_part(part, job) == once and (once.read, once.accepted, once.rejected) == (4, 2, 2)
    duplicates = pq.read_table(folders[2]).slice(2)  # the record with id 5, as if an earlier part had it
    assert reject_rows(duplicates, job, [found[0].path]) == reject_rows(duplicates, job, [found[0].path])
    assert pq.read_table(folders[0] / "part-00003-first.parquet")["id"].to_pylist() == [1]
    rejected = pq.read_table(folders[1] / "part-00003-late.parquet").to_pylist()[0]
    assert (rejected["position"], rejected["reason"]) == (5, "id 5 is already in this table; ids must differ")
    assert all(file.read_bytes() == content for file, content in before.items())
    monkeypatch.setattr(ingest_part_module, "validate_records", None)
    with pytest.raises(TypeError):
        ingest_part(part._replace(number=4), job)
    assert sum(len(list(folder.iterdir())) for folder in folders) == 5


def test_bad_arguments_are_refused_before_spark_runs(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,text,lon,lat\n1,fog,2,3\n")
    source, out, rejects = [str(tmp_path / "a.csv")], str(tmp_path / "out"), str(tmp_path / "rejects")
    for mapping, options, reason in (
        ({"text": "txt"}, {}, "no file has a column 'txt'"),
        ({"word": "text"}, {}, "have no column 'word'"),
        ({}, {"encoding": "utf-16"}, "convert them to UTF-8"),
        ({}, {"encoding": "utf-99"}, "no encoding"),
        ({}, {"format": "xml"}, "no format"),
        ({}, {"space": (1, 1, 0, 0)}, "space needs xmin < xmax"),
    ):
        with pytest.raises(InvalidInput, match=reason):
            ingest(None, source, "messages", mapping, out, rejects, options=IngestOptions(**options))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="within the other"):
        ingest(None, source, "messages", {}, out, f"{out}/rejects")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="holds other files"):
        ingest(None, source, "messages", {}, str(tmp_path), f"{tmp_path}-rejects")  # type: ignore[arg-type]
    assert (tmp_path / "a.csv").exists() and not Path(out).exists()


def test_counts_that_do_not_reconcile_publish_nothing(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.csv").write_text("id,text,x,y\n1,fog,2,3\n")
    monkeypatch.setattr(ingest_module, "_reject_duplicate_ids", lambda *_: 1)
    with pytest.raises(NearcastError, match="do not reconcile"):
        run(spark, tmp_path, [str(tmp_path / "a.csv")])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv"]


@pytest.mark.data
def test_real_data_is_accepted_or_accounted_for(spark: Any, tmp_path: Path, large_data: Path) -> None:
    airbnb, flights = (str(next(large_data.glob(f"{name}*"))) for name in ("airbnb", "flights"))
    counts = run(spark, tmp_path, [airbnb], mapping={"time": "ts"})
    assert (counts["read"], counts["rejected"]) == (48_879, 0)
    assert clean(tmp_path)["time"].null_count < 48_879
    moving = run(spark, tmp_path, [flights], mapping={"time": "ts"})
    assert moving["read"] == 139_098 and moving["accepted"] < 1000  # ids of aircraft are no numbers, and repeat

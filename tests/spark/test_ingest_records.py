"""Raw files become rows and faults, none vanishes: the readers by themselves, without Spark."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.errors import InvalidInput
from nearcast.ingest import csv_records, lines
from nearcast.ingest.csv_records import TextFormat, csv_blocks
from nearcast.ingest.ingest_part import reason_kind
from nearcast.ingest.json_records import json_blocks
from nearcast.ingest.lines import survey
from nearcast.ingest.mapping import Columns, resolve_columns
from nearcast.ingest.parquet_records import parquet_blocks
from nearcast.ingest.records import Block, BrokenFile
from nearcast.ingest.sources import Source, Split, find_sources, ranges_of, row_group_splits

COLUMNS = Columns("messages", {name: (name,) for name in ("id", "text", "x", "y")}, frozenset({"id", "text", "x", "y"}))


def split_of(path: Path, content: bytes) -> Split:
    path.write_bytes(content)
    return Split(0, str(path), "csv", 0, None if path.suffix == ".gz" else len(content))


def read_csv(path: Path, content: bytes, columns: Columns = COLUMNS, **dialect: object) -> Block:
    """All blocks as one, with the promise checked that the ingest relies on."""
    return together(list(csv_blocks(split_of(path, content), columns, TextFormat(**dialect))))  # type: ignore[arg-type]


def together(blocks: list[Block]) -> Block:
    table = pa.concat_tables([block.table for block in blocks]) if blocks else pa.table({})
    positions = np.concatenate([block.positions for block in blocks]) if blocks else np.empty(0, np.int64)
    made = Block(table, positions, [f for block in blocks for f in block.faults], sum(b.n_read for b in blocks))
    assert made.n_read == made.table.num_rows + len(made.faults) == len(made.positions) + len(made.faults)
    return made


def told(block: Block) -> dict[int, str]:
    return {fault.position: fault.reason for fault in block.faults}


def test_a_plain_file_is_all_rows(tmp_path: Path) -> None:
    block = read_csv(tmp_path / "a.csv", b"id,text,x,y\n1,one,2,3\n2,,4,5\n")
    assert block.table.to_pylist() == [
        {"id": "1", "text": "one", "x": "2", "y": "3"},
        {"id": "2", "text": None, "x": "4", "y": "5"},
    ]
    assert block.positions.tolist() == [2, 3] and block.faults == []


def test_a_mark_of_byte_order_and_dos_line_ends_leave_no_trace(tmp_path: Path) -> None:
    block = read_csv(tmp_path / "a.csv", b"\xef\xbb\xbfid,text,x,y\r\n1,one,2,3\r\n")
    assert block.table["id"].to_pylist() == ["1"] and block.table["y"].to_pylist() == ["3"]


def test_every_broken_line_is_told_by_number_and_spares_its_neighbours(tmp_path: Path) -> None:
    content = (
        b'id,text,x,y\n1,good,2,3\n\n2,too,few\n3,too,many,4,5\n4,"open,2,3\n5,\xff\xe9,2,3\n6,"a"b,2,3\n7,x\ry,1,1\n'
    )
    content += b"8,end,2,3"
    block = read_csv(tmp_path / "a.csv", content)
    assert block.table["id"].to_pylist() == ["1", "8"] and block.positions.tolist() == [2, 10]
    assert {position: reason[:22] for position, reason in told(block).items()} == {
        3: "an empty line",
        4: "the line has 3 fields,",
        5: "the line has 5 fields,",
        6: "a quote is opened and ",
        7: "the line is not utf-8:",
        8: "the quotes are broken:",
        9: "a carriage return with",
    }
    assert next(fault.record for fault in block.faults if fault.position == 7) == "5,\\xff\\xe9,2,3"


def test_a_record_over_line_ends_within_quotes_is_one_record(tmp_path: Path) -> None:
    block = read_csv(tmp_path / "a.csv", b'id,text,x,y\n1,"two\nlines ""quoted""",2,3\n2,next,4,5\n')
    assert block.table["text"].to_pylist() == ['two\nlines "quoted"', "next"]
    assert block.positions.tolist() == [2, 4] and block.faults == []


def test_a_quote_that_never_closes_costs_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_records, "MOST_JOINED", 5)
    rows = b"".join(b"%d,word,2,3\n" % k for k in range(2, 50))
    block = read_csv(tmp_path / "a.csv", b'id,text,x,y\n1,"open,2,3\n' + rows)
    assert block.table.num_rows == 48 and list(told(block)) == [2]


@pytest.mark.parametrize("block_bytes", [1, 7, 16, 1000])
def test_the_size_of_blocks_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int) -> None:
    monkeypatch.setattr(lines, "BLOCK_BYTES", block_bytes)
    content = b'\xef\xbb\xbfid,text,x,y\r\n1,"a\nb",2,3\n2,"open,2,3\n3,\xc3\xa9,2,3\n4,\xff,2,3\n\n5,"z",1,1'
    block = read_csv(tmp_path / "a.csv", content)
    assert block.table["id"].to_pylist() == ["1", "3", "5"] and block.positions.tolist() == [2, 5, 8]
    assert sorted(told(block)) == [4, 6, 7]


def test_a_line_past_all_bounds_is_a_fault_and_not_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LONGEST_LINE", 100)
    monkeypatch.setattr(lines, "BLOCK_BYTES", 64)
    block = read_csv(tmp_path / "a.csv", b"id,text,x,y\n1," + b"w" * 5000 + b",2,3\n2,fine,4,5\n")
    assert block.table["id"].to_pylist() == ["2"] and told(block) == {2: "a line longer than 100 bytes"}
    assert len(block.faults[0].record) < 200


def test_a_broken_gzip_gives_what_came_before_it_breaks(tmp_path: Path) -> None:
    whole = gzip.compress(b"id,text,x,y\n" + b"".join(b"%d,%x,2,3\n" % (k, k**9) for k in range(200_000)))
    split = split_of(tmp_path / "a.csv.gz", whole[: len(whole) * 9 // 10])
    blocks = []
    with pytest.raises(BrokenFile, match="cannot be read on"):
        for block in csv_blocks(split, COLUMNS, TextFormat()):
            blocks.append(block)
    found = together(blocks)
    assert found.table.num_rows > 1000 and found.faults == []


def test_a_file_in_utf_16_is_named_as_such(tmp_path: Path) -> None:
    with pytest.raises(BrokenFile, match="UTF-16"):
        read_csv(tmp_path / "a.csv", "id,text,x,y\n1,one,2,3\n".encode("utf-16"))


def test_other_encodings_tabs_and_absent_headers_are_options(tmp_path: Path) -> None:
    content = "1\tcafé\t2\t3\n".encode("latin-1")
    block = read_csv(tmp_path / "a.tsv", content, encoding="latin-1", delimiter="\t", header=("id", "text", "x", "y"))
    assert block.table["text"].to_pylist() == ["café"] and block.positions.tolist() == [1]


def test_a_file_whose_header_lacks_a_column_rejects_each_of_its_rows(tmp_path: Path) -> None:
    block = read_csv(tmp_path / "a.csv", b"id,text,x\n1,one,2\n2,two,3\n")
    assert set(told(block).values()) == {"the file has no column 'y'; it has id, text, x"} and block.n_read == 2
    twice = read_csv(tmp_path / "b.csv", b"id,text,x,y,x\n1,one,2,3,4\n")
    assert told(twice)[2].startswith("the file has two columns 'x'")


def test_an_empty_file_and_one_of_blank_lines_have_no_rows(tmp_path: Path) -> None:
    assert read_csv(tmp_path / "a.csv", b"").n_read == 0
    assert read_csv(tmp_path / "b.csv", b"\n\n").n_read == 2
    below = read_csv(tmp_path / "c.csv", b"\nid,text,x,y\n1,one,2,3\n")
    assert below.table.num_rows == 1 and told(below) == {1: "an empty line"}


CELLS = st.sampled_from(["", "a", '"', '""', '"a', 'a"', '"a"', "\n", "\r\n", ",", "é", "\x00", "\x85", "\u2028"])


@given(pieces=st.lists(CELLS, max_size=30), size=st.sampled_from([1, 5, 4096]))
def test_whatever_the_bytes_every_line_is_in_a_record_or_a_fault(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[str], size: int
) -> None:
    path = tmp_path_factory.mktemp("any") / "a.csv"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK_BYTES", size)
        block = read_csv(path, ("id,text,x,y\n" + "".join(pieces)).encode())
    seen = [*block.positions.tolist(), *told(block)]
    assert len(set(seen)) == len(seen)


@given(
    rows=st.lists(st.lists(st.text("ab\",\n é'\x00", max_size=6), min_size=4, max_size=4), max_size=8),
    size=st.sampled_from([3, 4096]),
)
def test_what_the_csv_module_writes_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], size: int
) -> None:
    import csv
    import io

    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([["id", "text", "x", "y"], *rows])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK_BYTES", size)
        block = read_csv(tmp_path_factory.mktemp("any") / "a.csv", out.getvalue().encode())
    found = [[value or "" for value in row.values()] for row in block.table.to_pylist()]
    assert found == rows and block.faults == []


def read_json(path: Path, content: bytes, columns: Columns = COLUMNS) -> Block:
    return together(list(json_blocks(split_of(path, content), columns, "utf-8")))


def test_json_numbers_stay_the_text_that_they_are(tmp_path: Path) -> None:
    line = b'{"id": 9007199254740993, "text": "n", "x": 0.1000000000000000055511151231257827, "y": NaN}\n'
    assert read_json(tmp_path / "a.jsonl", line).table.to_pylist() == [
        {"id": "9007199254740993", "text": "n", "x": "0.1000000000000000055511151231257827", "y": "NaN"}
    ]


def test_broken_json_is_told_line_by_line(tmp_path: Path) -> None:
    deep = b"[" * 100_000
    content = (
        b'{"id": 1, "text": "t", "x": 1, "y": 2}\n{"id": 2,\n\n[1]\n{"id": 3, "text": ["l"], "x": 1, "y": 1}\n'
        b'{"id": 4, "text": "\\ud800", "x": 1, "y": 1}\n{"id": 5, "text": "\xff"}\n' + deep + b'\n{"id": 6, "x": 1}\n'
    )
    block = read_json(tmp_path / "a.jsonl", content)
    assert block.table["id"].to_pylist() == ["1"]
    assert {position: reason[:21] for position, reason in told(block).items()} == {
        2: "the line is no JSON: ",
        3: "an empty line",
        4: "the line is no JSON o",
        5: "a list where one valu",
        6: "the text holds half a",
        7: "the line is not utf-8",
        8: "the line is JSON nest",
        9: "the object has no key",
    }


def test_json_keys_within_objects_tokens_and_regions_are_understood(tmp_path: Path) -> None:
    sources = {"id": ("id",), "tokens": ("words",), "x": ("geo.lon",), "region": ("where",)}
    region = {"type": "Point", "coordinates": [1.5, 2]}
    line = json.dumps({"id": 1, "words": ["a", 2, None], "geo": {"lon": 3.5}, "where": region})
    block = read_json(tmp_path / "a.jsonl", line.encode(), Columns("subscriptions", sources, frozenset()))
    row = block.table.to_pylist()[0]
    assert row["tokens"] == ["a", "2", None] and row["x"] == "3.5" and json.loads(row["region"]) == region


def test_parquet_keeps_its_types_and_refuses_what_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    columns = {"id": [1, 2], "text": pa.array([b"good", b"\xff"], pa.binary()), "x": [1.0, 2.0], "y": [3, 4]}
    pq.write_table(pa.table(columns), path)
    block = together(list(parquet_blocks(Split(0, str(path), "parquet"), COLUMNS)))
    assert block.table.to_pylist() == [{"id": 1, "text": "good", "x": 1.0, "y": 3}]
    assert told(block) == {2: "the text is not UTF-8"} and block.faults[0].record == "\\xff"


def test_a_parquet_file_that_is_none_breaks(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 but not really")
    with pytest.raises(BrokenFile, match="no Parquet"):
        list(parquet_blocks(Split(0, str(tmp_path / "a.parquet"), "parquet"), COLUMNS))


def test_row_groups_make_splits_with_their_row_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({name: list(range(100)) for name in ("id", "text", "x", "y")}), path, row_group_size=10)
    splits = row_group_splits(Source(0, str(path), "parquet", path.stat().st_size), path.stat().st_size // 4)
    assert len(splits) > 2
    blocks = [block for split in splits for block in parquet_blocks(split, COLUMNS)]
    assert together(blocks).positions.tolist() == list(range(1, 101))


@given(texts=st.lists(st.sampled_from(["", "a", "bb", 'x"y', '"q"', "long" * 5]), max_size=25), size=st.integers(1, 40))
def test_ranges_of_bytes_cover_every_line_once(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], size: int
) -> None:
    path = tmp_path_factory.mktemp("any") / "a.csv"
    path.write_bytes("\n".join(texts).encode())
    n_bytes = path.stat().st_size
    ranges = ranges_of(Source(0, str(path), "csv", n_bytes), size)
    found = [survey(one.path, one.start, one.stop, ",") for one in ranges]
    if found:
        assert sum(one.n_lines for one in found) == path.read_bytes().removesuffix(b"\n").count(b"\n") + 1
        starts = [one.start for one in found if one.n_lines]
        assert all(start == 0 or path.read_bytes()[start - 1 : start] == b"\n" for start in starts)
        assert not any(one.leaves_open for one in found)


def test_a_survey_sees_lines_that_end_within_quotes(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'1,5" pipe\n2,"over\ntwo"\n')
    assert not survey(str(path), 0, 10, ",").leaves_open and survey(str(path), 10, 12, ",").leaves_open


def test_sources_are_found_in_folders_and_patterns_once_and_in_order(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv.gz", "c.jsonl", "_notes.txt", ".hidden.csv"):
        (tmp_path / name).write_bytes(b"")
    found = find_sources([str(tmp_path / "*.jsonl"), str(tmp_path), str(tmp_path / "b.csv")], None)
    assert [(Path(source.path).name, source.format) for source in found] == [
        ("c.jsonl", "jsonl"),
        ("a.csv.gz", "csv"),
        ("b.csv", "csv"),
    ]
    with pytest.raises(InvalidInput, match="no such file"):
        find_sources([str(tmp_path / "z*.csv")], None)
    (tmp_path / "readme.md").write_bytes(b"")
    with pytest.raises(InvalidInput, match="no known ending"):
        find_sources([str(tmp_path)], None)


def test_the_mapping_takes_what_is_named_and_completes_what_is_not() -> None:
    there = ["id", "title", "body", "lon", "lat", "xmin", "ymin", "xmax", "ymax", "time"]
    columns = resolve_columns("messages", {"text": "title+body", "x": "lon", "lat": "lat"}, there)
    assert columns.sources == {
        "id": ("id",),
        "text": ("title", "body"),
        "x": ("lon",),
        "y": ("lat",),
        "time": ("time",),
    }
    boxes = resolve_columns("messages", {"text": "body"}, there)
    assert "xmin" in boxes.sources and "x" not in boxes.sources
    for mapping, reason in (({}, "need words"), ({"text": "body", "words": "x"}, "no column 'words'")):
        with pytest.raises(InvalidInput, match=reason):
            resolve_columns("messages", mapping, there)
    with pytest.raises(InvalidInput, match="need ids"):
        resolve_columns("messages", {"text": "t", "x": "x", "y": "y"}, ["t", "x", "y"])
    assert (
        "id"
        not in resolve_columns("messages", {"text": "t", "x": "x", "y": "y"}, ["t", "x", "y"], make_ids=True).sources
    )


def test_reasons_of_a_kind_are_counted_together() -> None:
    assert reason_kind("x", "x is -200.5, not 'int64'; at 7") == reason_kind("x", 'x is 1e9, not "it\'s"; at 81')
    assert reason_kind(None, "no whole number within int64\n  ^") == "no whole number within int64"

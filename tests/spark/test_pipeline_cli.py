"""`nearcast pipeline` and `nearcast demo`, as typed: exact, resumable, and one line on bad input."""

from __future__ import annotations

import base64
import csv
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import Result

import nearcast as nc
from nearcast.arrays.jit import JIT_DISABLED
from nearcast.demo import pipeline as demo_pipeline
from nearcast.demo.demo_subscriptions import (
    DEMO_SUBSCRIPTIONS,
    LICENCE,
    REMOVED_ID,
    sample_messages,
    subscriptions_table,
)
from nearcast.tables import as_arrow
from spark.typed_commands import ORDER, nearcast, run_json

N_DRAWN = "20" if JIT_DISABLED else "300"
EVERY = 40 if JIT_DISABLED else 5  # of the sample's messages
BOX = {"xmin": 0, "ymin": 0, "xmax": 4, "ymax": 4}
N_MESSAGES = len(range(0, 7493, EVERY))
STEPS = ["ingest messages", "ingest subscriptions", "vocabulary", "statistics", "build", "match", "stream"]

Run = Callable[..., Result]


def pairs(folder: Path) -> pa.Table:
    return pq.read_table(folder, columns=["message", "subscription"]).sort_by(ORDER).combine_chunks()


@pytest.fixture(scope="module")
def year(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A part of the sample, as a file, in place of the sample."""
    file = tmp_path_factory.mktemp("year") / "some.csv"
    part = sample_messages().take(pa.array(range(0, 7493, EVERY)))
    with file.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(part.column_names)
        writer.writerows(zip(*(part[name].cast(pa.string()).to_pylist() for name in part.column_names), strict=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo_pipeline, "sample_path", lambda: str(file))
        patch.setattr(demo_pipeline, "sample_messages", lambda: part)
        yield file


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "output"


@pytest.fixture(scope="module")
def demo(spark: Any, year: Path, out: Path) -> Any:
    return run_json("demo", "--out", out, "--subscriptions", N_DRAWN)


def test_the_demo_reports_what_each_step_did(demo: Any) -> None:
    assert list(demo["steps"]) == STEPS
    assert demo["steps"]["ingest messages"]["accepted"] == demo["messages"] == N_MESSAGES
    assert demo["subscriptions"] == int(N_DRAWN) + len(DEMO_SUBSCRIPTIONS)
    assert demo["steps"]["match"]["pairs"] == demo["deliveries"] > 0
    stream = demo["steps"]["stream"]
    assert stream["changed_subscriptions"] == 3 and 0 < stream["pairs_compared"] < demo["deliveries"]
    assert demo["checked_pairs"] > 0 and demo["stream_pairs_checked"] > 0
    assert not any(demo["steps"][name]["up_to_date"] for name in STEPS)


def test_the_demo_s_matches_are_the_library_s(demo: Any, out: Path, year: Path) -> None:
    messages = as_arrow(year)
    subscriptions = subscriptions_table(sample_messages().take(pa.array(range(0, 7493, EVERY))), int(N_DRAWN))
    wanted = nc.build_index(subscriptions, "pyramid", extra=["name"]).match(messages)
    assert pairs(out / "matches").equals(wanted)
    got = pairs(out / "stream" / "matches")
    assert 0 < got.filter(pa.compute.equal(got["subscription"], REMOVED_ID)).num_rows, "it went only in mid-stream"


def test_the_demo_s_report_has_pictures_and_the_licence(demo: Any, out: Path) -> None:
    page = (out / "report.html").read_text()
    pictures = re.findall(r'src="data:image/png;base64,([^"]+)"', page)
    assert len(pictures) >= 3
    assert all(base64.b64decode(picture).startswith(b"\x89PNG") for picture in pictures)
    assert LICENCE in page and "http" not in page and all(each.name in page for each in DEMO_SUBSCRIPTIONS)


def test_a_second_run_does_nothing_again(demo: Any, out: Path) -> None:
    again = run_json("demo", "--out", out, "--subscriptions", N_DRAWN)
    assert all(again["steps"][name]["up_to_date"] for name in STEPS)
    assert again["deliveries"] == demo["deliveries"]


def test_a_change_redoes_what_depends_on_it(demo: Any, out: Path, tmp_path: Path) -> None:
    index, messages = out / "index", out / "messages"
    command = ["pipeline", "match", "--index", index, "--messages", messages, "--out", tmp_path / "m"]
    first = run_json(*command)
    assert not first["up_to_date"] and first["pairs"] == demo["deliveries"]
    assert run_json(*command)["up_to_date"]
    other = run_json(*command, "--layout", "sharded")
    assert not other["up_to_date"] and pairs(tmp_path / "m").equals(pairs(out / "matches"))


def test_people_see_a_table_and_what_is_up_to_date(demo: Any, out: Path, year: Path) -> None:
    done = nearcast("demo", "--out", out, "--subscriptions", N_DRAWN)
    assert done.exit_code == 0, done.output
    shown = " ".join(done.stdout.split())
    for words in ("Some deliveries", "messages per second", "stream = batch", "same as brute", LICENCE):
        assert words in shown


def test_steps_by_hand_come_to_the_same(demo: Any, out: Path, tmp_path: Path, year: Path) -> None:
    columns = "id=id,text=text,x=lon,y=lat,time=time"
    table, index = tmp_path / "messages", tmp_path / "index"
    counts = run_json("pipeline", "ingest", year, "--kind", "messages", "--map", columns, "--out", table)
    assert counts["read"] == counts["accepted"] + counts["rejected"] == N_MESSAGES
    run_json("pipeline", "vocabulary", "--messages", table, "--out", tmp_path / "vocabulary")
    built = run_json("pipeline", "build", "--subscriptions", out / "subscriptions", "--out", index, "--shards", 3)
    assert built["n_shards"] == 3
    stream = ["pipeline", "stream", "--index", index, "--messages", table, "--once"]
    streamed = run_json(*stream, "--out", tmp_path / "delivered", "--checkpoint", tmp_path / "checkpoint")
    assert streamed["pairs"] == demo["deliveries"] and pairs(tmp_path / "delivered").equals(pairs(out / "matches"))


def test_a_pipeline_file_runs(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "m.jsonl").write_text(
        "".join(json.dumps({"n": k, "body": f"Wort{k % 3} hier", "lon": k, "lat": 1}) + "\n" for k in range(9))
        + "{broken\n"
    )
    wanted = [{"id": 1, "expression": "wort1", "region": "world"}]
    wanted += [{"id": 2, "tokens": ["wort2", "hier"], "kind": "rank", "alpha": 0.25, "threshold": 0.6, **BOX}]
    wanted += [
        {"id": 3, "tokens": ["wort2"], "kind": "top", "k": 5, "x": 1, "y": 1},
        {"id": 4, "tokens": [], "kind": "rank", **BOX},
    ]
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(row) + "\n" for row in wanted))
    (tmp_path / "p.toml").write_text(
        '[messages]\nsources = ["m.jsonl"]\nmap = { id = "n", text = "body", x = "lon", y = "lat" }\n'
        '[subscriptions]\nsources = ["s.jsonl"]\n[stream]\nfiles = 2\n'
    )
    done = run_json("pipeline", "run", tmp_path / "p.toml", "--out", tmp_path / "made")
    steps, made = done["steps"], tmp_path / "made"
    assert steps["ingest messages"]["rejected"] == 1
    assert [reason[:23] for reason in steps["ingest subscriptions"]["by_reason"]] == ["threshold: no threshold"]
    assert (steps["build"]["ranked"], steps["build"]["rejected"]) == (1, 1), "kind top is not served"
    weights = nc.Vocabulary.open(made / "vocabulary")
    subscriptions = {name: [row.get(name) for row in wanted[:2]] for name in {**wanted[0], **wanted[1]}}
    table = nc.build_index(subscriptions, weights=weights).match(pq.read_table(made / "messages"))
    assert table["subscription"].to_pylist().count(2) == steps["match"]["pairs"] - 3 > 0
    for name in ("matches", "stream/matches"):
        found = pq.read_table(made / name, columns=["message", "subscription", "score"])
        assert found.sort_by(ORDER).combine_chunks().equals(table.combine_chunks()), name
    assert (tmp_path / "made" / "report.html").exists()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["match", "--index", "{here}", "--messages", "{here}", "--out", "{here}/o"], "is not an index made by"),
        (["match", "--index", "{here}/no", "--messages", "{here}", "--out", "{here}/o"], "no such file or folder"),
        (["ingest", "{here}/*.csv", "--kind", "messages", "--out", "{here}/o"], "no such file matches"),
        (["ingest", "{here}", "--kind", "messages", "--map", "text", "--out", "{here}/o"], "name=column"),
        (["ingest", "{here}", "--kind", "messages", "--map", "x=a,x=b", "--out", "{here}/o"], "twice"),
        (["build", "--subscriptions", "{here}", "--out", "{here}/o", "--space", "1,2"], "four numbers"),
        (["run", "{here}/none.toml"], "cannot be read as TOML"),
        (["size", "-n", "0", "-r", "1"], "above 0"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(spark: Any, tmp_path: Path, arguments: list[str], reason: str) -> None:
    done = nearcast("pipeline", *(argument.format(here=tmp_path) for argument in arguments))
    assert done.exit_code == 2 and reason in done.stderr, done.output
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_table_that_spark_cannot_read_is_one_line(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_text("no Parquet")
    done = nearcast("pipeline", "vocabulary", "--messages", tmp_path / "bad.parquet", "--out", tmp_path / "v")
    assert done.exit_code == 2 and len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert "Traceback" not in done.stderr and "\tat " not in done.stderr


def test_size_follows_the_load() -> None:
    small = run_json("pipeline", "size", "-n", 1e6, "-r", 1000)
    large = run_json("pipeline", "size", "-n", 1e9, "-r", 50_000)
    assert small["layout"] == "replicated" and large["layout"] == "sharded"
    assert large["cores"] > small["cores"] and large["hosts"] > small["hosts"] == 1
    assert large["bytes_per_host"] <= 64e9

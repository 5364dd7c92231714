"""`nearcast move`: a replay from three files, its summary, and its errors."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from nearcast.cli.main import app

RUNNER = CliRunner()


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    tables = {
        "subscriptions": 'id,expression,region\n1,rain,"circle(0, 0, 50km)"\n2,snow,world\n',
        "messages": "id,text,x,y,time\n7,rain,1,0,2026-01-01T00:00:05Z\n8,Snow,9,9,2026-01-01T00:00:10Z\n",
        "tracks": "id,time,x,y\n1,2026-01-01T00:01:00Z,1,0\n1,2026-01-01T00:02:00Z,5,0\n",
    }
    for name, text in tables.items():
        (tmp_path / f"{name}.csv").write_text(text)
    return [str(tmp_path / f"{name}.csv") for name in tables]


def test_a_replay(files: list[str], tmp_path: Path) -> None:
    out = tmp_path / "changes.parquet"
    done = RUNNER.invoke(app, ["move", *files, "--out", str(out), "--lifetime", "300", "--json"])
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout)
    assert {name: summary[name] for name in ("messages", "moves", "begun", "ceased", "live_messages")} == {
        "messages": 2,
        "moves": 2,
        "begun": 2,
        "ceased": 2,
        "live_messages": 0,
    }
    changes = pq.read_table(out).to_pylist()
    assert [(each["message"], each["subscription"], each["change"]) for each in changes] == [
        (8, 2, 1),
        (7, 1, 1),
        (7, 1, -1),
        (8, 2, -1),
    ]


def test_the_summary_is_readable(files: list[str]) -> None:
    done = RUNNER.invoke(app, ["move", *files])
    assert done.exit_code == 0 and "matches begun" in done.output


@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [
        (2, "id,time,x,y\n9,2026-01-01T00:01:00Z,1,0\n", "no subscription 9"),
        (2, "id,time,x,y\n1,2026-01-01T00:01:00Z,999,0\n", "longitude"),
        (2, "id,time,x,y\n2,2026-01-01T00:01:00Z,1,0\n", "cannot follow a point"),
        (1, "id,text,x,y,time\n7,rain,1,0,soon\n", "not a time"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(files: list[str], file: int, text: str, reason: str) -> None:
    Path(files[file]).write_text(text)
    done = RUNNER.invoke(app, ["move", *files])
    assert done.exit_code == 2 and reason in done.output and "Traceback" not in done.output


def test_a_result_needs_a_known_ending(files: list[str]) -> None:
    done = RUNNER.invoke(app, ["move", *files, "--out", "changes.txt"])
    assert done.exit_code == 2 and "no known ending" in done.output

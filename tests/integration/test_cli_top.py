"""`nearcast top`: a stream from files."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

import nearcast as nc
from nearcast.cli.main import app
from nearcast.tables import write_table

SUBSCRIPTIONS = pa.table(
    {"id": [1, 2], "tokens": ["pizza deal", "rain"], "x": [0.0, 5.0], "y": [0.0, 5.0], "k": [2, 1]}
)
TEXTS = ["Pizza!", "A pizza deal, today only", "Rain", "Rain again", "Sun", "Pizza deal deal"]
MESSAGES = pa.table(
    {
        "id": [10, 11, 12, 13, 14, 15],
        "text": TEXTS,
        "x": [0.0, 1.0, 5.0, 4.0, 0.0, 9.0],
        "y": [0.0, 1.0, 5.0, 4.0, 0.0, 9.0],
        "time": [f"2026-01-01T12:0{minute}:00Z" for minute in range(6)],
    }
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_table(SUBSCRIPTIONS, tmp_path / "subs.parquet")
    write_table(MESSAGES, tmp_path / "messages.csv")
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["top", "subs.parquet", "messages.csv", *words])


def test_changes_are_those_of_the_library(folder: Path) -> None:
    result = run("--window", "3", "--space", "0,0,10,10", "--out", "changes.parquet", "--json")
    assert result.exit_code == 0, result.output
    wanted = nc.TopK(SUBSCRIPTIONS, 3, space=(0, 0, 10, 10)).publish(MESSAGES)
    assert pq.read_table(folder / "changes.parquet").equals(wanted) and wanted.num_rows > 5
    summary = json.loads(result.output)
    assert (summary["messages"], summary["changes"], summary["window"]) == (6, wanted.num_rows, "3 messages")
    assert summary["lists"]["1"][0]["message"] == 15


@pytest.mark.usefixtures("folder")
def test_lists_are_printed_with_their_words() -> None:
    result = run("--window", "2min", "--max-dist", "1000")
    assert result.exit_code == 0, result.output
    assert "subscription 1: pizza deal" in result.output and "Pizza deal deal" in result.output


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--window", "0"), "window is 0"),
        (("--window", "later"), "window is 'later'"),
        ((), "no window"),
        (("--window", "3", "--method", "quick"), "no method 'quick' for kind 'top'"),
        (("--window", "3", "--option", "refill=never"), "refill is 'never'"),
        (("--window", "3", "--out", "changes.txt"), "changes.txt has no known ending"),
        (("--window", "3", "--max-dist", "-1"), "max_dist is -1.0"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(words: tuple[str, ...], reason: str) -> None:
    result = run(*words)
    assert result.exit_code == 2 and reason in result.stderr and len(result.stderr.strip().splitlines()) == 1

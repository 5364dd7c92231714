"""`nearcast match` with ranked subscriptions: weights in, scores out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner, Result

import nearcast as nc
from nearcast.cli import match_actions as match_module
from nearcast.cli.main import app
from nearcast.tables import as_arrow, write_table

SUBSCRIPTIONS = pa.table(
    {
        "id": [1, 2, 3],
        "tokens": ["pizza deal", "pizza", "rain"],
        "kind": ["rank", "match", "rank"],
        "threshold": [0.7, None, 0.9],
        "alpha": [0.5, None, None],
        "xmin": [0.0, 0.0, 5.0],
        "ymin": [0.0, 0.0, 5.0],
        "xmax": [1.0, 1.0, 6.0],
        "ymax": [1.0, 1.0, 6.0],
    }
)
MESSAGES = pa.table({"id": [20, 10], "text": ["Pizza!", "Rain"], "x": [0.5, 5.5], "y": [0.5, 5.5]})
WEIGHTS = pa.table({"token": ["pizza", "deal", "rain"], "weight": [3.0, 1.0, 1.0]})
FOUND = [(10, 3, 1.0), (20, 1, 0.875), (20, 2, None)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, table in (("subs", SUBSCRIPTIONS), ("messages", MESSAGES), ("weights", WEIGHTS)):
        write_table(table, f"{name}.csv")
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["match", *arguments])


def found_in(path: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in as_arrow(path).to_pylist()]


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_scores_are_written_beside_the_pairs(folder: Path, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(match_module, "CHUNK", 1)
    done = run("subs.csv", "messages.csv", "--weights", "weights.csv", "--out", f"out.{ending}", "--json")
    assert done.exit_code == 0, done.output
    assert found_in(f"out.{ending}") == FOUND and json.loads(done.stdout)["pairs"] == 3


def test_scores_are_shown(folder: Path) -> None:
    done = run("subs.csv", "messages.csv", "--weights", "weights.csv")
    assert done.exit_code == 0 and "score" in done.stdout and "0.875" in done.stdout


def test_a_saved_vocabulary_says_the_weights(folder: Path) -> None:
    words = nc.Vocabulary()
    words.count_documents(words.add(pa.array(["pizza", "deal", "pizza", "rain"])), np.array([0, 2, 3, 4]))
    words.save("words.vocabulary")
    assert run("subs.csv", "messages.csv", "--weights", "words.vocabulary", "--out", "out.parquet").exit_code == 0
    expected = nc.build_index(SUBSCRIPTIONS, weights=words).match(MESSAGES)
    assert as_arrow("out.parquet").equals(expected) and expected.num_rows == 2


def test_a_saved_index_keeps_its_weights(folder: Path) -> None:
    assert run("subs.csv", "messages.csv", "--weights", "weights.csv", "--save-index", "index").exit_code == 0
    assert run("index", "messages.csv", "--out", "out.csv").exit_code == 0 and found_in("out.csv") == FOUND
    again = run("index", "messages.csv", "--weights", "weights.csv")
    assert again.exit_code == 2 and "leave --method, --space, --option, --weights and --analyser out" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--weights", "nowhere.csv"), "nowhere.csv does not exist"),
        (("--weights", "messages.csv"), "weights need a column 'token'"),
        (("--method", "pyramid"), "does not serve subscriptions of kind 'rank'; those that do: auto, brute"),
        (("--option", "weights=1"), "'weights' is no option of a method"),
    ],
)
def test_bad_input_is_refused_in_one_line(folder: Path, arguments: tuple[str, ...], words: str) -> None:
    done = run("subs.csv", "messages.csv", *arguments)
    assert done.exit_code == 2 and words in done.stderr and len(done.stderr.splitlines()) == 1, done.output

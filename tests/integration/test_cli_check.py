"""`nearcast check`: sound files, damaged ones, and copies."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import nearcast as nc
from nearcast.cli.main import app
from nearcast.storage.index_folder import load_index, save_index

SUBSCRIPTIONS = {"id": [1, 2], "tokens": [["a"], ["b"]], "x": [0.0, 1.0], "y": [0.0, 1.0]}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    nc.build_index(SUBSCRIPTIONS, "brute").save(tmp_path / "all" / "index")
    engine = nc.Engine("brute")
    engine.subscribe("a", near=(0, 0), km=1)
    engine.save(tmp_path / "all" / "engine")
    nc.TopK(SUBSCRIPTIONS, window=5, method="brute").save(tmp_path / "all" / "top")
    vocabulary = nc.Vocabulary()
    vocabulary.add(pa.array(["a", "b"]))
    vocabulary.save(tmp_path / "words.bin")
    return tmp_path


def run(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["check", *map(str, arguments)])
    return done.exit_code, done.output


def test_sound_files_are_reported_and_copied(saved: Path) -> None:
    code, text = run(saved / "all", "--json")
    found = {Path(each["path"]).name: each["checked"] for each in json.loads(text)}
    assert code == 0 and found["index"] == "2 subscriptions, all of them sound"
    assert "1 subscriptions are sound" in found["engine"] and "trusts" in found["top"]
    assert run(saved / "words.bin")[0] == 0
    assert run(saved / "all" / "index", "--out", saved / "copy")[0] == 0
    assert list(nc.open_index(saved / "copy")) == [1, 2]


def test_damaged_and_forged_files_are_refused(saved: Path) -> None:
    arrays, header = load_index(saved / "all" / "index")
    forged = {name: np.array(array) for name, array in arrays.items()}
    forged["match.store.offsets"][0] = 1 << 40
    save_index(saved / "forged", forged, header)
    code, text = run(saved / "forged")
    assert code == 2 and "terms that are not there" in text
    for place, reason in ((saved / "nothing", "holds nothing"), (saved / "all", "one index")):
        code, text = run(place, "--out", saved / "copy2")
        assert code == 2 and reason in text
    words = bytearray((saved / "words.bin").read_bytes())
    words[-9] ^= 1
    (saved / "words.bin").write_bytes(words)
    assert run(saved / "words.bin")[0] == 2

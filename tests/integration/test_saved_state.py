"""Saves of all that saves: private files, only the content, a snapshot beside writers, never over other files."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import nearcast as nc
from nearcast.errors import NotReplaced

SECRET = "xsecretx"
POINTS = {"id": [1, 2], "tokens": [["a"], ["b"]], "x": [0.0, 1.0], "y": [0.0, 1.0]}
Change = Callable[[int], None]


def _index() -> tuple[Any, Change, Callable[[Any], Any]]:
    index = nc.build_index(POINTS, "brute")

    def change(n: int) -> None:
        index.insert({"id": [100 + n % 7, 200 + n % 7], "tokens": [[f"w{n}"]] * 2, "x": [1.0] * 2, "y": [1.0] * 2})

    return index, change, nc.open_index


def _engine() -> tuple[Any, Change, Callable[[Any], Any]]:
    engine = nc.Engine("brute")

    def change(n: int) -> None:
        engine.subscribe(f"w{n}", near=(0, 0), km=1, id=n % 7)

    return engine, change, nc.open_engine


MAKERS = {
    "index": _index,
    "engine": _engine,
    "top": lambda: (nc.TopK(POINTS, window=5, method="brute"), None, nc.open_topk),
    "moving": lambda: (nc.Moving(POINTS, method="brute"), None, nc.Moving.open),
    "vocabulary": lambda: (_vocabulary(), None, nc.Vocabulary.open),
}


def _vocabulary() -> nc.Vocabulary:
    vocabulary = nc.Vocabulary()
    vocabulary.add(pa.array(["a", "b"]))
    return vocabulary


@pytest.mark.parametrize("kind", MAKERS)
def test_saved_files_are_private_to_their_owner(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, _, opened = MAKERS[kind]()
    old = os.umask(0)
    try:
        made.save(tmp_path / "saved")
        monkeypatch.setenv("NEARCAST_SHARE_FILES", "1")
        made.save(tmp_path / "shared")
    finally:
        os.umask(old)
    for root, of_files, of_folders in ((tmp_path / "saved", 0o600, 0o700), (tmp_path / "shared", 0o666, 0o777)):
        for each in [root, *root.rglob("*")]:
            assert stat.S_IMODE(each.stat().st_mode) == (of_folders if each.is_dir() else of_files), each
    assert opened(tmp_path / "saved") is not None


@pytest.mark.parametrize("kind", MAKERS)
def test_a_save_replaces_no_files_of_others(kind: str, tmp_path: Path) -> None:
    made, _, _ = MAKERS[kind]()
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "diary.txt").write_text("dear diary")
    with pytest.raises(NotReplaced):
        made.save(tmp_path / "home")
    assert [each.name for each in (tmp_path / "home").iterdir()] == ["diary.txt"]
    if kind != "vocabulary":
        (tmp_path / "letter").write_text("dear aunt")
        with pytest.raises(NotReplaced):
            made.save(tmp_path / "letter")
        other, _, _ = MAKERS["top" if kind != "top" else "moving"]()
        other.save(tmp_path / "other")
        with pytest.raises(NotReplaced):
            made.save(tmp_path / "other")


@pytest.mark.parametrize("kind", ["index", "engine"])
def test_saves_beside_writers_are_whole(kind: str, tmp_path: Path) -> None:
    made, change, opened = MAKERS[kind]()
    is_over, errors = threading.Event(), list[BaseException]()

    def keep_changing(first: int) -> None:
        n = first
        while not is_over.is_set():
            try:
                change(n)
            except BaseException as error:
                errors.append(error)
                return
            n += 2

    threads = [threading.Thread(target=keep_changing, args=(first,)) for first in (0, 1)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(15):
            made.save(tmp_path / "saved")
            again = opened(tmp_path / "saved")
            index = again if kind == "index" else again.index
            ids = set(index)
            assert kind == "engine" or {each + 100 for each in ids if 100 <= each < 200} == {
                each for each in ids if each >= 200
            }, "two rows of one insert are there both, or neither"
            index.match({"id": [1], "tokens": [["a", "w1", "w2"]], "x": [0.0], "y": [0.0]})
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
    assert not errors


def test_saved_arrays_hold_nothing_but_their_content(tmp_path: Path) -> None:
    secrets = [np.frombuffer(SECRET.encode() * 40_000, np.uint8).copy() for _ in range(20)]
    del secrets  # their memory is what the next arrays get
    index = nc.build_index(POINTS, "pyramid")
    for n in range(40):
        index.insert({"id": [n], "expression": [f"w{n} OR v{n} NOT u{n}"], "region": ["circle(0, 0, 5km)"]})
    index.save(tmp_path / "saved")
    found = [file for file in (tmp_path / "saved").rglob("*.bin") if SECRET.encode() in file.read_bytes()]
    assert not found

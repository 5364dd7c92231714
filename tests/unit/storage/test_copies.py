"""Local copies: made once for each content, whole or not at all, the least recently used ones removed first."""

from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path

import pytest

from nearcast.errors import StorageError
from nearcast.storage.copies import copies_folder, forget_copy, local_copy


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NEARCAST_CACHE_DIR", str(tmp_path / "copies"))
    return tmp_path / "copies"


def fill(target: Path) -> None:
    (target / "file").write_bytes(b"x" * 1000)


def fill_and_count(target: Path) -> None:
    fill(target)
    (target.parent / f"made-{os.getpid()}").touch()
    time.sleep(0.3)  # others come meanwhile


def fill_and_die(target: Path) -> None:
    fill(target)
    os._exit(9)


def test_the_folder_is_chosen_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert copies_folder() == tmp_path / "copies"
    monkeypatch.delenv("NEARCAST_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert copies_folder() == Path("/somewhere/nearcast/copies")


def test_a_copy_is_made_once(folder: Path) -> None:
    made = local_copy("key", fill)
    assert made == folder / "key" and (made / "file").read_bytes() == b"x" * 1000

    def never(_: Path) -> None:
        raise AssertionError("it is there")

    assert local_copy("key", never) == made
    forget_copy("key")
    forget_copy("key")
    with pytest.raises(AssertionError, match="it is there"):
        local_copy("key", never)


def test_a_copy_that_fails_leaves_nothing(folder: Path) -> None:
    def fail(target: Path) -> None:
        fill(target)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        local_copy("key", fail)
    assert [path for path in folder.iterdir() if not path.name.startswith(".lock-")] == []


def test_a_killed_process_leaves_neither_a_part_nor_a_lock(folder: Path) -> None:
    process = multiprocessing.get_context("fork").Process(target=local_copy, args=("key", fill_and_die))
    process.start()
    process.join()
    assert process.exitcode == 9 and not (folder / "key").exists()
    local_copy("key", fill)
    assert sorted(path.name for path in folder.iterdir() if not path.name.startswith(".lock-")) == ["key"]


def test_many_processes_at_once_make_one_copy(folder: Path) -> None:
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=local_copy, args=("key", fill_and_count)) for _ in range(6)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 6
    assert len(list(folder.glob("made-*"))) == 1


def test_the_least_recently_used_copies_make_room(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARCAST_CACHE_GB", "3500e-9")
    for k, age in (("a", 300), ("b", 500), ("c", 400)):
        local_copy(k, fill)
        os.utime(folder / k, (time.time() - age,) * 2)
    local_copy("b", fill)  # b is used again, and c comes last
    mapped = open(folder / "c" / "file", "rb")
    local_copy("d", fill)
    assert sorted(path.name for path in folder.iterdir() if not path.name.startswith(".lock-")) == ["a", "b", "d"]
    assert mapped.read() == b"x" * 1000, "who has opened a removed copy keeps it"
    mapped.close()


def test_a_copy_that_was_just_used_stays_even_over_the_limit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARCAST_CACHE_GB", "1e-9")
    assert local_copy("a", fill).exists() and local_copy("b", fill).exists()
    assert (folder / "a").exists()


@pytest.mark.parametrize("limit", ["much", "-"])
def test_a_limit_that_is_no_number_is_refused(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARCAST_CACHE_GB", limit)
    with pytest.raises(StorageError, match="NEARCAST_CACHE_GB is a number of gigabytes"):
        local_copy("a", fill)


def test_a_folder_that_cannot_be_made_is_named_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("NEARCAST_CACHE_DIR", str(tmp_path / "file" / "copies"))
    with pytest.raises(StorageError, match="cannot hold a local copy: .*; set NEARCAST_CACHE_DIR"):
        local_copy("a", fill)

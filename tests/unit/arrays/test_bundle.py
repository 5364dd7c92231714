"""Written whole or not at all; refused by name when it is not what it says."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nearcast.arrays import bundle
from nearcast.arrays.bundle import read_bundle, write_bundle, write_whole
from nearcast.arrays.manifest import MANIFEST, manifest_checksum
from nearcast.errors import CorruptFile, ForeignVersion, NotReplaced

FORMAT = ("test-bundle", 3)
ARRAYS = {
    "a.numbers": np.arange(5000, dtype=np.int64),
    "empty": np.empty((0, 4), np.float32),
    "boxes": np.array([[0.5, -1.0, np.inf, 1e-320]]),
    "flag": np.array([True, False]),
}
HEADER = {"n": 5, "name": "x", "nested": {"list": [1, 2.5, None]}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_bundle(tmp_path / "b", FORMAT, ARRAYS, HEADER)
    return tmp_path / "b"


def array_file(folder: Path, name: str) -> Path:
    return next(folder.glob(f"arrays-*/{name}.bin"))


def test_what_is_written_is_read_back(folder: Path) -> None:
    arrays, header = read_bundle(folder, FORMAT)
    assert header == HEADER and set(arrays) == set(ARRAYS)
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype and np.array_equal(arrays[name], array)
        assert type(arrays[name]) is np.ndarray


def test_a_change_to_an_opened_array_stays_private(folder: Path) -> None:
    arrays, _ = read_bundle(folder, FORMAT)
    arrays["a.numbers"][:] = -1
    assert read_bundle(folder, FORMAT)[0]["a.numbers"][7] == 7


@pytest.mark.parametrize("byte", [0, 1, 20_000, 39_999])
def test_a_flipped_bit_is_refused_by_name(folder: Path, byte: int) -> None:
    file = array_file(folder, "a.numbers")
    content = bytearray(file.read_bytes())
    content[byte] ^= 4
    file.write_bytes(content)
    with pytest.raises(CorruptFile, match=r"a\.numbers\.bin does not match its checksum"):
        read_bundle(folder, FORMAT)
    assert read_bundle(folder, FORMAT, verify=False)[1] == HEADER


@pytest.mark.parametrize("keep", [0, 39_999])
def test_a_truncated_file_is_refused_by_name_even_unverified(folder: Path, keep: int) -> None:
    file = array_file(folder, "a.numbers")
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(CorruptFile, match=r"a\.numbers\.bin has"):
        read_bundle(folder, FORMAT, verify=False)


def test_a_missing_array_is_refused_by_name(folder: Path) -> None:
    array_file(folder, "boxes").unlink()
    with pytest.raises(CorruptFile, match=r"boxes\.bin is missing"):
        read_bundle(folder, FORMAT)


def test_every_flipped_or_missing_byte_of_the_manifest_is_refused(folder: Path) -> None:
    whole = (folder / MANIFEST).read_bytes()
    for at in range(0, len(whole), 7):
        for damaged in (whole[:at], whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]):
            (folder / MANIFEST).write_bytes(damaged)
            with pytest.raises((CorruptFile, ForeignVersion)):
                read_bundle(folder, FORMAT)


def test_another_format_or_version_is_refused_by_name(folder: Path) -> None:
    with pytest.raises(ForeignVersion, match="test-bundle version 3; this release reads test-bundle version 4"):
        read_bundle(folder, ("test-bundle", 4))
    with pytest.raises(ForeignVersion, match="reads other version 3"):
        read_bundle(folder, ("other", 3))


def test_a_folder_without_a_manifest_is_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"has no manifest\.json"):
        read_bundle(tmp_path, FORMAT)


def test_writing_again_replaces_and_leaves_nothing_behind(folder: Path) -> None:
    before, _ = read_bundle(folder, FORMAT)
    write_bundle(folder, FORMAT, {"only": np.arange(3)}, {"n": 6})
    arrays, header = read_bundle(folder, FORMAT)
    assert list(arrays) == ["only"] and header == {"n": 6}
    assert len(list(folder.iterdir())) == 2
    assert before["a.numbers"][4999] == 4999, "a map opened before goes on working"


def test_a_crash_while_writing_leaves_the_old_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(bundle, "write_whole", crash)
    with pytest.raises(KeyboardInterrupt):
        write_bundle(folder, FORMAT, {"only": np.arange(3)}, {})
    monkeypatch.undo()
    assert read_bundle(folder, FORMAT)[1] == HEADER
    assert len(list(folder.iterdir())) == 2


def test_a_folder_with_other_files_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="holds other files"):
        write_bundle(tmp_path, FORMAT, ARRAYS, {})
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_a_reader_that_lost_a_race_with_a_writer_reads_the_new_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stale = bundle.read_manifest(folder, FORMAT)
    write_bundle(folder, FORMAT, {"only": np.arange(3)}, {"n": 6})
    answers = iter([stale])
    fresh = bundle.read_manifest
    monkeypatch.setattr(bundle, "read_manifest", lambda *args: next(answers, None) or fresh(*args))
    assert read_bundle(folder, FORMAT)[1] == {"n": 6}


def test_write_whole_never_shows_a_part(tmp_path: Path) -> None:
    write_whole(tmp_path / "f", b"one")
    write_whole(tmp_path / "f", b"two")
    assert (tmp_path / "f").read_bytes() == b"two"
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_the_manifest_is_plain_json(folder: Path) -> None:
    manifest = json.loads((folder / MANIFEST).read_text())
    assert manifest["format"] == "test-bundle" and manifest["arrays"]["empty"]["shape"] == [0, 4]


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_what_is_saved_is_private_to_its_owner(folder: Path) -> None:
    generation = next(folder.glob("arrays-*"))
    assert mode(folder) == mode(generation) == 0o700
    assert {mode(file) for file in [folder / MANIFEST, *generation.iterdir()]} == {0o600}


def test_with_sharing_the_umask_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARCAST_SHARE_FILES", "1")
    before = os.umask(0o027)
    try:
        write_bundle(tmp_path / "b", FORMAT, ARRAYS, HEADER)
    finally:
        os.umask(before)
    assert mode(tmp_path / "b") == 0o750 and mode(tmp_path / "b" / MANIFEST) == 0o640
    assert {mode(file) for file in tmp_path.glob("b/arrays-*/*")} == {0o640}


@pytest.mark.parametrize("content", ['{"name": "my web app"}', "", "{", "[1]", '{"generation": "x", "format": "y"}'])
def test_a_manifest_of_another_program_is_not_replaced(tmp_path: Path, content: str) -> None:
    (tmp_path / MANIFEST).write_text(content)
    with pytest.raises(NotReplaced, match="holds other files"):
        write_bundle(tmp_path, FORMAT, ARRAYS, {})
    assert [path.name for path in tmp_path.iterdir()] == [MANIFEST] and (tmp_path / MANIFEST).read_text() == content


def test_a_bundle_of_another_format_and_a_file_are_not_replaced(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(NotReplaced, match="is a test-bundle and no other-bundle"):
        write_bundle(folder, ("other-bundle", 1), ARRAYS, {})
    (tmp_path / "file").write_text("mine")
    with pytest.raises(NotReplaced, match="is a file"):
        write_bundle(tmp_path / "file", FORMAT, ARRAYS, {})
    assert read_bundle(folder, FORMAT)[1] == HEADER and (tmp_path / "file").read_text() == "mine"


def test_an_older_version_a_damaged_one_and_a_first_save_that_was_killed_are_replaced(folder: Path) -> None:
    write_bundle(folder, (FORMAT[0], 4), ARRAYS, HEADER)
    assert read_bundle(folder, (FORMAT[0], 4))[1] == HEADER
    (folder / MANIFEST).write_text("{")
    write_bundle(folder, FORMAT, ARRAYS, HEADER)
    (folder / MANIFEST).unlink()
    write_bundle(folder, FORMAT, ARRAYS, HEADER)
    assert read_bundle(folder, FORMAT)[1] == HEADER


def rewritten(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the manifest and give it the checksum that it then needs, as a stranger can."""
    manifest = json.loads((folder / MANIFEST).read_bytes())
    del manifest["checksum"]
    change(manifest)
    manifest["checksum"] = manifest_checksum(manifest)
    (folder / MANIFEST).write_text(json.dumps(manifest))


FORGERIES: dict[str, Callable[[dict[str, Any]], None]] = {
    "a generation outside": lambda found: found.update(generation="../elsewhere"),
    "an absolute generation": lambda found: found.update(generation="/etc"),
    "a generation that is a number": lambda found: found.update(generation=3),
    "an array outside": lambda found: found["arrays"].update({"../../boxes": found["arrays"]["boxes"]}),
    "an array with NUL": lambda found: found["arrays"].update({"a\0": found["arrays"]["boxes"]}),
    "objects": lambda found: found["arrays"]["a.numbers"].update(dtype="|O"),
    "records": lambda found: found["arrays"]["a.numbers"].update(dtype="<f4,<f4"),
    "texts": lambda found: found["arrays"]["a.numbers"].update(dtype="<U2"),
    "big endian": lambda found: found["arrays"]["a.numbers"].update(dtype=">i8"),
    "a shape that is larger": lambda found: found["arrays"]["boxes"].update(shape=[1, 5]),
    "a shape below 0": lambda found: found["arrays"]["boxes"].update(shape=[-1, -4]),
    "a shape of texts": lambda found: found["arrays"]["boxes"].update(shape=["1", 4]),
    "no shape": lambda found: found["arrays"]["boxes"].update(shape=[]),
    "an endless shape": lambda found: found["arrays"]["boxes"].update(shape=[0, 2**62], bytes=0),
    "an entry that is no entry": lambda found: found["arrays"].update(boxes=7),
    "no arrays": lambda found: found.update(arrays=[]),
    "no header": lambda found: found.update(header=None),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_manifest_is_refused_though_its_checksum_is_right(folder: Path, forgery: str) -> None:
    rewritten(folder, FORGERIES[forgery])
    for verify in (True, False):
        with pytest.raises(CorruptFile, match="was not written by nearcast"):
            read_bundle(folder, FORMAT, verify)


def test_a_manifest_of_brackets_is_refused(folder: Path) -> None:
    (folder / MANIFEST).write_text("[" * 200_000)
    with pytest.raises(CorruptFile, match="is damaged"):
        read_bundle(folder, FORMAT)


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_an_array_that_is_no_plain_file_is_refused_at_once(folder: Path, tmp_path: Path, kind: str) -> None:
    file = array_file(folder, "a.numbers")
    file.rename(tmp_path / "moved")
    if kind == "link":
        file.symlink_to(tmp_path / "moved")
    elif kind == "pipe":
        os.mkfifo(file)
    else:
        file.mkdir()
    with pytest.raises(CorruptFile, match=r"a\.numbers\.bin is"):
        read_bundle(folder, FORMAT)


def test_a_generation_or_a_manifest_that_is_a_link_is_refused(folder: Path, tmp_path: Path) -> None:
    generation = next(folder.glob("arrays-*"))
    generation.rename(tmp_path / "moved")
    generation.symlink_to(tmp_path / "moved")
    with pytest.raises(CorruptFile, match="is a link"):
        read_bundle(folder, FORMAT)
    (folder / MANIFEST).rename(tmp_path / "manifest")
    (folder / MANIFEST).symlink_to(tmp_path / "manifest")
    with pytest.raises(CorruptFile, match="is a link"):
        read_bundle(folder, FORMAT)

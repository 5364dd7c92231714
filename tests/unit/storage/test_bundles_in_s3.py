"""Saved arrays in an object store: the manifest comes last, damage is refused by name, nothing is served stale."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import nearcast as nc
from nearcast.arrays.manifest import MANIFEST
from nearcast.errors import CorruptFile, ForeignVersion
from nearcast.storage import bundles
from nearcast.storage.bundles import local_bundle, read_bundle, write_bundle
from nearcast.storage.location import Location, locate

FORMAT = ("test-bundle", 3)
ARRAYS = {
    "numbers": np.arange(5000, dtype=np.int64),
    "empty": np.empty((0, 4), np.float32),
    "boxes": np.array([[0.5, -1.0, np.inf, 1e-320]]),
}


@pytest.fixture
def url(bucket: str) -> str:
    write_bundle(f"{bucket}/a/b", FORMAT, ARRAYS, {"n": 5})
    return f"{bucket}/a/b"


def copies(tmp_path: Path) -> list[Path]:
    return [path for path in (tmp_path / "copies").iterdir() if not path.name.startswith(".")]


def array_file(url: str, name: str) -> Location:
    place = locate(url)
    return place.child(next(each for each in place.names() if each.startswith("arrays-")), f"{name}.bin")


KILLED_BEFORE_THE_MANIFEST = """
import os, sys
import numpy as np
from nearcast.storage import bundles

bundles.manifest_bytes = lambda *_: os.kill(os.getpid(), 9)
bundles.write_bundle(sys.argv[1], ("test-bundle", 3), {"numbers": np.arange(9)}, {"n": 6})
"""


def test_what_is_written_is_read_back_through_one_copy(url: str, tmp_path: Path) -> None:
    for _ in range(2):
        arrays, header = read_bundle(url, FORMAT)
        assert header == {"n": 5} and set(arrays) == set(ARRAYS)
        for name, array in ARRAYS.items():
            assert arrays[name].dtype == array.dtype and np.array_equal(arrays[name], array)
    assert len(copies(tmp_path)) == 1
    assert not Path("s3:").exists()


def test_equal_content_has_one_copy_wherever_it_lies(url: str, bucket: str, tmp_path: Path) -> None:
    write_bundle(f"{bucket}/other", FORMAT, ARRAYS, {"n": 5})
    first, second = local_bundle(url, FORMAT), local_bundle(f"{bucket}/other", FORMAT)
    assert first.folder == second.folder and first.generation != second.generation
    assert len(copies(tmp_path)) == 1


def test_a_replaced_bundle_is_never_served_stale(url: str, tmp_path: Path) -> None:
    before, old = local_bundle(url, FORMAT), read_bundle(url, FORMAT)[0]
    write_bundle(url, FORMAT, {"numbers": np.arange(3)}, {"n": 6})
    arrays, header = read_bundle(url, FORMAT, verify=False)
    assert header == {"n": 6} and len(arrays["numbers"]) == 3
    assert local_bundle(url, FORMAT).generation != before.generation
    assert len(locate(url).names()) == 2, "the predecessor is gone"
    assert old["numbers"][4999] == 4999


@pytest.mark.parametrize("name", ["numbers", "boxes"])
def test_a_damaged_object_is_refused_by_name(url: str, name: str, tmp_path: Path) -> None:
    file = array_file(url, name)
    content = file.read()
    for damaged, reason in (
        (content[:-1] + bytes([content[-1] ^ 1]), "does not match its checksum"),
        (content[:-1], "bytes, its manifest says"),
    ):
        file.write(damaged)
        with pytest.raises(CorruptFile, match=rf"s3://.*{name}\.bin .*{reason}"):
            read_bundle(url, FORMAT, verify=False)
    file.remove()
    with pytest.raises(CorruptFile, match=f"{name}.*restore or rebuild"):
        read_bundle(url, FORMAT)
    assert copies(tmp_path) == []


def test_a_damaged_or_missing_manifest_is_refused_by_name(url: str, bucket: str) -> None:
    file = locate(url).child(MANIFEST)
    file.write(file.read()[:-9])
    with pytest.raises(CorruptFile, match=r"s3://.*/a/b/manifest\.json is damaged"):
        read_bundle(url, FORMAT)
    with pytest.raises(FileNotFoundError, match=r"s3://.*/nothing is no test-bundle: it has no manifest\.json"):
        read_bundle(f"{bucket}/nothing", FORMAT)


def test_another_version_is_refused_by_name(url: str) -> None:
    with pytest.raises(ForeignVersion, match=r"s3://.*test-bundle version 3; this release reads .* version 4"):
        read_bundle(url, ("test-bundle", 4))


def test_a_damaged_copy_is_made_again(url: str, tmp_path: Path) -> None:
    copy = next(Path(local_bundle(url, FORMAT).folder).glob("arrays-*/numbers.bin"))
    copy.write_bytes(copy.read_bytes()[:-1] + b"x")
    assert read_bundle(url, FORMAT)[0]["numbers"][4999] == 4999
    copy.unlink()
    assert read_bundle(url, FORMAT, verify=False)[0]["numbers"][4999] == 4999


def test_a_writer_killed_before_the_manifest_leaves_the_old_one(url: str) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED_BEFORE_THE_MANIFEST, url], capture_output=True)
    assert done.returncode == -9, done.stderr
    assert len([name for name in locate(url).names() if name.startswith("arrays-")]) == 2
    assert read_bundle(url, FORMAT)[1] == {"n": 5}
    write_bundle(url, FORMAT, ARRAYS, {"n": 7})
    assert read_bundle(url, FORMAT)[1] == {"n": 7}


def test_a_writer_that_fails_removes_its_own_files(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> bytes:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(bundles, "manifest_bytes", fail)
        write_bundle(url, FORMAT, ARRAYS, {"n": 6})
    assert len(locate(url).names()) == 2


def test_a_folder_with_other_files_is_not_touched(bucket: str) -> None:
    locate(f"{bucket}/mine/letter.txt").write(b"mine")
    with pytest.raises(FileExistsError, match="holds other files"):
        write_bundle(f"{bucket}/mine", FORMAT, ARRAYS, {})
    assert locate(f"{bucket}/mine").names() == ["letter.txt"]


def test_readers_see_one_state_while_it_is_replaced(url: str) -> None:
    """Each state has one number everywhere: in the header and in all of its arrays."""
    stop, seen, faults = threading.Event(), list[int](), list[BaseException]()

    def read() -> None:
        try:
            while not stop.is_set():
                arrays, header = read_bundle(url, FORMAT)
                assert all((array == header["n"]).all() for array in arrays.values())
                seen.append(header["n"])
        except BaseException as fault:
            faults.append(fault)

    write_bundle(url, FORMAT, {name: np.full(1000, 0) for name in "abcd"}, {"n": 0})
    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for n in range(1, 13):
        write_bundle(url, FORMAT, {name: np.full(1000, n) for name in "abcd"}, {"n": n})
    stop.set()
    for reader in readers:
        reader.join()
    assert faults == [] and len(set(seen)) > 1
    assert read_bundle(url, FORMAT)[1] == {"n": 12}


def test_a_vocabulary_is_saved_and_opened_at_a_url(bucket: str, tmp_path: Path) -> None:
    url = f"{bucket}/words"
    for tokens in (["pizza", "fire"], ["fire", "storm", "flood"]):
        vocabulary = nc.Vocabulary()
        vocabulary.add(pa.array(tokens))
        vocabulary.save(url)
        opened = nc.Vocabulary.open(url)
        assert opened.terms(tokens).tolist() == vocabulary.terms(tokens).tolist() and len(opened) == len(tokens)
    locate(url).write(locate(url).read()[:-8] + b"12345678")
    shutil.rmtree(tmp_path / "copies")
    with pytest.raises(CorruptFile, match="s3://.*words: the checksum does not match"):
        nc.Vocabulary.open(url)

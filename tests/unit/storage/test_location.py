"""Paths and URLs: how they are read, joined, shown and refused."""

from __future__ import annotations

import os
import pickle
import socket
import threading
from pathlib import Path

import pyarrow as pa
import pytest

import nearcast as nc
from nearcast.errors import NearcastError, StorageError
from nearcast.storage.leftovers import abandoned_below
from nearcast.storage.location import is_url, locate
from nearcast.tables import write_table


def test_a_local_path_is_absolute_whatever_its_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for text in ("a b/c", tmp_path / "a b" / "c", f"file://{tmp_path}/a%20b/c", f"file:{tmp_path}/a b/c"):
        place = locate(text)
        assert place.is_local and place.path == str(tmp_path / "a b" / "c")
    assert not is_url("a/b:c") and not is_url("c:d") and is_url("S3://bucket/x")


@pytest.mark.parametrize(
    ("url", "path", "known"),
    [
        ("s3://bucket/a/b", "bucket/a/b", "s3://bucket/a/b"),
        ("S3A://bucket/a/b/", "bucket/a/b", "s3://bucket/a/b/"),
        ("s3a:/bucket/a", "bucket/a", "s3://bucket/a"),
        ("s3://key:secret@bucket/a?region=x", "bucket/a", "s3://key:secret@bucket/a?region=x"),
        ("gs://bucket/a", "bucket/a", "gs://bucket/a"),
        ("hdfs://host:8020/a/b", "/a/b", "hdfs://host:8020/a/b"),
        ("abfss://box@account.dfs.core.windows.net/a", "box/a", "abfs://box@account.dfs.core.windows.net/a"),
    ],
)
def test_a_url_names_a_path_on_its_file_system(url: str, path: str, known: str) -> None:
    place = locate(url)
    assert (place.path, place.url) == (path, known) and not place.is_local
    below = place.child("c", "d.bin")
    assert below.path == f"{path}/c/d.bin" and locate(below.url) == below and below.name == "d.bin"
    assert pickle.loads(pickle.dumps(place)) == place


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("ftp://host/a", "no file system 'ftp'; give a local path or file://"),
        ("s3:///a", "names no bucket or host; write s3://BUCKET/PATH"),
        ("file://host/a", "names the host host; write file:///"),
    ],
)
def test_other_urls_are_refused_by_name(url: str, reason: str) -> None:
    with pytest.raises(NearcastError, match=reason) as caught:
        locate(url)
    assert str(caught.value).startswith(url)


def test_an_unknown_option_of_a_url_is_refused() -> None:
    with pytest.raises(StorageError, match="no option 'regoin'; there are endpoint_override, region"):
        locate("s3://bucket/a?regoin=x").read()


def test_a_store_that_refuses_connections_is_one_line_with_a_remedy() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"s3://key:hidden@bucket/a?endpoint_override=http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(StorageError, match="cannot be read: .*; check bucket, region= or AWS_REGION") as caught:
        locate(url).read()
    assert "\n" not in str(caught.value) and "hidden" not in str(caught.value)


def test_a_store_that_never_answers_ends_after_its_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARCAST_STORE_TIMEOUT", "0.2")
    accepted = []
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()

        def accept() -> None:
            while True:
                try:
                    accepted.append(silent.accept()[0])
                except OSError:
                    return

        threading.Thread(target=accept, daemon=True).start()
        url = f"s3://key:secret@bucket/a?endpoint_override=http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(StorageError, match="cannot be read"):
            locate(url).read()
        silent.shutdown(socket.SHUT_RDWR)
    for connection in accepted:
        connection.close()
    assert 1 <= len(accepted) <= 3


def test_files_are_written_read_listed_and_removed_alike(bucket: str, tmp_path: Path) -> None:
    for root in (locate(tmp_path / "local"), locate(f"{bucket}/remote")):
        assert root.names() == [] and root.files() == [] and not root.is_folder() and not root.is_file()
        file = root.child("folder", "a b.txt")
        with pytest.raises(FileNotFoundError):
            file.read()
        file.write(b"one")
        file.write(b"0123456789")
        root.child("z").write(b"")
        assert file.read() == b"0123456789" and file.read(2, 3) == b"234" and file.is_file()
        assert root.names() == ["folder", "z"] and root.is_folder()
        assert [(each.location, each.size) for each in root.files()] == [(file, 10), (root.child("z"), 0)]
        entry = file.entry()
        assert entry is not None and entry.size == 10 and entry.time_ns > 0 and root.entry() is None
        root.child("folder").remove()
        root.child("nothing").remove()
        assert root.names() == ["z"] and file.entry() is None


def test_only_what_is_much_older_than_the_newest_file_counts_as_abandoned(tmp_path: Path) -> None:
    place = locate(tmp_path)
    for name in ("arrays-old", "arrays-young", "other-old"):
        place.child(name, "file").write(b"x")
    for name in ("arrays-old", "other-old"):
        os.utime(tmp_path / name / "file", (1, 1))
    assert abandoned_below(place, "arrays-") == ["arrays-old"]


def test_tables_are_read_from_urls(bucket: str, tmp_path: Path) -> None:
    table = {"id": [1], "expression": ["storm"], "region": ["world"]}
    wanted = nc.build_index(table).match_one("storm", 0.0, 0.0).tolist()
    for name in ("t.parquet", "t.csv", "t.jsonl"):
        write_table(pa.table(table), tmp_path / name)
        locate(f"{bucket}/{name}").write((tmp_path / name).read_bytes())
        for url in (f"{bucket}/{name}", f"file://{tmp_path}/{name}"):
            assert nc.build_index(url).match_one("storm", 0.0, 0.0).tolist() == wanted == [1]
        write_table(pa.table(table), f"{bucket}/again/{name}")
        again = nc.build_index(Path(f"{bucket}/again/{name}"))
        assert again.match_one("storm", 0.0, 0.0).tolist() == [1] and not Path("s3:").exists()
    for name, reason in (("none.csv", "does not exist"), ("t.txt", "has no known ending"), ("n.parquet", "n.parquet")):
        locate(f"{bucket}/t.txt").write(b"")
        with pytest.raises(NearcastError, match=f"s3://.*{reason}"):
            nc.build_index(f"{bucket}/{name}")

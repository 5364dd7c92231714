"""A package that was shipped to a worker is put where compiled kernels can stay beside it."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import nearcast
from nearcast.spark import landing


@pytest.fixture
def unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A shipped package as an executor finds it, and a user's cache that is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    archive, name = landing.package_as_zip()
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(tmp_path / "run" / name)
    return tmp_path / "run" / name


def restarted(package: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    calls: list[Any] = []
    with monkeypatch.context() as patch:
        patch.setattr(nearcast, "__file__", str(package / "nearcast" / "__init__.py"))
        patch.setattr(os, "execv", lambda *args: calls.append((args, os.environ["PYTHONPATH"])))
        patch.setenv("PYTHONPATH", "others")
        landing.stay()
    return calls


def test_a_shipped_package_is_copied_once_and_the_daemon_starts_again_from_there(
    unpacked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = landing._home(unpacked.name)
    ((program, words), path) = restarted(unpacked, monkeypatch)[0]
    assert (program, words[:3]) == (sys.executable, [sys.executable, "-m", "nearcast.spark.daemon"])
    assert path.split(os.pathsep) == [str(home), "others"]
    times = {file.stat().st_mtime for file in home.rglob("*.py")}
    assert len(times) == 1
    kept = home / "nearcast" / "kept"
    kept.touch()
    restarted(unpacked, monkeypatch)
    assert kept.exists(), "the second time it is only used"
    assert restarted(home, monkeypatch) == [], "what stays stays"


def test_the_copy_is_a_whole_package(unpacked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    restarted(unpacked, monkeypatch)
    home = landing._home(unpacked.name)
    asked = "import nearcast, nearcast.spark.match_task; print(nearcast.__file__)"
    told = subprocess.run(
        [sys.executable, "-c", asked],
        env=os.environ | {"PYTHONPATH": str(home)},
        cwd=home.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(told.stdout.strip()) == home / "nearcast" / "__init__.py"


def test_an_installed_package_stays_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "execv", lambda *args: pytest.fail("started again"))
    landing.stay()


def test_the_name_tells_the_content() -> None:
    assert landing.package_as_zip()[1] == landing.package_as_zip()[1]

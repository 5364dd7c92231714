from __future__ import annotations

import os
from pathlib import Path

import pytest

from nearcast.arrays.kernel_cache import KEPT, VARIABLE, forget_old_states, settle_cache, sources_digest


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "package" / "inner"
    folder.mkdir(parents=True)
    (folder / "callee.py").write_text("a = 1\n")
    (folder.parent / "caller.py").write_text("b = 1\n")
    return folder.parent


def test_a_change_of_any_source_is_another_state(package: Path) -> None:
    before = sources_digest(package)
    assert sources_digest(package) == before
    (package / "inner" / "callee.py").write_text("a = 22\n")
    changed = sources_digest(package)
    assert changed != before
    (package / "inner" / "more.py").write_text("")
    assert sources_digest(package) not in (before, changed)


def test_bounds_checking_is_another_state(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_BOUNDSCHECK", raising=False)
    before = sources_digest(package)
    monkeypatch.setenv("NUMBA_BOUNDSCHECK", "1")
    assert sources_digest(package) != before


def test_the_folder_is_below_the_one_asked_for_and_children_agree(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "asked"))
    folder = settle_cache(package)
    assert folder.parent == tmp_path / "asked" and os.environ[VARIABLE] == str(folder)
    assert settle_cache(package) == folder, "a child process goes elsewhere"
    (package / "caller.py").write_text("b = 333\n")
    assert settle_cache(package).parent == tmp_path / "asked", "states are nested"


def test_without_a_wish_it_is_the_users_cache(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert settle_cache(package).parent == tmp_path / "xdg" / "nearcast" / "kernels"


def test_old_states_are_removed_and_nothing_else(tmp_path: Path) -> None:
    for k in range(7):
        (tmp_path / f"{k:016x}").mkdir()
        os.utime(tmp_path / f"{k:016x}", (k, k))
    (tmp_path / "mine").mkdir()
    forget_old_states(tmp_path / f"{0:016x}")
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == [f"{k:016x}" for k in (0, *range(8 - KEPT, 7))] + ["mine"]

from __future__ import annotations

import os
from pathlib import Path

import numba
import pytest

from nearcast.arrays.jit import JIT_DISABLED, kernel
from nearcast.arrays.jit.cache_folder import KEPT, VARIABLE, KernelLocator, cache_folder, forget_old_states, state_of

FILES = {
    "__init__.py": "",
    "callee.py": "a = 1\n",
    "middle/__init__.py": "from nearcast.middle.deep import d\n",
    "middle/deep.py": "from nearcast.callee import a\n",
    "middle/other.py": "o = 1\n",
    "direct.py": "    from nearcast.callee import (\n        a,\n    )\n",
    "through_package.py": "from nearcast.middle import other, nothing  # a module and a name\n",
    "plain.py": "import nearcast.middle.other\n",
    "alone.py": "# no import of nearcast.callee\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        file = tmp_path / "nearcast" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path


def states(root: Path) -> dict[str, str]:
    for remembered in (state_of, *(getattr(_module(), name) for name in ("_imports", "_text_digest"))):
        remembered.cache_clear()
    return {name: state_of(root / "nearcast" / name, root) for name in FILES}


def _module() -> object:
    import nearcast.arrays.jit.cache_folder

    return nearcast.arrays.jit.cache_folder


@pytest.mark.parametrize(
    "edited, changed",
    [
        ("callee.py", {"callee.py", "middle/deep.py", "middle/__init__.py", "direct.py", "through_package.py"}),
        ("middle/other.py", {"middle/other.py", "through_package.py", "plain.py"}),
        ("alone.py", {"alone.py"}),
    ],
)
def test_an_edit_is_another_state_of_what_stands_on_it_and_no_more(root: Path, edited: str, changed: set[str]) -> None:
    before = states(root)
    assert states(root) == before
    file = root / "nearcast" / edited
    file.write_text(file.read_text() + "more = 1\n")
    after = states(root)
    assert {name for name in FILES if after[name] != before[name]} == changed


def test_a_copy_of_the_sources_shares_the_states(root: Path, tmp_path: Path) -> None:
    here = states(root)
    assert states(root.rename(tmp_path.parent / f"{tmp_path.name}-moved")) == here


def test_bounds_checking_is_another_state(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_BOUNDSCHECK", raising=False)
    before = states(root)
    monkeypatch.setenv("NUMBA_BOUNDSCHECK", "1")
    assert not set(states(root).values()) & set(before.values())


def test_the_folder_is_the_one_asked_for_or_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "asked"))
    assert cache_folder() == tmp_path / "asked"
    monkeypatch.setenv(VARIABLE, "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "nearcast" / "kernels"


def test_old_states_of_a_module_are_removed_and_nothing_else(tmp_path: Path) -> None:
    for k in range(7):
        (tmp_path / f"nearcast.a-{k:016x}").mkdir()
        os.utime(tmp_path / f"nearcast.a-{k:016x}", (k, k))
    in_use = [f"nearcast.c-{k:016x}" for k in range(7)]  # of other versions that are at work
    for name in ("mine", f"nearcast.b-{0:016x}", *in_use):
        (tmp_path / name).mkdir()
    forget_old_states(tmp_path)
    left = sorted(path.name for path in tmp_path.iterdir())
    kept = [f"nearcast.a-{k:016x}" for k in range(7 - KEPT, 7)]
    assert left == ["mine", *kept, f"nearcast.b-{0:016x}", *in_use]


@pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled")
def test_a_kernel_is_kept_in_its_modules_folder_and_the_users_settings_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    settings = numba.config.CACHE_LOCATOR_CLASSES

    @kernel
    def twice(x: int) -> int:
        return x + x

    assert twice(4) == 8
    assert numba.config.CACHE_LOCATOR_CLASSES == settings
    assert list((tmp_path / state_of(Path(__file__))).glob("*twice*.nbc"))


def test_a_function_without_a_file_has_no_place() -> None:
    assert KernelLocator.from_function(states, "<typed in>") is None

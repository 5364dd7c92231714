"""Where compiled kernels are kept: one folder for each state of a module.

Numba keeps a compiled kernel until the kernel's own file changes. But a kernel holds the code of those that it calls,
and those may live in other files. Hence a folder's name says what its module is made of: its own text and that of all
modules of ours that it imports, near and far. An edit compiles again what stands on the edited file, and no more; a
copy of the sources elsewhere (another clone, a Spark worker's) shares what is compiled here.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

VARIABLE = "NUMBA_CACHE_DIR"
SWITCHES = ("NUMBA_BOUNDSCHECK", "NUMBA_OPT", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")  # change what is compiled
KEPT = 4  # states of a module; an older one is compiled again if it comes back
_ROOT = Path(__file__).parents[2]
_IMPORT = re.compile(r"^[ \t]*(?:from (nearcast[\w.]*) import (\([^)]*\)|.*)|import (nearcast[\w.]*))", re.MULTILINE)
_DIGITS = 16


class KernelLocator:
    """What Numba asks for the folder of one function (see its NUMBA_CACHE_LOCATOR_CLASSES)."""

    def __init__(self, function: Callable[..., Any], file: Path) -> None:
        self._line = function.__code__.co_firstlineno
        self._folder = cache_folder() / state_of(file)

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> KernelLocator | None:
        """None where there is no such file: Numba then says that it cannot keep the function."""
        return cls(function, Path(file)) if Path(file).exists() else None

    def ensure_cache_path(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=self._folder).close()  # may we write there?

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return self._folder.name

    def get_disambiguator(self) -> str:
        return str(self._line)


def cache_folder() -> Path:
    """NUMBA_CACHE_DIR, or the user's cache."""
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get(VARIABLE) or user / "nearcast" / "kernels")


@functools.cache
def state_of(file: Path, root: Path = _ROOT) -> str:
    """The module's name, and a digest of its text, of the text of all that it imports, and of the switches."""
    digest = hashlib.sha256()
    for each in sorted(_reached(file, root)):
        digest.update(_text_digest(each))
    for name in SWITCHES:
        digest.update(f"{name}={os.environ.get(name, '')}\n".encode())
    parts = file.relative_to(root).with_suffix("").parts if file.is_relative_to(root) else (file.stem,)
    return f"{'.'.join(parts)}-{digest.hexdigest()[:_DIGITS]}"


def forget_old_states(folder: Path) -> None:
    """Remove all but the newest states of each module."""
    states: dict[str, list[Path]] = {}
    for path in folder.glob(f"*-{'[0-9a-f]' * _DIGITS}"):
        states.setdefault(path.name[: -_DIGITS - 1], []).append(path)
    for paths in states.values():
        paths.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        for path in paths[KEPT:]:
            shutil.rmtree(path, ignore_errors=True)


def _reached(file: Path, root: Path) -> set[Path]:
    """This file, and all files of ours that it imports, near and far."""
    found, waiting = {file}, [file]
    while waiting:
        for each in _imports(waiting.pop(), root):
            if each not in found:
                found.add(each)
                waiting.append(each)
    return found


@functools.cache
def _imports(file: Path, root: Path) -> tuple[Path, ...]:
    named = (name for found in _IMPORT.finditer(file.read_text("utf-8")) for name in _modules(*found.groups()))
    return tuple(each for name in named if (each := _file_of(name, root)) is not None)


def _modules(source: str | None, names: str | None, plain: str | None) -> Iterator[str]:
    """What an import may name: a module, or modules inside a package."""
    if plain is not None:
        yield plain
    elif source is not None and names is not None:
        yield source
        yield from (f"{source}.{name}" for name in re.findall(r"\w+", names))


def _file_of(module: str, root: Path) -> Path | None:
    path = root.joinpath(*module.split("."))
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


@functools.cache
def _text_digest(file: Path) -> bytes:
    return hashlib.sha256(file.read_bytes()).digest()

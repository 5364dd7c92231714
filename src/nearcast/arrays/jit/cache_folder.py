"""The cache of compiled kernels: one folder for each state of a module.

Numba keeps a compiled kernel until the kernel's own file changes. But a compiled kernel contains the code of the
kernels that it calls, which may be in other files. So the name of a folder contains a digest of the text of its module
and of all our modules that it imports, directly or indirectly. An edit recompiles only what depends on the edited file.
Other copies of the same sources (another clone, a Spark worker) share the compiled kernels.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

VARIABLE = "NUMBA_CACHE_DIR"
SWITCHES = ("NUMBA_BOUNDSCHECK", "NUMBA_OPT", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")  # they change the compiled code
KEPT = 4  # states of a module; older states are deleted
SECONDS_IN_USE = 86_400.0
_ROOT = Path(__file__).parents[3]
_IMPORT = re.compile(r"^[ \t]*(?:from (nearcast[\w.]*) import (\([^)]*\)|.*)|import (nearcast[\w.]*))", re.MULTILINE)
_DIGITS = 16


class KernelLocator:
    """Tells Numba the cache folder of one function (Numba's setting NUMBA_CACHE_LOCATOR_CLASSES)."""

    def __init__(self, function: Callable[..., Any], file: Path) -> None:
        self._line = function.__code__.co_firstlineno
        self._folder = cache_folder() / state_of(file)

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> KernelLocator | None:
        """The locator, or None if there is no such file; Numba then reports that it cannot cache the function."""
        return cls(function, Path(file)) if Path(file).exists() else None

    def ensure_cache_path(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=self._folder).close()  # raises if the folder is not writable

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return self._folder.name

    def get_disambiguator(self) -> str:
        return str(self._line)


def cache_folder() -> Path:
    """NUMBA_CACHE_DIR, or a folder in the user's cache."""
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get(VARIABLE) or user / "nearcast" / "kernels")


@functools.cache
def state_of(file: Path, root: Path = _ROOT) -> str:
    """The name of the module, and a digest of its text, of the modules that it imports, and of the switches."""
    digest = hashlib.sha256()
    for each in sorted(_reached(file, root)):
        digest.update(_text_digest(each))
    for name in SWITCHES:
        digest.update(f"{name}={os.environ.get(name, '')}\n".encode())
    parts = file.relative_to(root).with_suffix("").parts if file.is_relative_to(root) else (file.stem,)
    return f"{'.'.join(parts)}-{digest.hexdigest()[:_DIGITS]}"


def forget_old_states(folder: Path) -> None:
    """Delete all but the newest states of each module, and those that changed within a day: other versions of the
    package may be at work.
    """
    states: dict[str, list[Path]] = {}
    for path in folder.glob(f"*-{'[0-9a-f]' * _DIGITS}"):
        states.setdefault(path.name[: -_DIGITS - 1], []).append(path)
    for paths in states.values():
        paths.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        for path in paths[KEPT:]:
            if time.time() - path.stat().st_mtime > SECONDS_IN_USE:
                shutil.rmtree(path, ignore_errors=True)


def _reached(file: Path, root: Path) -> set[Path]:
    """This file and all our files that it imports, directly or indirectly."""
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
    """The modules that an import statement may refer to: a module, or modules of a package."""
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

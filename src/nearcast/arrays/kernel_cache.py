"""Where compiled kernels are kept: one folder for each state of the sources.

Numba keeps a compiled kernel until the kernel's own file changes. A kernel holds the code of those that it calls, so
after an edit of those it would go on running their old code. Hence the folder's name is a digest of all our sources.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

VARIABLE = "NUMBA_CACHE_DIR"
KEPT = 4  # states; an older one is compiled again if it comes back
_DIGITS = 16


def settle_cache(package: Path) -> Path:
    """Point Numba at the folder of this state, below NUMBA_CACHE_DIR or the user's cache. Call it before Numba is
    imported.
    """
    digest = sources_digest(package)
    base = Path(os.environ.get(VARIABLE) or _user_cache() / "nearcast" / "kernels")
    if base.name != digest:
        base = _without_digest(base) / digest
    os.environ[VARIABLE] = str(base)
    return base


def forget_old_states(folder: Path) -> None:
    """Remove all but the newest states beside this one."""
    states = [path for path in folder.parent.glob("[0-9a-f]" * _DIGITS) if path.is_dir() and path != folder]
    states.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for path in states[KEPT - 1 :]:
        shutil.rmtree(path, ignore_errors=True)


def sources_digest(package: Path) -> str:
    """Names, sizes and times of all sources, and the switches that change what is compiled: 2 ms for 120 files."""
    digest = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        status = file.stat()
        digest.update(f"{file.relative_to(package)} {status.st_size} {status.st_mtime_ns}\n".encode())
    for name in ("NUMBA_BOUNDSCHECK", "NUMBA_OPT", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"):
        digest.update(f"{name}={os.environ.get(name, '')}\n".encode())
    return digest.hexdigest()[:_DIGITS]


def _without_digest(base: Path) -> Path:
    """A parent process may have named its own state: ours goes beside it, not below."""
    is_state = len(base.name) == _DIGITS and set(base.name) <= set("0123456789abcdef")
    return base.parent if is_state else base


def _user_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")

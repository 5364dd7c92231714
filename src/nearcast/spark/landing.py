"""Where a package that was shipped to a worker is put to stay.

An executor unpacks it in the folder of its run. Compiled kernels are kept by the path and time of their sources: from
there they would be compiled anew in every run. Hence one folder for each content, with equal times, in the user's
cache.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

import nearcast

PREFIX = "nearcast-package-"
_TIME = 1_700_000_000  # of every file: any that stays the same


def package_as_zip() -> tuple[Path, str]:
    """(the package's own files, the name of the folder in which an executor is to unpack them)."""
    root = Path(nearcast.__file__).parent
    target = Path(tempfile.mkdtemp(prefix="nearcast-")) / "nearcast.zip"
    digest = hashlib.sha256()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(root.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                name, content = file.relative_to(root.parent), file.read_bytes()
                digest.update(f"{name} {len(content)}\n".encode() + content)
                archive.writestr(str(name), content)
    return target, f"{PREFIX}{digest.hexdigest()[:16]}"


def stay() -> None:
    """If this process runs a shipped package: start again, with the copy that stays."""
    here = Path(nearcast.__file__).resolve().parents[1]
    home = _home(here.name)
    if not here.name.startswith(PREFIX) or here == home:
        return
    if not home.exists():
        _copy(here, home)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(home), os.environ.get("PYTHONPATH", "")])
    os.execv(sys.executable, [sys.executable, "-m", "nearcast.spark.daemon", *sys.argv[1:]])


def _home(name: str) -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return (cache / "nearcast" / "shipped" / name).resolve()


def _copy(source: Path, target: Path) -> None:
    """Whole or not at all; another executor of this host may be faster."""
    target.parent.mkdir(parents=True, exist_ok=True)
    half = Path(tempfile.mkdtemp(prefix=".half-", dir=target.parent))
    try:
        copied = Path(shutil.copytree(source, half / target.name, ignore=shutil.ignore_patterns("__pycache__")))
        for file in copied.rglob("*.py"):
            os.utime(file, (_TIME, _TIME))
        try:
            copied.rename(target)
        except OSError:
            if not target.exists():
                raise
    finally:
        shutil.rmtree(half, ignore_errors=True)

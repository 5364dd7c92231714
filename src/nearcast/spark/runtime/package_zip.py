"""This package as a ZIP file for remote workers that do not have it installed.

An executor unpacks it in the folder of its run. Compiled kernels are cached by the content of the sources, not by their
paths (see arrays/jit/cache_folder.py), so a later run on the same host finds them.
"""

from __future__ import annotations

import hashlib
import tempfile
import zipfile
from pathlib import Path

import nearcast

_PREFIX = "nearcast-package-"


def package_as_zip() -> tuple[Path, str]:
    """(the ZIP file, the name of the folder in which an executor unpacks it)."""
    root = Path(nearcast.__file__).parent
    target = Path(tempfile.mkdtemp(prefix="nearcast-")) / "nearcast.zip"
    digest = hashlib.sha256()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(root.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                name, content = file.relative_to(root.parent), file.read_bytes()
                digest.update(f"{name} {len(content)}\n".encode() + content)
                archive.writestr(str(name), content)
    return target, f"{_PREFIX}{digest.hexdigest()[:16]}"

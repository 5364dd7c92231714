"""The package as it is shipped to workers that do not have it.

An executor unpacks it in the folder of its run. Compiled kernels are kept by what is in the sources, not by where they
lie (see arrays/kernel_cache.py): they stay in the user's cache of the host, and a later run finds them.
"""

from __future__ import annotations

import hashlib
import tempfile
import zipfile
from pathlib import Path

import nearcast

_PREFIX = "nearcast-package-"


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
    return target, f"{_PREFIX}{digest.hexdigest()[:16]}"

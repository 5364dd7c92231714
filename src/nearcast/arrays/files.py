"""Files that are written whole or not at all, and that are private to their owner."""

from __future__ import annotations

import fcntl
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

SHARING = "NEARCAST_SHARE_FILES"
"""Set to 1, saved files get the permissions that the umask leaves. Without it only their owner may read them."""


def is_sharing() -> bool:
    return os.environ.get(SHARING, "") not in ("", "0")


def make_folder(folder: Path) -> None:
    """Make a folder for saved files, and the folders above it. A folder that is there keeps its permissions."""
    folder.mkdir(mode=0o777 if is_sharing() else 0o700, parents=True, exist_ok=True)


def create_file(file: Path, is_private: bool = True) -> IO[bytes]:
    """A stream into a file that is not there yet."""
    mode = 0o600 if is_private and not is_sharing() else 0o666
    return os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "wb")


def write_whole(
    file: Path, content: bytes, is_private: bool = True, place: Callable[[Path, Path], None] = os.replace
) -> None:
    """Write a file under a temporary name, fsync it, and rename it into place, or do what `place` does."""
    temporary = file.with_name(f".{file.name}.{uuid.uuid4().hex[:8]}")
    try:
        with create_file(temporary, is_private) as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        place(temporary, file)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(file.parent)


def sync_folder(folder: Path) -> None:
    """Fsync a folder, so that the names of its files are durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def locked_folder(folder: Path, is_shared: bool = False) -> Iterator[None]:
    """A lock on the folder itself, exclusive or shared, which ends with the process too.

    It needs no file of its own, so that also readers without write permission can take it. File systems without locks
    are used without.
    """
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX)
        except OSError:
            pass
        yield
    finally:
        os.close(handle)

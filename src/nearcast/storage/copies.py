"""Local copies of remote files: one for each content and host, which all processes of the host map.

    CACHE/<key>/          a copy, complete; the key is a digest of the content
    CACHE/.filling-<key>  a copy in preparation, renamed when it is complete
    CACHE/.lock-<n>       locks, so that one process makes a copy while others wait for it

The copies that were used least recently are removed when all of them together exceed the limit. A process that maps
a removed copy keeps its pages.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import tempfile
import time
import uuid
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from nearcast.arrays.files import make_folder, sync_folder
from nearcast.errors import StorageError

FOLDER, LIMIT = "NEARCAST_CACHE_DIR", "NEARCAST_CACHE_GB"
_N_LOCKS = 64
_IN_USE_SECONDS = 60.0  # a copy that was just found is about to be mapped


def copies_folder() -> Path:
    """NEARCAST_CACHE_DIR, or a folder in the user's cache."""
    chosen = os.environ.get(FOLDER)
    if chosen:
        return Path(chosen)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nearcast" / "copies"
    except RuntimeError:  # a user without a home
        return Path(tempfile.gettempdir()) / f"nearcast-{os.getuid()}" / "copies"


def local_copy(key: str, fill: Callable[[Path], None]) -> Path:
    """The folder of the copy with this key. If there is none, `fill` writes it into an empty folder."""
    folder = copies_folder()
    target = folder / key
    if _touch(target):
        return target
    with _faults(folder):
        make_folder(folder)
        with _locked(folder / f".lock-{zlib.crc32(key.encode()) % _N_LOCKS:02d}"):
            if _touch(target):  # another process made it meanwhile
                return target
            unfinished = folder / f".filling-{key}"
            shutil.rmtree(unfinished, ignore_errors=True)  # by a process that was killed
            unfinished.mkdir()
            try:
                fill(unfinished)
                _sync_all(unfinished)
                unfinished.rename(target)
            except BaseException:
                shutil.rmtree(unfinished, ignore_errors=True)
                raise
            sync_folder(folder)
        _make_room(folder, target)
    return target


def forget_copy(key: str) -> None:
    """Remove a copy, which is damaged."""
    _remove(copies_folder() / key)


def _touch(target: Path) -> bool:
    """Whether the copy is there; it is then the most recently used one."""
    try:
        os.utime(target)
    except FileNotFoundError:
        return False
    except OSError:  # another user's cache, readable only
        return target.is_dir()
    return True


def _make_room(folder: Path, newest: Path) -> None:
    """Remove the copies used least recently, until the rest is within the limit."""
    sizes = {each: _size_of(each) for each in folder.iterdir() if not each.name.startswith(".")}
    total, limit = sum(sizes.values()), _limit(folder, sum(sizes.values()))
    for copy in sorted(sizes, key=_used_at):
        if total <= limit:
            return
        if copy != newest and time.time() - _used_at(copy) > _IN_USE_SECONDS:
            _remove(copy)
            total -= sizes[copy]


def _limit(folder: Path, present: int) -> float:
    """NEARCAST_CACHE_GB, or half of the disk space that is free or that copies take."""
    text = os.environ.get(LIMIT)
    if not text:
        return (shutil.disk_usage(folder).free + present) / 2
    try:
        return float(text) * 1e9
    except ValueError:
        raise StorageError(f"{LIMIT} is a number of gigabytes, not '{text}'") from None


def _remove(copy: Path) -> None:
    """Rename first, so that nobody finds a part."""
    gone = copy.with_name(f".removed-{uuid.uuid4().hex[:12]}")
    try:
        copy.rename(gone)
    except FileNotFoundError:
        return  # another process was first
    shutil.rmtree(gone, ignore_errors=True)


def _size_of(copy: Path) -> int:
    total = 0
    for file in copy.rglob("*"):
        try:
            total += file.stat().st_size
        except FileNotFoundError:
            continue
    return total


def _used_at(copy: Path) -> float:
    try:
        return copy.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _sync_all(folder: Path) -> None:
    """Make the names durable; the files are already. A copy must not lose bytes when the host crashes."""
    for each in [folder, *(path for path in folder.rglob("*") if path.is_dir())]:
        sync_folder(each)


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """An exclusive lock, which ends with the process too."""
    with open(file, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _faults(folder: Path) -> Iterator[None]:
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EPERM, errno.ENOTDIR, errno.EDQUOT):
            reason = os.strerror(error.errno)
            raise StorageError(
                f"{folder} cannot hold a local copy: {reason}; set {FOLDER} to a folder with room"
            ) from None
        raise

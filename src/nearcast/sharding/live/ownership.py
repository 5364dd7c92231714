"""One stream to a checkpoint and one to an output, and one driver at a time to each."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import uuid
from pathlib import Path

from nearcast.arrays.files import write_whole
from nearcast.errors import CorruptFile, InvalidInput
from nearcast.storage.location import locate

_LOCK, _NAME = "_lock", "stream"


def mounted_folder(path: str | os.PathLike[str], what: str) -> Path:
    """The local path of a folder. Streams rename folders in it, which object stores cannot."""
    place = locate(path)
    if not place.is_local:
        raise InvalidInput(f"{place.shown}: the {what} of a stream must be on a file system that all workers see")
    return Path(place.path)


class FolderLock:
    """Locks a folder until `close`, or until its process ends."""

    def __init__(self, folder: Path, what: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file: int | None = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.close()
            message = f"another stream uses the {what} {folder} now; end it, or name another {what}"
            raise InvalidInput(message) from None

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    __del__ = close


def claim(mark: Path, stream: str | None, foreign: str) -> str:
    """The stream that the file `mark` names: `stream`, or a new name, if the folder of the file is empty.

    Of several processes that claim a folder at once, one succeeds, and all see its name. `foreign` is said of a folder
    that has other files.
    """
    folder = mark.parent
    folder.mkdir(parents=True, exist_ok=True)
    if not mark.exists():
        check_own(folder, mark.name, foreign)
        content = json.dumps({_NAME: stream or uuid.uuid4().hex}).encode()
        write_whole(mark, content, is_private=False, place=_link_new)
    try:
        return str(json.loads(mark.read_bytes())[_NAME])
    except (ValueError, TypeError, KeyError):
        raise CorruptFile(f"{mark} is damaged; restore it, or name a new folder") from None


def check_own(folder: Path, mark: str, foreign: str = "is not empty and is no stream's") -> None:
    """Refuse a folder that has files but no mark of a stream."""
    if folder.is_file():
        raise InvalidInput(f"{folder} is a file; name a folder")
    others = [entry.name for entry in folder.glob("*") if entry.name[0] != "." and entry.name != _LOCK]
    if others and not (folder / mark).exists():
        raise InvalidInput(f"{folder} {foreign}; name a new folder")


def _link_new(temporary: Path, file: Path) -> None:
    """Give a file its name, unless another file has it: of several processes, one succeeds."""
    with contextlib.suppress(FileExistsError):
        os.link(temporary, file)

"""Finds the change files in a folder and reads each of them once."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from nearcast.errors import DataLoss, InvalidInput
from nearcast.sharding.live.changes import Changes, join_changes, no_changes, read_changes
from nearcast.sharding.normalise import file_reject
from nearcast.tables import Dialect, as_arrow

ENDINGS = (".parquet", ".pq", ".csv", ".csv.gz", ".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz")
"""Of files with messages or changes, in any case."""
SECONDS_TO_WRITE = 10.0
"""An unreadable file that was changed within this time may be incomplete: it waits, and so do all files after it."""


class NewChanges(NamedTuple):
    """What a change log has for a micro-batch."""

    files: list[str]  # that were read now
    known: list[str]  # that were read earlier and still exist
    changes: Changes
    waiting: list[str] = []  # unreadable files that may be incomplete, and all files after them

    @property
    def are_there(self) -> bool:
        return bool(self.files) or self.changes.n_rows > 0 or self.changes.rejects.num_rows > 0


class ChangeFolder:
    """A folder of change files. Files take effect in the order of their names."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._first_seen: dict[str, float] = {}  # of unreadable files
        self._existed = folder.is_dir()

    def read(self, known: Collection[str], dialect: Dialect) -> NewChanges:
        """The files that are not known, read up to the first one that must wait."""
        if self._existed and not self._folder.is_dir():
            raise DataLoss(f"the change log {self._folder} is gone; restore the folder and start the stream again")
        new, still_there = find_change_files(self._folder, known)
        read: list[Changes] = []
        for k, name in enumerate(new):
            changes = self._read(name, dialect)
            if changes is None:
                return NewChanges(new[:k], still_there, join_changes(read), new[k:])
            read.append(changes)
        return NewChanges(new, still_there, join_changes(read))

    def waiting(self, known: Collection[str]) -> Sequence[str]:
        """The files that are not known yet."""
        return find_change_files(self._folder, known)[0]

    def _read(self, name: str, dialect: Dialect) -> Changes | None:
        """The effect of a file, its rejects where it cannot be read, or None if it must wait."""
        try:
            return read_changes(as_arrow(self._folder / name), name, dialect)
        except (InvalidInput, OSError) as error:
            if self._may_be_incomplete(name):
                return None
            return no_changes(file_reject(name, error.reason if isinstance(error, InvalidInput) else str(error)))

    def _may_be_incomplete(self, name: str) -> bool:
        """Whether the file was changed just now. A date in the future says nothing, and must not stall later files."""
        waited = time.monotonic() - self._first_seen.setdefault(name, time.monotonic())
        try:
            age = time.time() - (self._folder / name).stat().st_mtime
        except FileNotFoundError:
            return True  # removed after the listing: not there, so not read
        return max(abs(age), waited) < SECONDS_TO_WRITE


def find_change_files(folder: Path, known: Collection[str]) -> tuple[list[str], list[str]]:
    """(new files in the order of their names, known files that still exist), as paths within the folder."""
    if not folder.is_dir():
        return [], list(known)
    found = sorted(name for name in visible_names(folder) if name.lower().endswith(ENDINGS))
    return [name for name in found if name not in known], [name for name in found if name in known]


def count_other_files(folder: Path) -> int:
    """The number of files whose ending is not one of ENDINGS."""
    return sum(not name.lower().endswith(ENDINGS) for name in visible_names(folder))


def visible_names(folder: Path) -> list[str]:
    """The paths within a folder of all files that no leading dot or underscore hides."""
    names = (file.relative_to(folder).as_posix() for file in folder.rglob("*") if not file.is_dir())
    return [name for name in names if not any(part[0] in "._" for part in name.split("/"))]

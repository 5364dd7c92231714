"""Output folders that are replaced as a whole: written beside their place and renamed into it when complete."""

from __future__ import annotations

import glob
import os
import shutil
import uuid
from pathlib import Path

from nearcast.errors import InvalidInput


class NewFolder:
    """A folder in preparation. `publish` moves it into its place; leaving the block without `publish` removes it.

    Unless `replaces_anything`, a folder that holds other files than a table's is not replaced.
    """

    def __init__(self, place: str | os.PathLike[str], replaces_anything: bool = False) -> None:
        self._place = Path(os.path.abspath(place))
        if not replaces_anything:
            check_replaceable(self._place)
        self._place.parent.mkdir(parents=True, exist_ok=True)
        for left in self._place.parent.glob(f".{glob.escape(self._place.name)}.{'[0-9a-f]' * 8}"):
            shutil.rmtree(left, ignore_errors=True)  # by a run that was killed
        self.path = self._place.with_name(f".{self._place.name}.{uuid.uuid4().hex[:8]}")
        self.path.mkdir()

    def __enter__(self) -> NewFolder:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def publish(self) -> None:
        """Replace the old folder, which is absent only while the new one is renamed."""
        if self._place.exists():
            self._place.rename(self._place.with_name(f"{self.path.name}.old"))
        self.path.rename(self._place)
        for old in self._place.parent.glob(f".{glob.escape(self._place.name)}.{'[0-9a-f]' * 8}.old"):
            shutil.rmtree(old, ignore_errors=True)


def check_replaceable(place: Path) -> None:
    """Refuse to delete what is not a table's: Parquet files, and names with a leading dot or underscore."""
    if "://" in str(place):
        raise InvalidInput(f"{place}: give a path on a file system that all workers see, such as a mounted folder")
    if place.is_file():
        raise InvalidInput(f"{place} is a file; name a folder")
    others = [] if not place.exists() else [entry for entry in place.iterdir() if not _is_of_table(entry)]
    if others:
        raise InvalidInput(f"{place} holds other files, such as {others[0].name}; name an empty or new folder")


def _is_of_table(entry: Path) -> bool:
    return entry.name.startswith((".", "_")) or (entry.is_file() and entry.suffix == ".parquet")

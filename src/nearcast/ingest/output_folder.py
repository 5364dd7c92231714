"""Folders that are replaced as a whole: written beside their place, moved into it when they are done."""

from __future__ import annotations

import glob
import os
import re
import shutil
import uuid
from pathlib import Path

from nearcast.errors import InvalidInput


class NewFolder:
    """A folder in the making. `publish` puts it in its place; leaving without that removes it."""

    def __init__(self, place: str | os.PathLike[str]) -> None:
        self._place = Path(os.path.abspath(place))
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
        """The old folder is out of the way for as long as a rename takes."""
        if self._place.exists():
            self._place.rename(self._place.with_name(f"{self.path.name}.old"))
        self.path.rename(self._place)
        for old in self._place.parent.glob(f".{glob.escape(self._place.name)}.{'[0-9a-f]' * 8}.old"):
            shutil.rmtree(old, ignore_errors=True)


def check_replaceable(place: Path) -> None:
    """Only what a table's folder holds may be deleted: Parquet files and notes with a leading dot or underscore."""
    if "://" in str(place):
        raise InvalidInput(f"{place}: give a path on a file system that all workers see, such as a mounted folder")
    if place.is_file():
        raise InvalidInput(f"{place} is a file; name a folder")
    others = [] if not place.exists() else [entry for entry in place.iterdir() if not _is_ours(entry)]
    if others:
        raise InvalidInput(f"{place} holds other files, such as {others[0].name}; name an empty or new folder")


def _is_ours(entry: Path) -> bool:
    return entry.name.startswith((".", "_")) or (entry.is_file() and entry.suffix == ".parquet")


def spark_path(path: str | os.PathLike[str]) -> str:
    """A local path as Spark takes it: on the local file system whatever its default one is, signs of patterns as they
    are.
    """
    return "file://" + re.sub(r"([\[\]{}*?\\])", r"\\\1", os.path.abspath(path))

"""Output that appears complete or not at all: folders and Parquet files that are renamed into their place."""

from __future__ import annotations

import ctypes
import functools
import glob
import os
import shutil
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.errors import InvalidInput
from nearcast.storage.location import locate

_OLD = ".old"
_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux


class NewFolder:
    """A folder in preparation. `publish` moves it into its place; leaving the block without `publish` removes it.

    Unless `replaces_anything`, a folder that holds other files than a table's is not replaced.
    """

    def __init__(self, place: str | os.PathLike[str], replaces_anything: bool = False) -> None:
        self._place = Path(mounted_path(place))
        if not replaces_anything:
            check_replaceable(self._place)
        self._place.parent.mkdir(parents=True, exist_ok=True)
        self._recover()
        self.path = self._place.with_name(f".{self._place.name}.{uuid.uuid4().hex[:8]}")
        self.path.mkdir()

    def __enter__(self) -> NewFolder:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def publish(self) -> None:
        """Replace the old folder, in one step where the file system can exchange two folders."""
        if not self._place.exists():
            os.rename(self.path, self._place)
        elif not _exchange(self.path, self._place):
            os.rename(self._place, self._place.with_name(f"{self.path.name}{_OLD}"))
            os.rename(self.path, self._place)  # after a kill before this, the next run brings back the old folder
        for old in self._left(_OLD):
            shutil.rmtree(old, ignore_errors=True)

    def _recover(self) -> None:
        """Bring back the old folder if a run was killed between two renames; remove what killed runs left."""
        old = self._left(_OLD)
        if old and not self._place.exists():
            os.rename(max(old, key=os.path.getmtime), self._place)
        for left in self._left():
            shutil.rmtree(left, ignore_errors=True)

    def _left(self, ending: str = "") -> list[Path]:
        return list(self._place.parent.glob(f".{glob.escape(self._place.name)}.{'[0-9a-f]' * 8}{ending}"))


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two folders in one step; False where system or file system cannot."""
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:
        return False
    return bool(renameat2(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0)


def mounted_path(place: str | os.PathLike[str]) -> str:
    """The local path of a folder that is replaced by renaming another one, which object stores cannot."""
    found = locate(place)
    if not found.is_local:
        raise InvalidInput(
            f"{found.shown}: this output must be on a file system that all workers see, such as a mounted folder; "
            "an index, a vocabulary and the tables that are read may be in an object store"
        )
    return found.path


def check_replaceable(place: Path) -> None:
    """Refuse to delete what is not a table's: Parquet files, and names with a leading dot or underscore."""
    if place.is_file():
        raise InvalidInput(f"{place} is a file; name a folder")
    others = [] if not place.exists() else [entry for entry in place.iterdir() if not _is_of_table(entry)]
    if others:
        raise InvalidInput(f"{place} holds other files, such as {others[0].name}; name an empty or new folder")


def _is_of_table(entry: Path) -> bool:
    return entry.name.startswith((".", "_")) or (entry.is_file() and entry.suffix == ".parquet")


class AtomicParquetFile:
    """A Parquet file that appears under its name when it is complete. A task that runs again replaces it."""

    def __init__(self, path: str, schema: pa.Schema) -> None:
        self._path = path
        self._temporary = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.{uuid.uuid4().hex[:8]}")
        self._writer = pq.ParquetWriter(self._temporary, schema, compression="zstd")

    def write(self, table: pa.Table) -> None:
        if table.num_rows:
            self._writer.write_table(table)

    def __enter__(self) -> AtomicParquetFile:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        self._writer.close()
        if kind is None:
            os.replace(self._temporary, self._path)
        else:
            os.unlink(self._temporary)


class UniqueParquetFile:
    """A Parquet file under a unique name, which begins with its first row. Whoever gets the name may publish it.

    The folder is a path or a URL.
    """

    def __init__(self, folder: str, stem: str, schema: pa.Schema) -> None:
        self._name = f"{stem}-{uuid.uuid4().hex}.parquet"
        self._place = locate(folder).child(self._name)
        self._schema = schema
        self.n_rows = 0

    @functools.cached_property
    def _writer(self) -> pq.ParquetWriter:
        if self._place.is_local:
            return pq.ParquetWriter(self._place.path, self._schema, compression="zstd")
        return pq.ParquetWriter(self._place.path, self._schema, compression="zstd", filesystem=self._place.filesystem)

    def write(self, table: pa.Table) -> None:
        if table.num_rows:
            with self._place.faults("written"):
                self._writer.write_table(table)
            self.n_rows += table.num_rows

    def finish(self, is_durable: bool = False) -> str | None:
        """Close the file, on disk if it must be durable; return its name, or None if nothing was written."""
        if not self.n_rows:
            return None
        with self._place.faults("written"):
            self._writer.close()
        if is_durable and self._place.is_local:
            with open(self._place.path, "rb+") as written:
                os.fsync(written.fileno())
        return self._name

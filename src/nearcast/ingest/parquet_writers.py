"""Parquet files that appear complete or not at all, or under a name that nobody else uses."""

from __future__ import annotations

import functools
import os
import uuid
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


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
    """A Parquet file under a unique name, which begins with its first row. Whoever gets the name may publish it."""

    def __init__(self, folder: str, stem: str, schema: pa.Schema) -> None:
        self._name = f"{stem}-{uuid.uuid4().hex}.parquet"
        self._path = os.path.join(folder, self._name)
        self._schema = schema
        self.n_rows = 0

    @functools.cached_property
    def _writer(self) -> pq.ParquetWriter:
        return pq.ParquetWriter(self._path, self._schema, compression="zstd")

    def write(self, table: pa.Table) -> None:
        if table.num_rows:
            self._writer.write_table(table)
            self.n_rows += table.num_rows

    def finish(self, is_durable: bool = False) -> str | None:
        """Close the file, on disk if it must be durable; return its name, or None if nothing was written."""
        if not self.n_rows:
            return None
        self._writer.close()
        if is_durable:
            with open(self._path, "rb+") as written:
                os.fsync(written.fileno())
        return self._name

"""A table that tasks write file by file, at a path or URL: it consists of the files that its list names."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

import pyarrow as pa

from nearcast.ingest.output_folder import UniqueParquetFile
from nearcast.ingest.row_groups import FILES
from nearcast.storage.location import Location

_ROWS = 1 << 17  # of a row group


def write_part(folder: str, stem: str, batches: Iterable[pa.RecordBatch]) -> str | None:
    """Write the rows of a task to a new file; return its name, or None if there are no rows."""
    file: UniqueParquetFile | None = None
    for table in _large_tables(batches):
        if file is None:
            file = UniqueParquetFile(folder, stem, table.schema)
        file.write(table)
    return None if file is None else file.finish(is_durable=True)


def finish_table(folder: Location, names: Iterable[str | None]) -> None:
    """List the files of the tasks that count. Files of attempts that failed are not in the list."""
    folder.child(FILES).write(json.dumps(sorted(name for name in names if name is not None)).encode())


def _large_tables(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        if batch.num_rows:
            waiting.append(batch)
        if sum(each.num_rows for each in waiting) >= _ROWS:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)

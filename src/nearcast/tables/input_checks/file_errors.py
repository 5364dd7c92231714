"""Names the file, and the line of a CSV file, in the errors of a table."""

from __future__ import annotations

import csv
import gzip
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nearcast.errors import ExpressionError, InvalidInput


@contextmanager
def naming_file(source: Any) -> Iterator[None]:
    """Errors within name the file, if `source` is a path or a URL."""
    try:
        yield
    except InvalidInput as error:
        is_path = isinstance(source, str | os.PathLike)
        if not is_path or error.file is not None or isinstance(error, ExpressionError):
            raise
        name = os.fspath(source)
        if name in error.reason:
            raise
        raise error.in_file(str(name), None if error.row is None else _line_of(Path(name), error.row)) from None


def _line_of(path: Path, row: int) -> int | None:
    """The line on which a row of a CSV file begins, as an editor counts; None for other files.

    The header is a line, an empty line is no row, and a quoted value may go over several lines.
    """
    name = path.name.lower()
    if not name.endswith((".csv", ".csv.gz")) or not path.is_file():
        return None
    with gzip.open(path) if name.endswith(".gz") else open(path, "rb") as raw:
        reader = csv.reader(io.TextIOWrapper(raw, "utf-8", errors="replace", newline=""))
        seen, before = -1, 0  # the header is row 0
        for record in reader:
            seen += bool(record)
            if record and seen == row:
                return before + 1
            before = reader.line_num
    return None

"""CSV -> blocks. A record may go on over line ends within quotes; a broken quote costs its own line only.

A line that ends within quotes is joined with those that follow until the quotes close. If that makes a record of
the header's width, it is one; if not, the line alone is a fault and the next line is read as if nothing had been.
"""

from __future__ import annotations

import csv
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.ingest.lines import OPEN_QUOTE, Lines, text_lines
from nearcast.ingest.mapping import Columns
from nearcast.ingest.records import Block, BrokenFile, Fault, printable, reject_all_rows
from nearcast.ingest.sources import Split

MOST_JOINED = 1000  # lines of one record

csv.field_size_limit(2**31 - 1)


class CsvDialect(NamedTuple):
    """How CSV files are written. `header` names the columns of files that have no line of names."""

    delimiter: str = ","
    encoding: str = "utf-8"
    header: tuple[str, ...] | None = None


class Header(NamedTuple):
    names: tuple[str, ...]
    position: int  # its line, from 1; 0 if it is not in the file


class _Parsed(NamedTuple):
    rows: list[list[str]]
    positions: list[int]
    faults: list[Fault]
    n_joined: int  # lines that belong to the record of a line before them
    n_used: int  # lines; the others wait for the next block


def csv_header(path: str, dialect: CsvDialect) -> Header:
    """The names of a file's columns, from its first line that is not empty; none if there is no such line."""
    if dialect.header is not None:
        return Header(dialect.header, 0)
    for lines in text_lines(Split(0, path, "csv"), dialect.encoding):
        if lines.faults and lines.faults[0].position == 1:
            raise BrokenFile(f"the line of column names cannot be read: {lines.faults[0].reason}")
        for text, position in zip(lines.texts, lines.positions, strict=True):
            if text.strip():
                return Header(_names(text, dialect.delimiter), position)
    return Header((), 0)


def _names(text: str, delimiter: str) -> tuple[str, ...]:
    try:
        return tuple(name.strip() for name in next(csv.reader([text], delimiter=delimiter, strict=True)))
    except csv.Error as error:
        raise BrokenFile(f"the line of column names cannot be read: {error}") from None


def csv_blocks(split: Split, columns: Columns, dialect: CsvDialect) -> Iterator[Block]:
    """The records of a split. Those of a file whose header lacks a column that is needed are all faults."""
    header = csv_header(split.path, dialect)
    missing_column = columns.missing_column(header.names)
    texts: list[str] = []
    positions: list[int] = []
    for lines in text_lines(split, dialect.encoding):
        texts, positions = texts + lines.texts, positions + lines.positions
        parsed = _parsed(texts, positions, (len(header.names), dialect.delimiter, lines.is_last))
        texts, positions = texts[parsed.n_used :], positions[parsed.n_used :]
        block = _block(parsed, lines, header, columns)
        yield block if missing_column is None else reject_all_rows(block, missing_column[1], missing_column[0])


def _parsed(texts: list[str], positions: list[int], how: tuple[int, str, bool]) -> _Parsed:
    """All lines in one sweep, if each is a record; else one by one."""
    try:
        rows = list(csv.reader(texts, delimiter=how[1], strict=True))
    except csv.Error:
        rows = []
    if len(rows) == len(texts):
        return _Parsed(rows, positions, [], 0, len(texts))
    return _walked(texts, positions, how)


def _walked(texts: list[str], positions: list[int], how: tuple[int, str, bool]) -> _Parsed:
    width, delimiter, is_last = how
    rows, kept, faults = [], [], []
    at, n_joined = 0, 0
    while at < len(texts):
        reader = csv.reader(_following(texts, positions, at), delimiter=delimiter, strict=True)
        row, error = _next(reader)
        reached_end = at + reader.line_num == len(texts) and reader.line_num < MOST_JOINED
        if error == OPEN_QUOTE and reached_end and not is_last:
            break  # the quotes may close in the next block
        n_lines = reader.line_num
        if n_lines > 1 and (error or len(row) != width):
            n_lines, error = 1, OPEN_QUOTE
        if error:
            faults.append(Fault(positions[at], None, _told(error), printable(texts[at])))
        else:
            rows.append(row)
            kept.append(positions[at])
            n_joined += n_lines - 1
        at += n_lines
    return _Parsed(rows, kept, faults, n_joined, at)


def _following(texts: list[str], positions: list[int], at: int) -> Iterator[str]:
    """Lines that one record may hold: up to a line that was no text, since what is beyond it does not join."""
    for k in range(at, min(at + MOST_JOINED, len(texts))):
        if positions[k] - positions[at] != k - at:
            return
        yield f"{texts[k]}\n"


def _next(reader: Iterator[list[str]]) -> tuple[list[str], str]:
    try:
        return next(reader), ""
    except csv.Error as error:
        return [], str(error)


def _told(error: str) -> str:
    if error == OPEN_QUOTE:
        return "a quote is opened and not closed"
    if error.startswith("new-line character"):
        return "a carriage return within the line, outside of quotes"
    return f"the quotes are broken: {error}"


def _block(parsed: _Parsed, lines: Lines, header: Header, columns: Columns) -> Block:
    rows, positions, faults = parsed.rows, parsed.positions, lines.faults + parsed.faults
    n_read = lines.n_read - parsed.n_joined
    at = bisect_left(positions, header.position)
    if at < len(positions) and positions[at] == header.position:
        rows, positions, n_read = rows[:at] + rows[at + 1 :], positions[:at] + positions[at + 1 :], n_read - 1
    width = len(header.names)
    if any(len(row) != width for row in rows):
        faults = faults + [
            Fault(position, None, _width_reason(row, width), printable(",".join(row)))
            for row, position in zip(rows, positions, strict=True)
            if len(row) != width
        ]
        positions = [position for row, position in zip(rows, positions, strict=True) if len(row) == width]
        rows = [row for row in rows if len(row) == width]
    return Block(_table(rows, header.names, columns), np.array(positions, np.int64), faults, n_read)


def _width_reason(row: list[str], width: int) -> str:
    if not any(cell.strip() for cell in row) and len(row) < 2:
        return "an empty line"
    return f"the line has {len(row)} fields, the header has {width}"


def _table(rows: list[list[str]], names: tuple[str, ...], columns: Columns) -> pa.Table:
    """An empty field is a null, whatever it is of."""
    cells = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    made = {}
    for target, sources in columns.sources.items():
        there = [pa.array(cells[names.index(name)], pa.string()) for name in sources if name in names]
        there = [pc.if_else(pc.equal(values, ""), None, values) for values in there]
        made[target] = join_texts(there, len(rows))
    return pa.table(made)


def join_texts(values: list[pa.Array], n_rows: int) -> pa.Array:
    """Texts side by side become one, with a space between; nulls are passed over."""
    if not values:
        return pa.nulls(n_rows, pa.string())
    if len(values) == 1:
        return values[0]
    together = pc.binary_join_element_wise(*values, " ", null_handling="skip")
    return pc.if_else(pc.equal(together, ""), None, together)

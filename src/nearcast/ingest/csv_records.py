"""CSV -> blocks. A quoted field may contain line ends; a broken quote makes a fault of its own line only.

A line that ends within quotes is joined with the next lines until the quotes close. If the result has as many fields as
the header, it is one record. Otherwise the first line alone is a fault, and reading continues with the next line.
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
from nearcast.ingest.sources import Split, delimiter_of

MOST_JOINED = 1000  # lines per record

csv.field_size_limit(2**31 - 1)


class TextFormat(NamedTuple):
    """The format of text files. `header` names the columns of CSV files without a header line."""

    delimiter: str | None = None  # None: by the ending of the file
    encoding: str = "utf-8"
    header: tuple[str, ...] | None = None


class Header(NamedTuple):
    names: tuple[str, ...]
    position: int  # its line, from 1; 0 if the file has none


class _Parsed(NamedTuple):
    rows: list[list[str]]
    positions: list[int]
    faults: list[Fault]
    n_joined: int  # lines that belong to the record of an earlier line
    n_used: int  # lines; the rest is parsed with the next block


def csv_header(path: str, text_format: TextFormat) -> Header:
    """The names of a file's columns, from its first line that is not empty; no names if there is no such line."""
    if text_format.header is not None:
        return Header(text_format.header, 0)
    delimiter = delimiter_of(path, text_format.delimiter)
    for lines in text_lines(Split(0, path, "csv"), text_format.encoding):
        if lines.faults and lines.faults[0].position == 1:
            raise BrokenFile(f"the line of column names cannot be read: {lines.faults[0].reason}")
        for text, position in zip(lines.texts, lines.positions, strict=True):
            if text.strip():
                names, error = _next(csv.reader([text], delimiter=delimiter, strict=True))
                if error:
                    raise BrokenFile(f"the line of column names cannot be read: {error}")
                return Header(tuple(name.strip() for name in names), position)
    return Header((), 0)


def csv_blocks(split: Split, columns: Columns, text_format: TextFormat) -> Iterator[Block]:
    """The records of a split. If the header lacks a required column, all records are faults."""
    header = csv_header(split.path, text_format)
    delimiter = delimiter_of(split.path, text_format.delimiter)
    missing_column = columns.missing_column(header.names)
    texts: list[str] = []
    positions: list[int] = []
    for lines in text_lines(split, text_format.encoding):
        texts, positions = texts + lines.texts, positions + lines.positions
        parsed = _parse(texts, positions, (len(header.names), delimiter, lines.is_last))
        texts, positions = texts[parsed.n_used :], positions[parsed.n_used :]
        yield reject_all_rows(_block(parsed, lines, header, columns), missing_column)


def _parse(texts: list[str], positions: list[int], layout: tuple[int, str, bool]) -> _Parsed:
    """Parse all lines at once if each is a record; otherwise one by one."""
    try:
        rows = list(csv.reader(texts, delimiter=layout[1], strict=True))
    except csv.Error:
        rows = []
    if len(rows) == len(texts):
        return _Parsed(rows, positions, [], 0, len(texts))
    return _parse_one_by_one(texts, positions, layout)


def _parse_one_by_one(texts: list[str], positions: list[int], layout: tuple[int, str, bool]) -> _Parsed:
    width, delimiter, is_last = layout
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
            faults.append(Fault(positions[at], None, _quote_reason(error), printable(texts[at])))
        else:
            rows.append(row)
            kept.append(positions[at])
            n_joined += n_lines - 1
        at += n_lines
    return _Parsed(rows, kept, faults, n_joined, at)


def _following(texts: list[str], positions: list[int], at: int) -> Iterator[str]:
    """The lines that one record may consist of: they end at a line that could not be decoded."""
    for k in range(at, min(at + MOST_JOINED, len(texts))):
        if positions[k] - positions[at] != k - at:
            return
        yield f"{texts[k]}\n"


def _next(reader: Iterator[list[str]]) -> tuple[list[str], str]:
    try:
        return next(reader), ""
    except csv.Error as error:
        return [], str(error)


def _quote_reason(error: str) -> str:
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
        uneven = [(row, at) for row, at in zip(rows, positions, strict=True) if len(row) != width]
        faults = faults + [Fault(at, None, _width_reason(row, width), printable(",".join(row))) for row, at in uneven]
        positions = [at for row, at in zip(rows, positions, strict=True) if len(row) == width]
        rows = [row for row in rows if len(row) == width]
    return Block(_table(rows, header.names, columns), np.array(positions, np.int64), faults, n_read)


def _width_reason(row: list[str], width: int) -> str:
    if not any(cell.strip() for cell in row) and len(row) < 2:
        return "an empty line"
    return f"the line has {len(row)} fields, the header has {width}"


def _table(rows: list[list[str]], names: tuple[str, ...], columns: Columns) -> pa.Table:
    """The records as a table. An empty field is null in every column."""
    cells = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    made = {}
    for target, sources in columns.sources.items():
        there = [pa.array(cells[names.index(name)], pa.string()) for name in sources if name in names]
        there = [pc.if_else(pc.equal(values, ""), None, values) for values in there]
        made[target] = join_texts(there, len(rows))
    return pa.table(made)


def join_texts(values: list[pa.Array], n_rows: int) -> pa.Array:
    """One text per row: the values of several columns joined by spaces; nulls are skipped."""
    if not values:
        return pa.nulls(n_rows, pa.string())
    if len(values) == 1:
        return values[0]
    together = pc.binary_join_element_wise(*values, " ", null_handling="skip")
    return pc.if_else(pc.equal(together, ""), None, together)

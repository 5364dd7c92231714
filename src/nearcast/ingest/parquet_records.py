"""Parquet -> blocks. Values keep their types; only text is checked, since some writers store text that is not UTF-8."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nearcast.ingest.csv_records import join_texts
from nearcast.ingest.mapping import Columns
from nearcast.ingest.records import Block, BrokenFile, Fault, printable, reject_all_rows
from nearcast.ingest.sources import Split

BLOCK_ROWS = 65_536
_TEXT_KINDS = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view")


def parquet_names(path: str) -> list[str]:
    try:
        return list(pq.read_schema(path).names)
    except (pa.ArrowException, OSError) as error:
        raise BrokenFile(f"the file is no Parquet: {error}") from None


def parquet_blocks(split: Split, columns: Columns) -> Iterator[Block]:
    names = parquet_names(split.path)
    missing_column = columns.missing_column(names)
    wanted = [name for name in columns.names if names.count(name) == 1]
    position = split.first_position
    try:
        with pq.ParquetFile(split.path) as file:
            for batch in file.iter_batches(BLOCK_ROWS, row_groups=split.row_groups, columns=wanted or names[:1]):
                yield reject_all_rows(_block(pa.Table.from_batches([batch]), columns, position), missing_column)
                position += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        raise BrokenFile(f"the file cannot be read on: {error}") from None


def _block(table: pa.Table, columns: Columns, first: int) -> Block:
    positions = np.arange(first, first + table.num_rows)
    made: dict[str, pa.Array] = {}
    faulty: dict[int, Fault] = {}
    for target, sources in columns.sources.items():
        there = []
        for name in sources:
            if name in table.column_names:
                values, broken = _checked(table[name].combine_chunks())
                there.append(values if len(sources) == 1 else values.cast(pa.string()))
                for row, record in broken.items():
                    faulty.setdefault(row, Fault(first + row, target, "the text is not UTF-8", record))
        made[target] = join_texts(there, table.num_rows)
    is_good = np.ones(table.num_rows, bool)
    is_good[list(faulty)] = False
    rows = pa.table(made).filter(pa.array(is_good)) if faulty else pa.table(made)
    return Block(rows, positions[is_good], list(faulty.values()), table.num_rows)


def _checked(values: pa.Array) -> tuple[pa.Array, dict[int, str]]:
    """(the values, binary ones as text and invalid ones null; the records of the invalid ones, by row)."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    kind = values.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _checked_lists(values)
    if not any(getattr(pa.types, f"is_{kind_name}")(kind) for kind_name in _TEXT_KINDS):
        return values, {}
    as_bytes = values.cast(pa.large_binary())
    try:
        return as_bytes.cast(pa.large_string()), {}
    except pa.ArrowInvalid:
        raw = as_bytes.to_pylist()
        texts = [_decoded(value) for value in raw]
        broken = {row: printable(value) for row, value in enumerate(raw) if value is not None and texts[row] is None}
        return pa.array(texts, pa.large_string()), broken


def _checked_lists(values: pa.Array) -> tuple[pa.Array, dict[int, str]]:
    try:
        values.validate(full=True)
        return values, {}
    except pa.ArrowInvalid:
        broken = {row: "" for row in range(len(values)) if not _is_valid(values.slice(row, 1))}
        is_good = np.ones(len(values), bool)
        is_good[list(broken)] = False
        return pc.if_else(pa.array(is_good), values, None), broken


def _is_valid(value: pa.Array) -> bool:
    try:
        pa.concat_arrays([value]).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _decoded(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None

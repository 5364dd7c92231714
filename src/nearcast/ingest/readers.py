"""Picks the reader of a raw file by its format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nearcast.ingest.csv_records import TextFormat, csv_blocks, csv_header
from nearcast.ingest.json_records import json_blocks, json_names
from nearcast.ingest.mapping import Columns
from nearcast.ingest.parquet_records import parquet_blocks, parquet_names
from nearcast.ingest.records import Block, BrokenFile
from nearcast.ingest.sources import Source, Split

_SAMPLED_FILES = 20


def read_blocks(split: Split, columns: Columns, text_format: TextFormat) -> Iterator[Block]:
    if split.format == "parquet":
        return parquet_blocks(split, columns)
    if split.format == "jsonl":
        return json_blocks(split, columns, text_format.encoding)
    return csv_blocks(split, columns, text_format)


def column_names_of(sources: Sequence[Source], text_format: TextFormat) -> list[str]:
    """The columns of the first files. An unreadable file is skipped here; its task reports the fault."""
    names: dict[str, None] = {}
    for source in sources[:_SAMPLED_FILES]:
        try:
            names |= dict.fromkeys(_names(source, text_format))
        except BrokenFile:
            continue
    return list(names)


def _names(source: Source, text_format: TextFormat) -> Sequence[str]:
    if source.format == "parquet":
        return parquet_names(source.path)
    if source.format == "jsonl":
        return json_names(source.path, text_format.encoding)
    return csv_header(source.path, text_format).names

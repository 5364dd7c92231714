"""The first steps of an ingest: which columns the raw files have, and into which parts they are cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from nearcast.errors import InvalidInput
from nearcast.ingest.csv_records import CsvDialect, csv_header
from nearcast.ingest.json_records import json_names
from nearcast.ingest.lines import Surveyed, survey
from nearcast.ingest.mapping import JOINER, RARE
from nearcast.ingest.parquet_records import parquet_names
from nearcast.ingest.records import BrokenFile
from nearcast.ingest.sources import (
    Part,
    Range,
    Source,
    Split,
    delimiter_of,
    parts_of,
    ranges_of,
    row_group_splits,
    split_size,
    wanted_size,
    whole,
)
from nearcast.spark.runtime.session import cores_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SAMPLED_FILES = 20


class TextFormat(NamedTuple):
    """The format of text files. A delimiter of None follows from the ending of the file."""

    delimiter: str | None
    encoding: str
    header: tuple[str, ...] | None


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
    dialect = CsvDialect(delimiter_of(source.path, text_format.delimiter), text_format.encoding, text_format.header)
    return csv_header(source.path, dialect).names


def check_mapping(mapping: Mapping[str, str], sources: Sequence[Source], there: Sequence[str]) -> None:
    """Refuse raw columns that no file has: a misspelt name would reject every record. A JSON key may be rare."""
    is_json = any(source.format == "jsonl" for source in sources)
    for target, source in mapping.items():
        if not there or (is_json and target in RARE):
            continue
        parts = {source} if source in there or target != "text" else {*source.split(JOINER)}
        if missing := sorted(parts - {*there}):
            raise InvalidInput(f"'{target}': no file has a column '{missing[0]}'; they have {', '.join(there)}")


def cut_into_parts(
    session: SparkSession, sources: Sequence[Source], text_format: TextFormat, largest: int
) -> list[Part]:
    """Parts of about the same size, in the order of the files. Tasks survey large plain files first."""
    size = wanted_size(sources, cores_of(session), largest)
    ranges = [found for source in sources for found in ranges_of(source, size)]
    cut = _cut(ranges, _surveyed(session, ranges, text_format))
    splits: list[Split] = []
    for source in sources:
        if source.format == "parquet":
            splits += row_group_splits(source, size)
        else:
            splits += cut.get(source.number) or [whole(source)]
    sizes = {source.number: source.size for source in sources}
    return parts_of(splits, size, lambda split: split_size(split, sizes[split.source]))


def _surveyed(session: SparkSession, ranges: list[Range], text_format: TextFormat) -> list[Surveyed]:
    if not ranges:
        return []

    def look(found: Range) -> Surveyed:
        delimiter = delimiter_of(found.path, text_format.delimiter) if found.format == "csv" else None
        return survey(found.path, found.start, found.stop, delimiter)

    return session.sparkContext.parallelize(ranges, len(ranges)).map(look).collect()


def _cut(ranges: list[Range], surveyed: list[Surveyed]) -> dict[int, list[Split]]:
    """The splits of each source, at line ends. A file whose records may contain line ends stays whole."""
    splits: dict[int, list[Split]] = {}
    whole_sources = {found.source for found, lines in zip(ranges, surveyed, strict=True) if lines.leaves_open}
    position: dict[int, int] = {}
    stops = [lines.start for lines in surveyed[1:]]
    for k, (found, lines) in enumerate(zip(ranges, surveyed, strict=True)):
        is_last = k + 1 == len(ranges) or ranges[k + 1].source != found.source
        first = position.get(found.source, 1)
        position[found.source] = first + lines.n_lines
        stop = found.stop if is_last else stops[k]
        if lines.n_lines and found.source not in whole_sources:
            split = Split(found.source, found.path, found.format, lines.start, stop, first)
            splits.setdefault(found.source, []).append(split)
    return splits

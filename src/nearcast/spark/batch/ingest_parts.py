"""Cuts the raw files of an ingest into parts; tasks count the lines of large files first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nearcast.ingest.lines import Surveyed, survey
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


def cut_into_parts(session: SparkSession, sources: Sequence[Source], delimiter: str | None, largest: int) -> list[Part]:
    """Parts of about the same size, in the order of the files. Tasks survey large plain files first."""
    size = wanted_size(sources, cores_of(session), largest)
    ranges = [found for source in sources for found in ranges_of(source, size)]
    cut = _cut(ranges, _surveyed(session, ranges, delimiter))
    splits: list[Split] = []
    for source in sources:
        if source.format == "parquet":
            splits += row_group_splits(source, size)
        else:
            splits += cut.get(source.number) or [whole(source)]
    sizes = {source.number: source.size for source in sources}
    return parts_of(splits, size, lambda split: split_size(split, sizes[split.source]))


def _surveyed(session: SparkSession, ranges: list[Range], delimiter: str | None) -> list[Surveyed]:
    if not ranges:
        return []

    def look(found: Range) -> Surveyed:
        used = delimiter_of(found.path, delimiter) if found.format == "csv" else None
        return survey(found.path, found.start, found.stop, used)

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

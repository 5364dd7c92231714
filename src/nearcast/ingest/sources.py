"""Finds the raw files, and cuts them into parts of about the same size."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.errors import InvalidInput

FORMATS = {
    "csv": (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz"),
    "jsonl": (".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz", ".json", ".json.gz"),
    "parquet": (".parquet", ".pq"),
}
_GZIP_RATIO = 4  # uncompressed over compressed bytes: 3.3-4.1 on the real data sets


class Source(NamedTuple):
    """One raw file."""

    number: int  # in the order of the given sources, then by name
    path: str
    format: str
    size: int  # bytes on disk


class Split(NamedTuple):
    """A piece of one file, for one reader."""

    source: int
    path: str
    format: str
    start: int = 0  # bytes
    stop: int | None = None  # None: to the end
    first_position: int = 1  # the number of its first line or row within the file, from 1
    row_groups: tuple[int, ...] | None = None  # Parquet; None: all

    @property
    def is_gzip(self) -> bool:
        return self.path.lower().endswith(".gz")


class Part(NamedTuple):
    """What one task reads and writes as one file. Successive parts hold the records in the order of the files."""

    number: int
    splits: tuple[Split, ...]


def find_sources(sources: Sequence[str], fmt: str | None) -> list[Source]:
    """The files that these paths, folders and patterns name, each once."""
    if fmt is not None and fmt not in FORMATS:
        raise InvalidInput(f"no format '{fmt}'; there are {', '.join(FORMATS)}")
    paths = dict.fromkeys(os.path.abspath(path) for source in sources for path in _files(os.fspath(source)))
    return [Source(k, path, fmt or _format(path), os.path.getsize(path)) for k, path in enumerate(paths)]


def _files(source: str) -> list[str]:
    if "://" in source:
        raise InvalidInput(f"{source}: give a path on a file system that all workers see, such as a mounted folder")
    if os.path.isdir(source):
        found = sorted(_below(source))
    elif os.path.exists(source):
        found = [source]
    else:
        found = sorted(path for path in glob.glob(source, recursive=True) if os.path.isfile(path))
    if not found:
        raise InvalidInput(f"{source}: no such file")
    return found


def _below(folder: str) -> Iterable[str]:
    """All files below a folder but those with a leading dot or underscore, which are not data."""
    for here, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        yield from (os.path.join(here, name) for name in files if not name.startswith((".", "_")))


def _format(path: str) -> str:
    for fmt, endings in FORMATS.items():
        if path.lower().endswith(endings):
            return fmt
    raise InvalidInput(f"{path} has no known ending; name its format ({', '.join(FORMATS)}) or leave it out")


def delimiter_of(path: str, given: str | None) -> str:
    return given or ("\t" if path.lower().endswith((".tsv", ".tsv.gz")) else ",")


class Range(NamedTuple):
    """A range of bytes of a plain text file, not yet aligned to line ends."""

    source: int
    path: str
    format: str
    start: int
    stop: int


def wanted_size(sources: Sequence[Source], n_cores: int, largest: int) -> int:
    """Bytes per part: two parts per core, at least 1 MiB (a task costs 8 ms), at most `largest`."""
    return max(min(largest, _total(sources) // (2 * n_cores)), min(largest, 1 << 20))


def _total(sources: Sequence[Source]) -> int:
    return sum(source.size * (_GZIP_RATIO if source.path.lower().endswith(".gz") else 1) for source in sources)


def ranges_of(source: Source, size: int) -> list[Range]:
    """Equal ranges of a large plain text file; none for other files."""
    if source.format == "parquet" or source.path.lower().endswith(".gz") or source.size < 2 * size:
        return []
    starts = [*range(0, source.size - size // 2, size), source.size]
    pairs = zip(starts[:-1], starts[1:], strict=True)
    return [Range(source.number, source.path, source.format, start, stop) for start, stop in pairs]


def whole(source: Source) -> Split:
    stop = None if source.path.lower().endswith(".gz") or source.format == "parquet" else source.size
    return Split(source.number, source.path, source.format, 0, stop)


def row_group_splits(source: Source, size: int) -> list[Split]:
    """A large Parquet file cut at row groups. An unreadable file stays whole: its reader reports the fault."""
    if source.size < 2 * size:
        return [whole(source)]
    try:
        metadata = pq.read_metadata(source.path)
    except (pa.ArrowException, OSError):
        return [whole(source)]
    splits, groups, n_bytes, first, position = [], [], 0, 1, 1
    for group in range(metadata.num_row_groups):
        groups.append(group)
        n_bytes += source.size // metadata.num_row_groups
        position += metadata.row_group(group).num_rows
        if n_bytes >= size or group == metadata.num_row_groups - 1:
            splits.append(whole(source)._replace(first_position=first, row_groups=tuple(groups)))
            groups, n_bytes, first = [], 0, position
    return splits or [whole(source)]


def parts_of(splits: Sequence[Split], size: int, size_of: Callable[[Split], int]) -> list[Part]:
    """Group neighbouring splits into parts, so that ten thousand small files do not become ten thousand tasks."""
    parts: list[Part] = []
    mine: list[Split] = []
    n_bytes = 0
    for split in splits:
        if mine and n_bytes + size_of(split) > size:
            parts.append(Part(len(parts), tuple(mine)))
            mine, n_bytes = [], 0
        mine.append(split)
        n_bytes += size_of(split)
    return [*parts, Part(len(parts), tuple(mine))] if mine else parts


def split_size(split: Split, source_size: int) -> int:
    """The uncompressed bytes of a split, approximately."""
    if split.stop is not None:
        return split.stop - split.start
    return source_size * (_GZIP_RATIO if split.is_gzip else 1)

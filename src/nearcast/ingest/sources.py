"""Finds the raw files, and cuts them into parts of about the same size."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.errors import InvalidInput
from nearcast.storage.location import is_url, locate

FORMATS = {
    "csv": (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz"),
    "jsonl": (".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz", ".json", ".json.gz"),
    "parquet": (".parquet", ".pq"),
}
T = TypeVar("T")
_GZIP_RATIO = 4  # uncompressed over compressed bytes: 3.3-4.1 on the real data sets


class Source(NamedTuple):
    """One raw file."""

    number: int  # in the order of the given sources, then by name
    path: str
    format: str
    size: int  # bytes on disk

    @property
    def is_gzip(self) -> bool:
        return self.path.lower().endswith(".gz")

    @property
    def plain_size(self) -> int:
        """Bytes when uncompressed, approximately."""
        return self.size * (_GZIP_RATIO if self.is_gzip else 1)


class Split(NamedTuple):
    """A piece of one file, for one reader. In ranges of a text file, `start` and `stop` may not be at line ends yet."""

    source: int
    path: str
    format: str
    start: int = 0  # bytes
    stop: int | None = None  # None: to the end
    first_position: int = 1  # the number of its first line or row within the file, from 1
    row_groups: tuple[int, ...] | None = None  # Parquet; None: all


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
    source = local_source(source)
    if os.path.isdir(source):
        found = sorted(map(str, visible_files(Path(source))))
    elif os.path.exists(source):
        found = [source]
    else:
        found = sorted(path for path in glob.glob(source, recursive=True) if os.path.isfile(path))
    if not found:
        raise InvalidInput(f"{source}: no such file")
    return found


def local_source(source: str) -> str:
    """A path or pattern of raw files; a file:/// URL as a path. Raw files elsewhere are refused."""
    if not is_url(source):
        return source
    place = locate(source)
    if not place.is_local:
        remedy = "read them with Spark and build from the DataFrame (nearcast.spark.build_index)"
        raise InvalidInput(f"{place.shown}: raw files are on a file system that all workers see; {remedy}")
    return place.path


def visible_files(folder: Path) -> Iterator[Path]:
    """All files below a folder but those with a leading dot or underscore in their path, which are not data."""
    for file in folder.rglob("*"):
        if file.is_file() and not any(part.startswith((".", "_")) for part in file.relative_to(folder).parts):
            yield file


def _format(path: str) -> str:
    for fmt, endings in FORMATS.items():
        if path.lower().endswith(endings):
            return fmt
    raise InvalidInput(f"{path} has no known ending; name its format ({', '.join(FORMATS)}) or leave it out")


def delimiter_of(path: str, given: str | None) -> str:
    return given or ("\t" if path.lower().endswith((".tsv", ".tsv.gz")) else ",")


def wanted_size(sources: Sequence[Source], n_cores: int, largest: int) -> int:
    """Bytes per part: two parts per core, at least 1 MiB (a task costs 8 ms), at most `largest`."""
    total = sum(source.plain_size for source in sources)
    return max(min(largest, total // (2 * n_cores)), min(largest, 1 << 20))


def ranges_of(source: Source, size: int) -> list[Split]:
    """Equal ranges of a large plain text file; none for other files."""
    if source.format == "parquet" or source.is_gzip or source.size < 2 * size:
        return []
    starts = [*range(0, source.size - size // 2, size), source.size]
    return [whole(source)._replace(start=start, stop=stop) for start, stop in pairwise(starts)]


def whole(source: Source) -> Split:
    stop = None if source.is_gzip or source.format == "parquet" else source.size
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


def parts_of(sources: Sequence[Source], size: int, cut: Mapping[int, list[Split]]) -> list[Part]:
    """Parts of about this size, in the order of the files. `cut` are the splits of large text files, by source.

    Neighbouring splits are grouped, so that ten thousand small files do not become ten thousand tasks.
    """
    splits: list[Split] = []
    for source in sources:
        is_parquet = source.format == "parquet"
        splits += row_group_splits(source, size) if is_parquet else cut.get(source.number, [whole(source)])
    sizes = {source.number: source.plain_size for source in sources}

    def size_of(split: Split) -> tuple[int]:
        return (sizes[split.source] if split.stop is None else split.stop - split.start,)

    return [Part(k, tuple(group)) for k, group in enumerate(group_neighbours(splits, size_of, (size,)))]


def group_neighbours(
    items: Iterable[T], sizes_of: Callable[[T], tuple[int, ...]], most: tuple[int, ...]
) -> list[list[T]]:
    """Groups of neighbouring items whose sizes add up to at most `most`. A larger item is a group of its own."""
    groups: list[list[T]] = []
    totals = (0,) * len(most)
    for item in items:
        sizes = sizes_of(item)
        totals = tuple(map(sum, zip(totals, sizes, strict=True)))
        if not groups or any(total > limit for total, limit in zip(totals, most, strict=True)):
            groups.append([])
            totals = sizes
        groups[-1].append(item)
    return groups

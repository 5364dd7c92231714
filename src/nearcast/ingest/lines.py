"""Lines of text files, plain or gzipped, of the whole file or a range of bytes, read block by block."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import IO, NamedTuple, cast

from nearcast.ingest.records import BrokenFile, Fault, printable
from nearcast.ingest.sources import Split

BLOCK_BYTES = 1 << 22
LONGEST_LINE = 1 << 24
"""Bytes. A longer line is a fault: most likely the file has no line ends at all."""

_BOM = b"\xef\xbb\xbf"
_WIDE_BOMS = (b"\xff\xfe", b"\xfe\xff")


class Lines(NamedTuple):
    """Consecutive lines of a file without their ends; lines that cannot be decoded are faults."""

    texts: list[str]
    positions: list[int]  # line numbers, from 1
    faults: list[Fault]
    n_read: int  # counted by the line ends in the bytes
    is_last: bool


def open_bytes(path: str) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path, "rb")) if path.lower().endswith(".gz") else open(path, "rb")


def text_lines(split: Split, encoding: str) -> Iterator[Lines]:
    """The lines of a split, in blocks. Raises BrokenFile where the file cannot be read further."""
    position = split.first_position
    previous: Lines | None = None
    try:
        for raw in _whole_lines(split):
            if position == 1:
                raw = _without_bom(raw)
            if previous is not None:
                yield previous
            previous = _decoded(raw, position, encoding)
            position += previous.n_read
    except BrokenFile:
        if previous is not None:  # the lines before the break are kept
            yield previous._replace(is_last=True)
        raise
    if previous is not None:
        yield previous._replace(is_last=True)


def _whole_lines(split: Split) -> Iterator[bytes]:
    """Blocks of whole lines, without the end of the last line. Of a line beyond LONGEST_LINE, the rest is dropped."""
    carried = b""
    for chunk in _chunks(split):
        end = chunk.rfind(b"\n")
        if end < 0:
            carried = (carried + chunk)[: LONGEST_LINE + 1]
            continue
        yield carried + chunk[:end]
        carried = chunk[end + 1 :]
    if carried:
        yield carried


def _chunks(split: Split) -> Iterator[bytes]:
    """The bytes of a split in chunks. A gzipped file has no ranges: its stop is None."""
    try:
        with open_bytes(split.path) as file:
            if split.start:
                file.seek(split.start)
            left = split.stop - split.start if split.stop is not None else None
            while chunk := file.read(BLOCK_BYTES if left is None else min(BLOCK_BYTES, left)):
                left = None if left is None else left - len(chunk)
                yield chunk
    except (OSError, EOFError, zlib.error) as error:
        raise BrokenFile(f"the file cannot be read on: {error}") from None


def _without_bom(raw: bytes) -> bytes:
    if raw.startswith(_WIDE_BOMS):
        raise BrokenFile("the file is UTF-16; convert it to UTF-8")
    return raw.removeprefix(_BOM)


def _decoded(raw: bytes, first: int, encoding: str) -> Lines:
    """Decode the whole block at once, or line by line if that fails."""
    n_read = raw.count(b"\n") + 1
    positions = list(range(first, first + n_read))
    if len(raw) <= LONGEST_LINE:
        try:
            texts = [line.removesuffix("\r") for line in raw.decode(encoding).split("\n")]
            return Lines(texts, positions, [], n_read, False)
        except UnicodeDecodeError:
            pass
    texts, kept, faults = [], [], []
    for position, line in zip(positions, raw.split(b"\n"), strict=True):
        try:
            if len(line) > LONGEST_LINE:
                faults.append(Fault(position, None, f"a line longer than {LONGEST_LINE:,} bytes", printable(line)))
                continue
            texts.append(line.decode(encoding).removesuffix("\r"))
            kept.append(position)
        except UnicodeDecodeError as error:
            reason = f"the line is not {encoding}: byte 0x{line[error.start]:02x} at byte {error.start + 1} of the line"
            faults.append(Fault(position, None, reason, printable(line)))
    return Lines(texts, kept, faults, n_read, False)


class Surveyed(NamedTuple):
    """The lines of a range of bytes: counts for exact line numbers, and whether it may be cut at any line end."""

    start: int  # of the first line that begins in the range
    n_lines: int
    leaves_open: bool  # a line ends within quotes: its record may continue in the next line


def survey(path: str, start: int, stop: int, delimiter: str | None) -> Surveyed:
    """Count the lines that begin in bytes start..stop-1 (0.2 us per line). `delimiter` is None for JSON."""
    n_lines, leaves_open = 0, False
    with open(path, "rb") as file:
        at = start
        if start:
            file.seek(start - 1)
            at = start - 1 + _rest_of_line(file)
        first = at
        while at < stop and (line := file.readline(LONGEST_LINE)):
            n_lines += 1
            at += len(line)
            if delimiter is not None and line.count(b'"') & 1:
                leaves_open |= _is_open(line, delimiter)
            if not line.endswith(b"\n"):
                at += _rest_of_line(file)
    return Surveyed(first, n_lines, leaves_open)


def cut_at_lines(ranges: Sequence[Split], surveyed: Sequence[Surveyed]) -> dict[int, list[Split]]:
    """The ranges of each source, cut at line ends. A file whose records may contain line ends stays whole."""
    splits: dict[int, list[Split]] = {}
    for source, group in groupby(zip(ranges, surveyed, strict=True), lambda pair: pair[0].source):
        pairs = list(group)
        if any(lines.leaves_open for _, lines in pairs):
            continue
        stops = [*(lines.start for _, lines in pairs[1:]), pairs[-1][0].stop]
        position = 1
        for (part, lines), stop in zip(pairs, stops, strict=True):
            if lines.n_lines:
                split = part._replace(start=lines.start, stop=stop, first_position=position)
                splits.setdefault(source, []).append(split)
            position += lines.n_lines
    return splits


def _rest_of_line(file: IO[bytes]) -> int:
    n_bytes = 0
    while piece := file.readline(LONGEST_LINE):
        n_bytes += len(piece)
        if piece.endswith(b"\n"):
            break
    return n_bytes


def _is_open(line: bytes, delimiter: str) -> bool:
    try:
        list(csv.reader([line.decode("latin-1")], delimiter=delimiter, strict=True))
    except csv.Error as error:
        return str(error) == OPEN_QUOTE
    return False


OPEN_QUOTE = "unexpected end of data"
"""The csv module's message if the text ends within quotes."""

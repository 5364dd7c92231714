"""Lines of text files, plain or gzipped, whole or a range of bytes; a file's size never counts, only a block's."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator
from typing import IO, NamedTuple, cast

from nearcast.ingest.records import BrokenFile, Fault, printable
from nearcast.ingest.sources import Split

BLOCK_BYTES = 1 << 22
LONGEST_LINE = 1 << 24
"""Bytes. A longer one is a fault: most likely the file has no line ends at all."""

_BOM = b"\xef\xbb\xbf"
_WIDE_BOMS = (b"\xff\xfe", b"\xfe\xff")


class Lines(NamedTuple):
    """Some lines of a file in order, without their ends; those that are no text are faults."""

    texts: list[str]
    positions: list[int]  # line numbers, from 1
    faults: list[Fault]
    n_read: int  # by the line ends in the bytes
    is_last: bool


def open_bytes(path: str) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path, "rb")) if path.lower().endswith(".gz") else open(path, "rb")


def text_lines(split: Split, encoding: str) -> Iterator[Lines]:
    """The lines of a split, in blocks. Raises BrokenFile where the file cannot be read on."""
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
        if previous is not None:  # what came before stands
            yield previous._replace(is_last=True)
        raise
    if previous is not None:
        yield previous._replace(is_last=True)


def _whole_lines(split: Split) -> Iterator[bytes]:
    """Blocks of whole lines, without the last line's end. Of a line past all bounds only the beginning is kept."""
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
    """A gzipped file has no ranges: its stop is None."""
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
    """One decoding for the whole block; line by line only where that fails."""
    n_read = raw.count(b"\n") + 1
    positions = list(range(first, first + n_read))
    if len(raw) <= LONGEST_LINE:
        try:
            return Lines(_unended(raw.decode(encoding).split("\n")), positions, [], n_read, False)
        except UnicodeDecodeError:
            pass
    texts, kept, faults = [], [], []
    for position, line in zip(positions, raw.split(b"\n"), strict=True):
        try:
            if len(line) > LONGEST_LINE:
                faults.append(Fault(position, None, f"a line longer than {LONGEST_LINE:,} bytes", printable(line)))
                continue
            texts.append(line.decode(encoding))
            kept.append(position)
        except UnicodeDecodeError as error:
            reason = f"the line is not {encoding}: byte 0x{line[error.start]:02x} at byte {error.start + 1} of the line"
            faults.append(Fault(position, None, reason, printable(line)))
    return Lines(_unended(texts), kept, faults, n_read, False)


def _unended(lines: list[str]) -> list[str]:
    return [line[:-1] if line.endswith("\r") else line for line in lines]


class Surveyed(NamedTuple):
    """What a range of bytes holds: counts for exact line numbers, and whether it may be cut at any line end."""

    start: int  # of the first line that begins in the range
    n_lines: int
    leaves_open: bool  # a line ends within quotes: its record may go on in the next


def survey(path: str, start: int, stop: int, delimiter: str | None) -> Surveyed:
    """One look over the lines that begin in bytes start..stop-1 (0.2 us each). `delimiter` is None for JSON."""
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
"""How the csv module says that the text ended within quotes."""

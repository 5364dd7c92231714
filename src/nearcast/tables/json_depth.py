"""Refuses JSON Lines with lines that are nested too deeply, before Arrow's reader, which crashes on them."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np

from nearcast.errors import InvalidInput
from nearcast.limits import LIMITS

_BLOCK = 1 << 24
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"?+')
_OPENING, _CLOSING = np.zeros(256, np.int32), np.zeros(256, np.int32)
_OPENING[[ord("["), ord("{")]] = 1
_CLOSING[[ord("]"), ord("}")]] = 1


def require_shallow(path: Path) -> None:
    """Raise InvalidInput for the first line that is nested more deeply than the limit."""
    n_lines = 0
    with gzip.open(path) if path.name.endswith(".gz") else open(path, "rb") as source:
        for block in _blocks(source):
            for line in _suspects(block):
                text = block[line[0] : line[1]]
                if depth_of(text) > LIMITS.json_depth:
                    row = n_lines + block.count(b"\n", 0, line[0])
                    raise InvalidInput(f"the line is nested more than {LIMITS.json_depth} deep", row=row)
            n_lines += block.count(b"\n")


def depth_of(text: bytes) -> int:
    """How deeply a line is nested; brackets within strings do not count."""
    codes = np.frombuffer(_STRING.sub(b"", text), np.uint8)
    return int(np.cumsum(_OPENING[codes] - _CLOSING[codes]).max(initial=0))


def _suspects(block: bytes) -> Iterator[tuple[int, int]]:
    """The lines with more opening brackets than they may be nested deep."""
    codes = np.frombuffer(block, np.uint8)
    openings = np.flatnonzero((codes == ord("[")) | (codes == ord("{")))
    if len(openings) <= LIMITS.json_depth:
        return
    ends = np.append(np.flatnonzero(codes == ord("\n")), len(codes))
    counts = np.diff(np.searchsorted(openings, ends), prepend=0)
    for at in np.flatnonzero(counts > LIMITS.json_depth).tolist():
        yield (0 if at == 0 else int(ends[at - 1]) + 1, int(ends[at]))


def _blocks(source: IO[bytes] | gzip.GzipFile) -> Iterator[bytes]:
    """The content in blocks of whole lines."""
    rest = b""
    while piece := source.read(_BLOCK):
        end = piece.rfind(b"\n") + 1
        if end:
            yield rest + piece[:end]
            rest = piece[end:]
        else:
            rest += piece
    yield rest

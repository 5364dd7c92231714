"""Refuses JSON Lines on which Arrow's reader crashes: lines that are nested too deeply, or that are no one object."""

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
    """Raise InvalidInput for the first line that is no object, or is nested more deeply than the limit."""
    n_lines = 0
    with gzip.open(path) if path.name.endswith(".gz") else open(path, "rb") as source:
        for block in _blocks(source):
            for line in _suspects(block):
                reason = fault_of(block[line[0] : line[1]])
                if reason:
                    raise InvalidInput(reason, row=n_lines + block.count(b"\n", 0, line[0]))
            n_lines += block.count(b"\n")


def fault_of(line: bytes) -> str:
    """Why a line is refused; an empty text if it is blank, or one object. Brackets within strings do not count."""
    bare = _STRING.sub(b"s", line).strip()
    depths = _depths(bare)
    if int(depths.max(initial=0)) > LIMITS.json_depth:
        return f"the line is nested more than {LIMITS.json_depth} deep"
    is_object = bare.startswith(b"{") and int(depths[:-1].min(initial=1)) > 0
    return "" if not line.strip() or is_object else "the line is no JSON object"


def depth_of(text: bytes) -> int:
    """How deeply a line is nested."""
    return int(_depths(_STRING.sub(b"", text)).max(initial=0))


def _depths(bare: bytes) -> np.ndarray:
    """The depth behind each byte of a text without strings."""
    codes = np.frombuffer(bare, np.uint8)
    return np.cumsum(_OPENING[codes] - _CLOSING[codes])


def _suspects(block: bytes) -> Iterator[tuple[int, int]]:
    """The lines that are looked at: all but those from { to } with one } and few opening brackets."""
    codes = np.frombuffer(block, np.uint8)
    ends = np.append(np.flatnonzero(codes == ord("\n")), len(codes))
    starts = np.concatenate([[0], ends[:-1] + 1])
    is_odd = _counts(codes == ord("}"), ends) != 1
    is_odd |= _counts((codes == ord("[")) | (codes == ord("{")), ends) > LIMITS.json_depth
    padded = np.append(codes, np.uint8(0))
    is_odd |= (padded[starts] != ord("{")) | (padded[ends - 1] != ord("}"))
    for at in np.flatnonzero(is_odd & (ends > starts)).tolist():
        yield int(starts[at]), int(ends[at])


def _counts(mask: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """How many of the mask are in each line."""
    return np.diff(np.searchsorted(np.flatnonzero(mask), ends), prepend=0)


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

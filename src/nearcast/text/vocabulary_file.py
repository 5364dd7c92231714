"""The file format of vocabularies: a header and named arrays in one file.

    prefix   64 bytes: magic, version, sizes of the header and of the file, digest of the rest, digest of the prefix
    header   JSON: {"header": the caller's header, "arrays": [[name, dtype, length, offset], ...]}
    arrays   each at a multiple of 64 bytes

The prefix has the same layout in every version. Its own digest distinguishes a damaged version number from another
version.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from nearcast.errors import CorruptFile, ForeignVersion, NotReplaced, NotSaved

FILE_VERSION = 1
MAGIC = b"nearcast"
ALIGNMENT = 64

_PREFIX = struct.Struct("<8s I I Q 16s 16s Q")  # the second 16s is reserved and zero


def write_file(path: str | os.PathLike[str], header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write the file whole or not at all: the header padded with spaces, then the arrays padded with zeros."""
    from nearcast.storage.location import locate  # most vocabularies are never saved

    place = locate(path)
    if place.is_local and Path(place.path).is_dir():
        raise NotReplaced(f"{place.shown} is a folder; name a file")
    described = json.dumps({"header": header, "arrays": _places(arrays, 0)}).encode()
    room = _padded(len(described) + 24 * len(arrays))  # the final offsets have at most 20 digits more than 0
    described = json.dumps({"header": header, "arrays": _places(arrays, ALIGNMENT + room)}).encode()
    contents = (array.tobytes().ljust(_padded(array.nbytes), b"\0") for array in arrays.values())
    body = b"".join([described.ljust(room), *contents])
    place.write(_prefix(body, room) + body)


def read_file(path: str | os.PathLike[str], verify: bool) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """(header, arrays over a copy-on-write memory map). `verify` checks the digest, which reads the whole file."""
    from nearcast.storage.location import locate
    from nearcast.storage.single_files import forget_file, local_file

    place = locate(path)
    try:
        return _read(Path(local_file(place, ALIGNMENT)), place.shown, verify)
    except CorruptFile:
        forget_file(place, ALIGNMENT)  # the copy may be damaged, and not the file
        raise


def _read(file: Path, path: str, verify: bool) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    mapped = _mapped(file, path)
    _, version, header_size, size, digest, _, own_digest = _PREFIX.unpack_from(mapped)
    if xxhash.xxh3_64_intdigest(mapped[: ALIGNMENT - 8]) != own_digest:
        raise CorruptFile(f"{path}: the first {ALIGNMENT} bytes were changed")
    if version != FILE_VERSION:
        raise ForeignVersion(
            f"{path}: file version {version}; this is version {FILE_VERSION}: save the vocabulary again"
        )
    if size != len(mapped):
        raise CorruptFile(f"{path}: has {len(mapped):,} bytes instead of {size:,}")
    if verify and xxhash.xxh3_128_digest(memoryview(mapped)[ALIGNMENT:]) != digest:
        raise CorruptFile(f"{path}: the checksum does not match the contents")
    try:
        described = json.loads(mapped[ALIGNMENT : ALIGNMENT + header_size])
        places = described["arrays"]
        arrays = {name: np.frombuffer(mapped, dtype, length, offset) for name, dtype, length, offset in places}
    except (ValueError, KeyError, TypeError) as error:  # possible only without `verify`
        raise CorruptFile(f"{path}: the header cannot be read") from error
    return described["header"], arrays


def _places(arrays: dict[str, np.ndarray], offset: int) -> list[list[Any]]:
    places = []
    for name, array in arrays.items():
        places.append([name, array.dtype.str, len(array), offset])
        offset += _padded(array.nbytes)
    return places


def _padded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _prefix(body: bytes, header_size: int) -> bytes:
    fields = (MAGIC, FILE_VERSION, header_size, ALIGNMENT + len(body), xxhash.xxh3_128_digest(body), bytes(16))
    own = xxhash.xxh3_64_intdigest(_PREFIX.pack(*fields, 0)[: ALIGNMENT - 8])
    return _PREFIX.pack(*fields, own)


def _mapped(local: Path, path: str) -> mmap.mmap:
    if not local.exists():
        raise NotSaved(f"{path} does not exist; it should be a saved vocabulary")
    if not local.is_file():
        raise NotSaved(f"{path} is a folder; it should be a saved vocabulary")
    with local.open("rb") as file:
        if os.fstat(file.fileno()).st_size < ALIGNMENT or file.read(len(MAGIC)) != MAGIC:
            raise CorruptFile(f"{path}: is not a file of nearcast, or is truncated")
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)

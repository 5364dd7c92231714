"""Saved arrays at any place: `write_bundle` and `read_bundle` of arrays/bundle.py, also for URLs.

In an object store a bundle has the same files. The arrays are written first, under a new generation, and the manifest
last. To be opened, a bundle is copied to this host, checked against its manifest, and mapped.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import xxhash

from nearcast.arrays import bundle
from nearcast.arrays.bundle import read_manifest, write_array
from nearcast.arrays.manifest import MANIFEST, format_of, generation_of, manifest_bytes, parse_manifest
from nearcast.errors import CorruptFile, NotReplaced, NotSaved
from nearcast.storage.copies import forget_copy, local_copy
from nearcast.storage.leftovers import abandoned_below, remove_quietly
from nearcast.storage.location import Location, locate

Format = tuple[str, int]
T = TypeVar("T")
_AT_ONCE = 8  # requests: a bundle has some 50 files, and a store takes 30 ms to answer
_ATTEMPTS = 4  # to read a bundle that is being replaced


class Saved(NamedTuple):
    """A saved bundle on this host."""

    folder: str
    generation: str  # another one after each save


class Opened(NamedTuple):
    """The content of a bundle, where it lies, and which generation it is."""

    arrays: dict[str, np.ndarray]
    header: Any
    url: str
    generation: str


def write_bundle(path: str | os.PathLike[str], fmt: Format, arrays: Mapping[str, np.ndarray], header: Any) -> str:
    """Write `arrays` and `header` (plain JSON values) to a folder, and replace a bundle that is there.

    Returns the name of the generation.
    """
    place = locate(path)
    if place.is_local:
        return bundle.write_bundle(place.path, fmt, arrays, header)
    return _write_remote(place, fmt, arrays, header)


def read_bundle(path: str | os.PathLike[str], fmt: Format, verify: bool = True) -> tuple[dict[str, np.ndarray], Any]:
    """The arrays (copy-on-write maps) and the header. Raises CorruptFile if a file is missing or damaged."""
    opened = open_bundle(path, fmt, verify)
    return opened.arrays, opened.header


def open_bundle(path: str | os.PathLike[str], fmt: Format, verify: bool = True) -> Opened:
    """The same, with the place and the generation."""
    place = locate(path)
    if place.is_local:
        arrays, manifest = bundle.open_bundle(place.path, fmt, verify)
        return Opened(arrays, manifest["header"], place.url, manifest["generation"])
    for attempt in range(_ATTEMPTS):
        manifest, content = _read_manifest(place, fmt)
        folder, manifest = _copy(place, fmt, manifest, content)
        try:
            arrays, _ = bundle.open_bundle(folder, fmt, verify)
            return Opened(arrays, manifest["header"], place.url, manifest["generation"])
        except (CorruptFile, FileNotFoundError):  # the copy is damaged, or was removed before it was mapped
            if attempt == _ATTEMPTS - 1:
                raise
            forget_copy(_key(manifest))
    raise AssertionError("the last attempt returns or raises")


def local_bundle(path: str | os.PathLike[str], fmt: Format) -> Saved:
    """A bundle as a folder on this host: itself if it is on local disk, else its copy, made at the first call."""
    place = locate(path)
    if place.is_local:
        return Saved(place.path, read_manifest(Path(place.path), fmt)["generation"])
    folder, manifest = _copy(place, fmt, *_read_manifest(place, fmt))
    return Saved(str(folder), manifest["generation"])


def manifest_at(path: str | os.PathLike[str], fmt: Format) -> dict[str, Any]:
    """The manifest of the bundle that is at a path or URL now."""
    place = locate(path)
    return read_manifest(Path(place.path), fmt) if place.is_local else _read_manifest(place, fmt)[0]


def _write_remote(place: Location, fmt: Format, arrays: Mapping[str, np.ndarray], header: Any) -> str:
    names = place.names()
    found = format_of(place.child(MANIFEST).read()) if MANIFEST in names else None
    if found is not None and found != fmt[0]:
        raise NotReplaced(f"{place.shown} is a {found} and no {fmt[0]}; name an empty or new folder")
    is_ours = all(name == MANIFEST or name.startswith("arrays-") for name in names)
    if found is None and (names == [MANIFEST] or not is_ours):
        raise NotReplaced(f"{place.shown} holds other files; name an empty or new folder")
    generation = f"arrays-{uuid.uuid4().hex[:12]}"
    folder = place.child(generation)
    try:
        written = _each(lambda name: _upload(folder.child(f"{name}.bin"), arrays[name]), arrays)
        predecessor = _generation_at(place)
        entries = dict(zip(arrays, written, strict=True))
        place.child(MANIFEST).write(manifest_bytes(fmt, generation, entries, header))
    except BaseException:
        remove_quietly(folder)
        raise
    if predecessor is not None:
        remove_quietly(place.child(predecessor))
    for name in abandoned_below(place, "arrays-"):
        remove_quietly(place.child(name))
    return generation


def _upload(file: Location, array: np.ndarray) -> dict[str, Any]:
    with file.writing() as out:
        return write_array(array, out.write)


def _generation_at(place: Location) -> str | None:
    try:
        return generation_of(place.child(MANIFEST).read())
    except FileNotFoundError:
        return None


def _read_manifest(place: Location, fmt: Format) -> tuple[dict[str, Any], bytes]:
    damaged = b""
    while True:
        try:
            content = place.child(MANIFEST).read()
            return parse_manifest(content, place.shown.partition("?")[0], fmt), content
        except FileNotFoundError:
            raise NotSaved(f"{place.shown} is no {fmt[0]}: it has no {MANIFEST}") from None
        except CorruptFile:
            if content == damaged:
                raise
            damaged = content  # its length and its bytes may be those of two states: read again


def _copy(place: Location, fmt: Format, manifest: dict[str, Any], content: bytes) -> tuple[Path, dict[str, Any]]:
    """(a copy, its manifest): of this generation, or of the next one if it is being replaced."""
    for _ in range(_ATTEMPTS):
        try:
            return local_copy(_key(manifest), partial(_fill, place, manifest, content)), manifest
        except FileNotFoundError as gone:
            newest, content = _read_manifest(place, fmt)
            if newest["generation"] == manifest["generation"]:
                raise CorruptFile(f"{place.shown}: {gone}; restore or rebuild it") from None
            manifest = newest
    raise CorruptFile(f"{place.shown} keeps changing while it is read; try again")


def _fill(place: Location, manifest: dict[str, Any], content: bytes, folder: Path) -> None:
    """Fetch a bundle into an empty folder."""
    generation, entries = manifest["generation"], manifest["arrays"]
    source, target = place.child(generation), folder / generation
    target.mkdir()
    _each(lambda name: _fetch(source.child(f"{name}.bin"), target / f"{name}.bin", entries[name]), entries)
    bundle.write_whole(folder / MANIFEST, content)


def _fetch(source: Location, target: Path, entry: dict[str, Any]) -> None:
    digest = xxhash.xxh3_64()
    source.download(target, digest)
    size = target.stat().st_size
    if size != entry["bytes"]:
        raise CorruptFile(f"{source.shown} has {size} bytes, its manifest says {entry['bytes']}; restore or rebuild")
    if digest.hexdigest() != entry["xxh3"]:
        raise CorruptFile(f"{source.shown} does not match its checksum; restore or rebuild")


def _key(manifest: dict[str, Any]) -> str:
    """A digest of the content. Bundles with equal content have equal keys, wherever they lie."""
    content = {name: manifest[name] for name in ("format", "version", "arrays", "header")}
    return xxhash.xxh3_128(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _each(work: Callable[[str], T], names: Iterable[str]) -> list[T]:
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(work, names))

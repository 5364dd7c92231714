"""Named arrays and a small header, saved atomically in one folder.

Layout: `manifest.json` names a generation folder, which has one file per array. A new generation is written beside the
old one and fsynced, and then the manifest is replaced by a rename. So a reader, even after a crash, sees the old state
or the new state. Arrays are opened as copy-on-write maps: processes on one host share the pages, and changes stay
private.
"""

from __future__ import annotations

import json
import os
import shutil
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from nearcast.errors import CorruptFile, ForeignVersion

MANIFEST = "manifest.json"
_CHUNK = 1 << 24
_ABANDONED_SECONDS = 3600.0


def write_bundle(
    path: str | os.PathLike[str], fmt: tuple[str, int], arrays: Mapping[str, np.ndarray], header: Any
) -> str:
    """Write `arrays` and `header` (plain JSON values) to the folder `path`, and replace a bundle that is there.

    Returns the name of the generation.
    """
    folder = Path(path)
    if folder.exists() and any(folder.iterdir()) and not (folder / MANIFEST).exists():
        raise FileExistsError(f"{folder} holds other files; name an empty or new folder")
    folder.mkdir(parents=True, exist_ok=True)
    generation = f"arrays-{uuid.uuid4().hex[:12]}"
    (folder / generation).mkdir()
    try:
        entries = {name: _write_array(folder / generation, name, array) for name, array in arrays.items()}
        sync_folder(folder / generation)
        predecessor = generation_of((folder / MANIFEST).read_bytes()) if (folder / MANIFEST).exists() else None
        write_whole(folder / MANIFEST, manifest_bytes(fmt, generation, entries, header))
    except BaseException:
        shutil.rmtree(folder / generation, ignore_errors=True)
        raise
    for old in folder.glob("arrays-*"):
        # Another writer may be filling a generation: one that no manifest named is removed when it is old.
        if old.name == predecessor or (old.name != generation and _age(old) > _ABANDONED_SECONDS):
            shutil.rmtree(old, ignore_errors=True)
    return generation


def _age(folder: Path) -> float:
    """Seconds since a file was last added."""
    try:
        return time.time() - folder.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def read_bundle(
    path: str | os.PathLike[str], fmt: tuple[str, int], verify: bool = True
) -> tuple[dict[str, np.ndarray], Any]:
    """The arrays (copy-on-write maps) and the header. Raises CorruptFile if a file is missing or damaged."""
    arrays, manifest = open_bundle(path, fmt, verify)
    return arrays, manifest["header"]


def open_bundle(
    path: str | os.PathLike[str], fmt: tuple[str, int], verify: bool = True
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays of `read_bundle`, and the manifest that names them."""
    folder = Path(path)
    for attempt in (1, 2):
        manifest = read_manifest(folder, fmt)
        try:
            arrays = {
                name: _open_array(folder / manifest["generation"], name, entry, verify)
                for name, entry in manifest["arrays"].items()
            }
        except FileNotFoundError as gone:
            # A writer may have replaced the generation after we read the manifest: try once more.
            if attempt == 1 and read_manifest(folder, fmt)["generation"] != manifest["generation"]:
                continue
            raise CorruptFile(f"{gone.filename} is missing; restore or rebuild {folder}") from None
        return arrays, manifest
    raise CorruptFile(f"{folder} keeps changing while it is read; try again")


def read_manifest(folder: Path, fmt: tuple[str, int]) -> dict[str, Any]:
    """The manifest. Raises if it is missing, damaged, or of another format or version."""
    file = folder / MANIFEST
    if not file.is_file():
        raise FileNotFoundError(f"{folder} is no {fmt[0]}: it has no {MANIFEST}")
    return parse_manifest(file.read_bytes(), str(folder), fmt)


def manifest_bytes(fmt: tuple[str, int], generation: str, entries: Mapping[str, Any], header: Any) -> bytes:
    """The content of a manifest. `entries` are the results of `write_array`."""
    manifest = {
        "format": fmt[0],
        "version": fmt[1],
        "generation": generation,
        "arrays": entries,
        "header": header,
    }
    manifest["checksum"] = _manifest_checksum(manifest)
    return json.dumps(manifest, indent=1).encode()


def generation_of(content: bytes) -> str | None:
    """The generation that a manifest names, whatever its format and version; None if the manifest is damaged."""
    try:
        return str(json.loads(content)["generation"])
    except (ValueError, KeyError, TypeError):
        return None


def parse_manifest(content: bytes, folder: str, fmt: tuple[str, int]) -> dict[str, Any]:
    """The manifest with this content. Raises if it is damaged, or of another format or version."""
    name, version = fmt
    file = f"{folder.rstrip('/')}/{MANIFEST}"
    try:
        manifest = json.loads(content)
        found = (manifest["format"], manifest["version"])
        sound = manifest.pop("checksum") == _manifest_checksum(manifest)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise CorruptFile(f"{file} is damaged; restore or rebuild {folder}") from None
    if found != fmt:
        reads = f"this release reads {name} version {version}: build it again"
        raise ForeignVersion(f"{file} is {found[0]} version {found[1]}; {reads}")
    if not sound:
        raise CorruptFile(f"{file} does not match its checksum; restore or rebuild {folder}")
    return manifest


def write_whole(file: Path, content: bytes) -> None:
    """Write a file under a temporary name, fsync it, and rename it into place."""
    temporary = file.with_name(f".{file.name}.{uuid.uuid4().hex[:8]}")
    try:
        with open(temporary, "wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, file)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(file.parent)


def write_array(array: np.ndarray, write: Callable[[np.ndarray], Any]) -> dict[str, Any]:
    """Write the bytes of an array in pieces; return its entry in the manifest."""
    plain = np.ascontiguousarray(array)
    content = plain.reshape(-1).view(np.uint8)
    digest = xxhash.xxh3_64()
    for start in range(0, len(content), _CHUNK):
        piece = content[start : start + _CHUNK]
        digest.update(piece)
        write(piece)
    return {
        "dtype": plain.dtype.str,
        "shape": list(plain.shape),
        "bytes": plain.nbytes,
        "xxh3": digest.hexdigest(),
    }


def _write_array(folder: Path, name: str, array: np.ndarray) -> dict[str, Any]:
    with open(folder / f"{name}.bin", "wb") as out:
        entry = write_array(array, out.write)
        out.flush()
        os.fsync(out.fileno())
    return entry


def _open_array(folder: Path, name: str, entry: dict[str, Any], verify: bool) -> np.ndarray:
    file = folder / f"{name}.bin"
    size = file.stat().st_size
    if size != entry["bytes"]:
        raise CorruptFile(f"{file} has {size} bytes, its manifest says {entry['bytes']}; restore or rebuild")
    if size == 0:
        return np.empty(entry["shape"], entry["dtype"])
    # A plain ndarray over the map: Numba has another type for np.memmap and would compile every kernel again.
    array = np.asarray(np.memmap(file, dtype=entry["dtype"], mode="c", shape=tuple(entry["shape"])))
    if verify and xxhash.xxh3_64(array.reshape(-1).view(np.uint8)).hexdigest() != entry["xxh3"]:
        raise CorruptFile(f"{file} does not match its checksum; restore or rebuild")
    return array


def _manifest_checksum(manifest: dict[str, Any]) -> str:
    return xxhash.xxh3_64(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def sync_folder(folder: Path) -> None:
    """Fsync a folder, so that the names of its files are durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

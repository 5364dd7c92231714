"""Named arrays and a small header, saved atomically in one folder.

Layout: `manifest.json` names a generation folder, which has one file per array. A new generation is written beside the
old one and fsynced, and then the manifest is replaced by a rename. So a reader, even after a crash, sees the old state
or the new state. Arrays are opened as copy-on-write maps: processes on one host share the pages, and changes stay
private.
"""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import stat
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from nearcast.arrays.files import create_file, locked_folder, make_folder
from nearcast.arrays.files import sync_folder as sync_folder
from nearcast.arrays.files import write_whole as write_whole
from nearcast.arrays.manifest import GENERATION, MANIFEST, format_of, generation_of, manifest_bytes, parse_manifest
from nearcast.errors import CorruptFile, NotReplaced, NotSaved

_LARGEST_MANIFEST = 1 << 26
_CHUNK = 1 << 24
_ABANDONED_SECONDS = 3600.0


def write_bundle(
    path: str | os.PathLike[str], fmt: tuple[str, int], arrays: Mapping[str, np.ndarray], header: Any
) -> str:
    """Write `arrays` and `header` (plain JSON values) to the folder `path`, and replace a bundle that is there.

    Returns the name of the generation.
    """
    folder = Path(path)
    require_replaceable(folder, fmt)
    make_folder(folder)
    generation = f"arrays-{uuid.uuid4().hex[:12]}"
    make_folder(folder / generation)
    try:
        entries = {name: _write_array(folder / generation, name, array) for name, array in arrays.items()}
        sync_folder(folder / generation)
        content = manifest_bytes(fmt, generation, entries, header)
        with locked_folder(folder):  # of two writers, the second removes what the first has written, and nothing else
            predecessor = generation_of((folder / MANIFEST).read_bytes()) if (folder / MANIFEST).exists() else None
            write_whole(folder / MANIFEST, content)
            _remove_old(folder, generation, predecessor)
    except BaseException:
        shutil.rmtree(folder / generation, ignore_errors=True)
        raise
    return generation


def require_replaceable(folder: Path, fmt: tuple[str, int]) -> None:
    """Raise unless this is no folder yet, an empty one, or a bundle of this format, whatever its version."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise NotReplaced(f"{folder} is a file; name an empty or new folder")
    others = [each.name for each in folder.iterdir() if not GENERATION.fullmatch(each.name)]
    if not others:
        return  # empty, or a first write that was interrupted
    manifest = folder / MANIFEST
    found = format_of(manifest.read_bytes()) if manifest.is_file() else None
    if found is not None and found != fmt[0]:
        raise NotReplaced(f"{folder} is a {found} and no {fmt[0]}; name an empty or new folder")
    is_damaged = others == [MANIFEST] and any(folder.glob("arrays-*"))
    if found is None and not is_damaged:
        raise NotReplaced(f"{folder} holds other files; name an empty or new folder")


def _remove_old(folder: Path, generation: str, predecessor: str | None) -> None:
    """Remove the generation before this one, and what killed writers left.

    Another writer may be filling a generation that no manifest has named: it is removed when it is old.
    """
    for old in folder.glob("arrays-*"):
        if old.name == predecessor or (old.name != generation and _age(old) > _ABANDONED_SECONDS):
            shutil.rmtree(old, ignore_errors=True)


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
    try:
        arrays, manifest = _mapped_bundle(folder, fmt)
    except (FileNotFoundError, CorruptFile):  # a writer may have replaced the generation after we read the manifest
        if not (folder / MANIFEST).is_file():
            raise
        with locked_folder(folder, is_shared=True):  # nothing is replaced meanwhile
            try:
                arrays, manifest = _mapped_bundle(folder, fmt)
            except FileNotFoundError as gone:
                raise CorruptFile(f"{gone.filename} is missing; restore or rebuild {folder}") from None
    if verify:  # a file that is mapped stays, whoever removes its name
        for name, array in arrays.items():
            _verify_array(folder / manifest["generation"], name, array, manifest["arrays"][name])
    return arrays, manifest


def _mapped_bundle(folder: Path, fmt: tuple[str, int]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    manifest = read_manifest(folder, fmt)
    generation = folder / manifest["generation"]
    if generation.is_symlink():
        raise CorruptFile(f"{generation} is a link to another folder; restore or rebuild {folder}")
    return {name: _mapped_array(generation, name, entry) for name, entry in manifest["arrays"].items()}, manifest


def read_manifest(folder: Path, fmt: tuple[str, int]) -> dict[str, Any]:
    """The manifest. Raises if it is missing, damaged, or of another format or version."""
    file = folder / MANIFEST
    if not file.is_file():
        raise NotSaved(f"{folder} is no {fmt[0]}: it has no {MANIFEST}")
    if file.is_symlink() or file.stat().st_size > _LARGEST_MANIFEST:
        raise CorruptFile(f"{file} is a link, or larger than a manifest; restore or rebuild {folder}")
    return parse_manifest(file.read_bytes(), str(folder), fmt)


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
    with create_file(folder / f"{name}.bin") as out:
        entry = write_array(array, out.write)
        out.flush()
        os.fsync(out.fileno())
    return entry


def _mapped_array(folder: Path, name: str, entry: dict[str, Any]) -> np.ndarray:
    file = folder / f"{name}.bin"
    handle = _opened(file)
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise CorruptFile(f"{file} is no plain file; restore or rebuild")
        if found.st_size != entry["bytes"]:
            raise CorruptFile(
                f"{file} has {found.st_size} bytes, its manifest says {entry['bytes']}; restore or rebuild"
            )
        if found.st_size == 0:
            return np.empty(entry["shape"], entry["dtype"])
        mapped = mmap.mmap(handle, 0, access=mmap.ACCESS_COPY)
    finally:
        os.close(handle)
    # A plain ndarray over the map: Numba has another type for np.memmap and would compile every kernel again.
    return np.frombuffer(mapped, entry["dtype"]).reshape(entry["shape"])


def _opened(file: Path) -> int:
    """A handle of a file, which is no link. A pipe does not wait for its writer."""
    try:
        return os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise CorruptFile(f"{file} is a link; restore or rebuild") from None


def _verify_array(folder: Path, name: str, array: np.ndarray, entry: dict[str, Any]) -> None:
    if array.size and xxhash.xxh3_64(array.reshape(-1).view(np.uint8)).hexdigest() != entry["xxh3"]:
        raise CorruptFile(f"{folder / name}.bin does not match its checksum; restore or rebuild")

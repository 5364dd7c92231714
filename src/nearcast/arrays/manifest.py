"""The manifest of saved arrays: what it says, and what of it is refused."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import xxhash

from nearcast.errors import CorruptFile, ForeignVersion

MANIFEST = "manifest.json"
GENERATION = re.compile(r"arrays-[0-9a-f]{12}")
_NAME = re.compile(r"[A-Za-z0-9_+-][A-Za-z0-9_.+-]{0,99}")
_DTYPE = re.compile(r"\|b1|[|<][iu]1|<[iu][248]|<f[48]")
_MOST_DIMENSIONS = 4


def manifest_bytes(fmt: tuple[str, int], generation: str, entries: Mapping[str, Any], header: Any) -> bytes:
    """The content of a manifest. `entries` are the results of `write_array`."""
    manifest = {
        "format": fmt[0],
        "version": fmt[1],
        "generation": generation,
        "arrays": entries,
        "header": header,
    }
    manifest["checksum"] = manifest_checksum(manifest)
    return json.dumps(manifest, indent=1).encode()


def generation_of(content: bytes) -> str | None:
    """The generation that a manifest names, whatever its format and version; None if the manifest is damaged."""
    return _text_in(content, "generation")


def format_of(content: bytes) -> str | None:
    """The format that a manifest names; None if this is no manifest of ours, or a damaged one."""
    generation = _text_in(content, "generation")
    return _text_in(content, "format") if generation is not None and GENERATION.fullmatch(generation) else None


def _text_in(content: bytes, name: str) -> str | None:
    try:
        return str(json.loads(content)[name])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def parse_manifest(content: bytes, folder: str, fmt: tuple[str, int]) -> dict[str, Any]:
    """The manifest with this content. Raises if it is damaged, of another format or version, or names what it may
    not: a place outside its folder, or arrays of other types than numbers.
    """
    name, version = fmt
    file = f"{folder.rstrip('/')}/{MANIFEST}"
    try:
        manifest = json.loads(content)
        found = (manifest["format"], manifest["version"])
        sound = manifest.pop("checksum") == manifest_checksum(manifest)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise CorruptFile(f"{file} is damaged; restore or rebuild {folder}") from None
    if found != fmt:
        reads = f"this release reads {name} version {version}: build it again"
        raise ForeignVersion(f"{file} is {found[0]} version {found[1]}; {reads}")
    if not sound:
        raise CorruptFile(f"{file} does not match its checksum; restore or rebuild {folder}")
    reason = _forbidden_in(manifest)
    if reason:
        raise CorruptFile(f"{file} {reason}; it was not written by nearcast")
    return dict(manifest)


def _forbidden_in(manifest: dict[str, Any]) -> str:
    """Why a manifest is refused though its checksum is right; an empty string if it is sound."""
    arrays, generation = manifest.get("arrays"), manifest.get("generation")
    if not (isinstance(generation, str) and GENERATION.fullmatch(generation)):
        return f"names the generation {generation!r:.80}"
    if not isinstance(arrays, dict) or not isinstance(manifest.get("header"), dict):
        return "has no list of arrays, or no header"
    for name, entry in arrays.items():
        if not _NAME.fullmatch(name):
            return f"names an array {name!r:.80}"
        if not _is_sound_entry(entry):
            return f"has an entry for '{name}' that does not describe numbers"
    return ""


def _is_sound_entry(entry: Any) -> bool:
    if not isinstance(entry, dict):
        return False
    dtype, shape, size = entry.get("dtype"), entry.get("shape"), entry.get("bytes")
    if not (isinstance(shape, list) and 1 <= len(shape) <= _MOST_DIMENSIONS):
        return False
    if not all(type(each) is int and 0 <= each < 1 << 48 for each in [*shape, size]):
        return False
    if not (isinstance(dtype, str) and _DTYPE.fullmatch(dtype) and isinstance(entry.get("xxh3"), str)):
        return False
    return bool(math.prod(shape) * np.dtype(dtype).itemsize == size)


def manifest_checksum(manifest: dict[str, Any]) -> str:
    """The checksum of all else in the manifest."""
    return xxhash.xxh3_64(json.dumps(manifest, sort_keys=True).encode()).hexdigest()

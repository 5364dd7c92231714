"""A saved index: a folder of arrays and a header. The format number increases with every incompatible change."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from nearcast.storage.bundles import Opened, Saved, local_bundle, manifest_at, open_bundle, read_bundle, write_bundle
from nearcast.storage.location import locate

INDEX_FORMAT = ("nearcast-index", 4)


def save_index(path: str | os.PathLike[str], arrays: dict[str, np.ndarray], header: dict[str, Any]) -> tuple[str, str]:
    """Write an index atomically; an existing index at this path is replaced in one step. (place, generation)."""
    return locate(path).url, write_bundle(path, INDEX_FORMAT, arrays, header)


def load_index(path: str | os.PathLike[str], verify: bool = True) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """(arrays, memory-mapped copy-on-write, and header)."""
    return read_bundle(path, INDEX_FORMAT, verify)


def open_saved(path: str | os.PathLike[str], verify: bool = True) -> Opened:
    """The content of `load_index`, with the place and the generation."""
    return open_bundle(path, INDEX_FORMAT, verify)


def local_index(path: str | os.PathLike[str]) -> Saved:
    """(folder on this host, generation) of the index that is saved now at a path or URL."""
    return local_bundle(path, INDEX_FORMAT)


def saved_manifest(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The manifest of the index that is saved now at a path or URL: its generation, its header, its arrays."""
    return manifest_at(path, INDEX_FORMAT)

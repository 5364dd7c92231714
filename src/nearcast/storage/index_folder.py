"""An index on disk: a bundle of arrays. The format's number changes when a reader of the old one could go wrong."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from nearcast.arrays.bundle import read_bundle, write_bundle

INDEX_FORMAT = ("nearcast-index", 3)


def save_index(path: str | os.PathLike[str], arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
    """Write an index whole or not at all; an index already there is replaced in one step."""
    write_bundle(path, INDEX_FORMAT, arrays, header)


def load_index(path: str | os.PathLike[str], verify: bool = True) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays, as copy-on-write maps, and the header."""
    return read_bundle(path, INDEX_FORMAT, verify)

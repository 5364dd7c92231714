"""Many arrays as one, for saved states with many small arrays: one file is written and fsynced instead of a hundred."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nearcast.errors import CorruptFile

_ALIGNMENT = 64


def pack_arrays(arrays: Mapping[str, np.ndarray]) -> tuple[np.ndarray, dict[str, Any]]:
    """(uint8[...] with the content of all arrays, their names with types, shapes and offsets)."""
    entries, at = dict[str, Any](), 0
    for name, array in arrays.items():
        entries[name] = [array.dtype.str, list(array.shape), at]
        at += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
    packed = np.zeros(at, np.uint8)
    for name, array in arrays.items():
        start = entries[name][2]
        packed[start : start + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return packed, entries


def unpack_arrays(packed: np.ndarray, entries: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The arrays of `pack_arrays`, as views."""
    found = dict[str, np.ndarray]()
    for name, (dtype, shape, start) in entries.items():
        n_bytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        if start < 0 or n_bytes < 0 or start + n_bytes > len(packed):
            raise CorruptFile(f"the array {name} lies outside its file; restore or rebuild")
        found[name] = packed[start : start + n_bytes].view(dtype).reshape(shape)
    return found

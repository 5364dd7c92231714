"""Which shard a subscription belongs to: decided by its id alone, so that it stays there wherever it moves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import xxhash


def owners(ids: Any, n_shards: int) -> np.ndarray:
    """int32[n]: the shards of ids. A null belongs to shard 0, which rejects it."""
    values = ids.to_pylist() if isinstance(ids, pa.Array | pa.ChunkedArray) else list(ids)
    hashes = (0 if each is None else xxhash.xxh3_64_intdigest(str(each).encode()) for each in values)
    return np.fromiter((value % n_shards for value in hashes), np.int32, len(values))

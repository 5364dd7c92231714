"""Found pairs as the matches table: sorted by (message, subscription), no repeats."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from nearcast.arrays.ragged import take

MATCHES_SCHEMA = pa.schema([("message", pa.int64()), ("subscription", pa.int64())])


def matches_table(message_ids: np.ndarray, found_ids: np.ndarray, starts: np.ndarray) -> pa.Table:
    """`found_ids` are ascending within each message; message ids are distinct but in any order."""
    if len(message_ids) > 1 and not (message_ids[1:] > message_ids[:-1]).all():
        order = np.argsort(message_ids, kind="stable")
        message_ids = message_ids[order]
        found_ids, starts = take(found_ids, starts, order)
    messages = np.repeat(message_ids, np.diff(starts))
    return pa.table([pa.array(messages), pa.array(found_ids)], schema=MATCHES_SCHEMA)

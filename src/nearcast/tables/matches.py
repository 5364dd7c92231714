"""Tables of matches, distinct and sorted by (message, subscription)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from nearcast.arrays.ragged import take

MATCHES_SCHEMA = pa.schema([("message", pa.int64()), ("subscription", pa.int64())])
RANKED_SCHEMA = MATCHES_SCHEMA.append(pa.field("score", pa.float64()))
"""The score is null for subscriptions of a kind without scores."""


def matches_table(
    message_ids: np.ndarray, found_ids: np.ndarray, starts: np.ndarray, scores: np.ndarray | None = None
) -> pa.Table:
    """The matches table. The matches of message i are found_ids[starts[i]:starts[i+1]], in ascending order.

    Message ids are distinct, in any order. `scores`, if given, are parallel to `found_ids`; NaN means no score.
    """
    if len(message_ids) > 1 and not (message_ids[1:] > message_ids[:-1]).all():
        order = np.argsort(message_ids, kind="stable")
        message_ids, old = message_ids[order], starts
        found_ids, starts = take(found_ids, old, order)
        scores = None if scores is None else take(scores, old, order)[0]
    messages = np.repeat(message_ids, np.diff(starts))
    columns = [pa.array(messages), pa.array(found_ids)]
    if scores is None:
        return pa.table(columns, schema=MATCHES_SCHEMA)
    return pa.table([*columns, pa.array(scores, mask=np.isnan(scores))], schema=RANKED_SCHEMA)

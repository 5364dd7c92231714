"""Tables of matches, distinct and sorted by (message, subscription)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.arrays.ragged import take
from nearcast.model import Found
from nearcast.tables.ids import INT64, IdColumn, Names

MATCHES_SCHEMA = pa.schema([("message", pa.int64()), ("subscription", pa.int64())])
RANKED_SCHEMA = MATCHES_SCHEMA.append(pa.field("score", pa.float64()))
"""The score is null for subscriptions of a kind without scores."""


class Pairs(NamedTuple):
    """Matches as numbers, sorted by (message, subscription)."""

    order: np.ndarray | None  # int64[m]  messages in the order of their ids; None if they are given in it
    starts: np.ndarray  # int64[m+1]  where the matches of each of them start
    subscriptions: np.ndarray  # int64[n]  numbers of ids
    scores: np.ndarray | None  # float64[n]

    def messages(self) -> np.ndarray:
        """int64[n]: the position of the message of each pair."""
        order = np.arange(len(self.starts) - 1) if self.order is None else self.order
        return np.repeat(order, np.diff(self.starts))


def sorted_pairs(messages: np.ndarray, found: Found, subscriptions: Names) -> Pairs:
    """The pairs of (message, subscription), sorted by ids. `messages` are distinct, and sort as their ids do."""
    found_ids, starts, scores = found
    order = subscriptions.order_within(found_ids, starts)
    if order is not None:
        found_ids, scores = found_ids[order], None if scores is None else scores[order]
    by_id = None
    if len(messages) > 1 and not (messages[1:] > messages[:-1]).all():
        by_id, old = np.argsort(messages, kind="stable"), starts
        found_ids, starts = take(found_ids, old, by_id)
        scores = None if scores is None else take(scores, old, by_id)[0]
    return Pairs(by_id, starts, found_ids, scores)


def matches_table(
    message_ids: np.ndarray | IdColumn,
    found_ids: np.ndarray,
    starts: np.ndarray,
    scores: np.ndarray | None = None,
    names: Names | None = None,
) -> pa.Table:
    """The matches table. The matches of message i are found_ids[starts[i]:starts[i+1]], in ascending order.

    Message ids are distinct, in any order. `scores`, if given, are parallel to `found_ids`; NaN means no score. The
    found ids are numbers of `names`; without names, and in a message id array, they are whole numbers.
    """
    messages = message_ids if isinstance(message_ids, IdColumn) else IdColumn(INT64, message_ids, None)
    names = Names() if names is None else names
    return pairs_table(sorted_pairs(messages.numbers, Found(found_ids, starts, scores), names), messages, names)


def pairs_table(pairs: Pairs, messages: IdColumn, names: Names) -> pa.Table:
    """The matches table of sorted pairs."""
    columns = {"message": _messages(pairs, messages), "subscription": names.arrow(pairs.subscriptions)}
    if pairs.scores is not None:
        columns["score"] = pa.array(pairs.scores, mask=np.isnan(pairs.scores))
    return pa.table(columns)


def _messages(pairs: Pairs, messages: IdColumn) -> pa.Array:
    if messages.values is not None:
        return messages.arrow(pairs.messages())
    ids = messages.numbers if pairs.order is None else messages.numbers[pairs.order]
    return pa.array(np.repeat(ids, np.diff(pairs.starts)))


def matches_schema(messages: pa.DataType, subscriptions: pa.DataType, is_scored: bool = False) -> pa.Schema:
    """The schema of a matches table with ids of these types."""
    fields = [("message", messages), ("subscription", subscriptions)]
    return pa.schema(fields + [("score", pa.float64())] if is_scored else fields)

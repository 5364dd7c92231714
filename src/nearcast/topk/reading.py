"""Reads tables for kind `top`: subscriptions as rows, messages as terms with values, and the window column."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.arrays.arrow import list_parts
from nearcast.errors import InvalidInput
from nearcast.model import NO_TIME, TOP
from nearcast.tables import Dialect, Subscriptions, read_subscriptions
from nearcast.tables.columns import column
from nearcast.tables.faults import Faults
from nearcast.tables.messages import MessageColumns, read_message_columns
from nearcast.tables.read import as_arrow
from nearcast.text.vocabulary import Vocabulary
from nearcast.topk.incoming import IncomingMessages, weighed
from nearcast.topk.rows import TopBatch
from nearcast.topk.window_size import WindowSize


def read_top_subscriptions(table: pa.Table, vocabulary: Vocabulary, dialect: Dialect) -> tuple[TopBatch, Subscriptions]:
    """(rows, what was read). A row without a kind is of kind `top`; rows of other kinds are bad."""
    read = read_subscriptions(table, vocabulary, dialect._replace(kinds=(TOP.name,), default_kind=TOP.name))
    rows = read.rows(TOP)
    ks = rows.params["k"].astype(np.int32)
    places, alphas = np.ascontiguousarray(rows.boxes[:, :2]), rows.params["alpha"].copy()
    return TopBatch(rows.owner_ids, rows.terms, rows.term_starts, places, alphas, ks), read


def window_size_of(table: pa.Table, window: Any) -> WindowSize:
    """The one window of the argument and the column `window`. Raises InvalidInput where they differ."""
    values = column(table, "window")
    given = (
        [] if values is None else [(row, value) for row, value in enumerate(values.to_pylist()) if value is not None]
    )
    if window is None and not given:
        raise InvalidInput(
            "no window; give window=, as in window=100_000 or window=timedelta(hours=1)", column="window"
        )
    size = WindowSize.of(given[0][1] if window is None else window)
    for row, value in given:
        try:
            own = WindowSize.of(value)
        except InvalidInput as error:
            raise InvalidInput(error.reason, row=row, column="window") from None
        if own != size:
            reason = f"{value!r} is another window than {size}; one TopK has one window, so make a TopK for each"
            raise InvalidInput(reason, row=row, column="window")
    return size


def read_top_messages(source: Any, dialect: Dialect, size: WindowSize, now: int) -> tuple[MessageColumns, pa.Array]:
    """(columns, tokens of the good rows). In a window of a period, each message has a time, not before the last one.

    Args:
        now: the time of the newest message so far, or NO_TIME.
    """

    def check(boxes: np.ndarray, times: np.ndarray, faults: Faults) -> None:
        is_range = (boxes[:, 0] != boxes[:, 2]) | (boxes[:, 1] != boxes[:, 3])
        faults.add_where(is_range & ~np.isnan(boxes).any(axis=1), "xmin", "kind 'top' takes points, not boxes")
        if size.is_period:
            faults.add_where(times == NO_TIME, "time", "no time; a window of a period needs the time of each message")
            _require_order(times, now, faults)

    read = read_message_columns(as_arrow(source), dialect, check=check)
    return read, read.tokens.take(pa.array(read.good_rows)) if len(read.rejects) else read.tokens


def _require_order(times: np.ndarray, now: int, faults: Faults) -> None:
    """Add a fault for each time before that of an earlier good row, or before `now`."""
    good = faults.good_rows
    newest = np.maximum.accumulate(np.concatenate([[now], times[good]]))[:-1]
    for row, last in zip(good[times[good] < newest], newest[times[good] < newest], strict=True):
        shown = " is before ".join(formatted_time(int(time)) for time in (times[row], last))
        faults.add(int(row), "time", f"{shown}, the newest so far; time does not go backwards, so sort the messages")


def formatted_time(time: int) -> str:
    """Microseconds as an ISO time in UTC; the number itself where Python's dates end."""
    try:
        return datetime.fromtimestamp(time // 1_000_000, UTC).replace(microsecond=time % 1_000_000).isoformat()
    except (OverflowError, ValueError, OSError):
        return f"{time} µs"


def incoming_messages(
    read: MessageColumns,
    ids: np.ndarray,
    good: np.ndarray,
    tokens: pa.Array,
    vocabulary: Vocabulary,
    weights: np.ndarray,
) -> IncomingMessages:
    """Good rows, with these ids, as terms with values. All their tokens are in the vocabulary and have weights."""
    flat, starts = list_parts(tokens)
    terms, values, starts = weighed(vocabulary.lookup(flat), starts, weights)
    places = np.ascontiguousarray(read.boxes[good, :2])
    return IncomingMessages(ids, places, read.times[good], terms, values, starts)

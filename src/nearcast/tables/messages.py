"""Reads a messages table into a batch of terms, places and times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.arrays.arrow import list_parts
from nearcast.errors import InvalidInput
from nearcast.geo.space import Space
from nearcast.model import MATCH, MessageBatch
from nearcast.tables.attributes import attributes_of
from nearcast.tables.columns import require_one, strings_of, times_of, tokens_of
from nearcast.tables.faults import Faults, OnBad
from nearcast.tables.ids import IdColumn, IdType, Names, made_ids, read_ids
from nearcast.tables.places import boxes_of
from nearcast.tables.read import as_arrow
from nearcast.text.analyser import Analyser
from nearcast.text.vocabulary import Vocabulary

Extra = str | Sequence[str]
"""What happens to columns that nearcast does not know: "raise", "ignore", or the names of those that may be there."""


def read_extra(extra: Extra) -> tuple[str, ...] | None:
    """The names of unknown columns that may be there; None if any may."""
    if isinstance(extra, str) and extra in ("ignore", "raise"):
        return None if extra == "ignore" else ()
    is_list = not isinstance(extra, str) and isinstance(extra, Iterable) and getattr(extra, "ndim", 1) > 0
    names = [*extra] if is_list else []
    if not names or not all(isinstance(name, str) for name in names):
        raise InvalidInput(f"extra= is 'raise', 'ignore' or a list of column names, not {extra!r}", column="extra")
    return tuple(names)


class Dialect(NamedTuple):
    """The settings for reading tables."""

    analyser: Analyser
    space: Space
    on_bad: OnBad = "raise"
    kinds: tuple[str, ...] | None = None
    """The accepted kinds of subscriptions; rows of other kinds are bad. None accepts every kind."""
    default_kind: str = MATCH.name
    """The kind of subscriptions that name none."""
    ids: Names | None = None
    """Where the ids of subscriptions are known, and new ones entered. None enters them nowhere."""
    makes_ids: bool = False
    """Whether the row numbers of messages without a column `id` are their ids."""
    has_attributes: bool = True
    """Whether messages bring their further columns. Subscriptions with filters are bad rows where they do not."""
    extra: tuple[str, ...] | None = None
    """The unknown columns that a table may have: one that has others is refused. None does not look at columns."""
    id_type: IdType | None = None
    """The type of all ids, where tables with other ids are to be read as far as possible. None: that of each table."""

    def with_extra(self, names: Iterable[str]) -> Dialect:
        """The same, where these columns may be there too."""
        return self if self.extra is None else self._replace(extra=(*self.extra, *names))


MessageCheck = Callable[[np.ndarray, np.ndarray, Faults], None]


class MessageColumns(NamedTuple):
    """The columns of all rows of a messages table, good and bad, and which rows are good."""

    ids: IdColumn
    boxes: np.ndarray  # float64[n,4]
    times: np.ndarray  # int64[n]  microseconds, or NO_TIME
    tokens: pa.Array
    expires: np.ndarray | None  # int64[n]  None where they were not read
    faults: Faults
    rejects: pa.Table

    @property
    def good_rows(self) -> np.ndarray:
        return self.faults.good_rows


class Messages(NamedTuple):
    """The good messages of a table. The ids of the batch are the numbers of `ids`."""

    batch: MessageBatch
    ids: IdColumn
    rejects: pa.Table
    table: pa.Table  # as it was given
    rows: np.ndarray | None  # int64[n]  where they are in the table; None where all rows are good

    def table_rows(self, at: np.ndarray) -> np.ndarray:
        """int64[n]: where the messages at these positions of the batch are in the table."""
        return at if self.rows is None else self.rows[at]


def read_messages(source: Any, vocabulary: Vocabulary, dialect: Dialect) -> Messages:
    """The good messages, and the rejects. Tokens that are not in the vocabulary are ignored."""
    table = as_arrow(source)
    read = read_message_columns(table, dialect.with_extra(vocabulary.attributes))
    (ids, boxes, times, tokens), good = read[:4], None
    attributes = attributes_of(table, vocabulary)
    if len(read.rejects):
        good = read.good_rows
        ids, boxes, times, tokens = ids.take(good), boxes[good], times[good], tokens.take(pa.array(good))
        attributes = None if attributes is None else attributes.take(pa.array(good))
    terms, starts = vocabulary.term_sets(*list_parts(tokens), attributes)
    return Messages(MessageBatch(ids.numbers, terms, starts, boxes, times), ids, read.rejects, table, good)


def read_message_columns(
    table: pa.Table, dialect: Dialect, reads_expires: bool = False, check: MessageCheck | None = None
) -> MessageColumns:
    """Read a messages table without a vocabulary. `check` may add faults, from the boxes and the times of all rows."""
    from nearcast.tables.input_checks.known_columns import check_message_columns  # an engine does not need it

    check_message_columns(table.column_names, dialect.extra)
    faults = Faults(table.num_rows, dialect.on_bad)
    ids = made_ids(table, "messages") if dialect.makes_ids else None
    ids = read_ids(table, faults, "messages", of=dialect.id_type) if ids is None else ids
    boxes = boxes_of(_with_points(table, dialect.space), dialect.space, faults)
    times = times_of(table, "time", faults)
    tokens = message_tokens(table, dialect.analyser, faults)
    expires = times_of(table, "expires", faults) if reads_expires else None
    if check is not None:
        check(boxes, times, faults)
    return MessageColumns(ids, boxes, times, tokens, expires, faults, faults.raise_or_reject(table))


def _with_points(table: pa.Table, space: Space) -> pa.Table:
    """The table, where the points of a GeoDataFrame are columns x and y."""
    if "geometry" not in table.column_names:
        return table
    from nearcast.tables.regions.geometry_columns import with_points  # few tables have geometries

    return with_points(table, space)


def message_tokens(table: pa.Table, analyser: Analyser, faults: Faults) -> pa.Array:
    """list<string>: for each row `tokens` if not null, else the tokens of `text`."""
    require_one(table, ("text", "tokens"), "messages")
    tokens = tokens_of(table, faults)
    text = strings_of(table, "text")
    if text is None:
        return tokens if tokens is not None else pa.nulls(table.num_rows, pa.list_(pa.string()))
    if tokens is None:
        return analyser.tokens_batch(text)
    uses_text = np.asarray(tokens.is_null().to_numpy(zero_copy_only=False), bool)
    if not uses_text.any():
        return tokens
    analysed = analyser.tokens_batch(pc.if_else(pa.array(uses_text), text, None))
    return pc.if_else(pa.array(uses_text), analysed.cast(tokens.type), tokens)

"""Messages as subscriptions with live results see them: tables for `TopK` and for `Moving`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.errors import InvalidInput
from nearcast.geo.space import BOX_COLUMNS
from nearcast.model import NEVER, NO_TIME, Match
from nearcast.tables import Dialect, Id, IdColumn, as_arrow
from nearcast.tables.attributes import all_attributes_of, attributes_table
from nearcast.tables.ids import one_id
from nearcast.tables.messages import read_message_columns

_TIME = pa.timestamp("us", "UTC")


class LiveMessages(NamedTuple):
    """Validated messages."""

    ids: IdColumn
    tokens: pa.Array  # list<string>
    boxes: np.ndarray  # float64[n,4]
    times: np.ndarray  # int64[n]  microseconds, or NO_TIME
    expires: np.ndarray  # int64[n]  microseconds, or NEVER
    attributes: pa.Table | None = None  # further columns, for filters

    @property
    def size(self) -> int:
        return len(self.expires)

    @classmethod
    def one(
        cls,
        id: Id,
        tokens: list[str],
        box: np.ndarray,
        expires: int = NEVER,
        attributes: Mapping[str, Any] | None = None,
    ) -> LiveMessages:
        """One message. `box` is float64[4]."""
        try:
            words = pa.array([tokens], pa.list_(pa.string()))
        except UnicodeEncodeError:
            raise InvalidInput(
                "a token is no valid Unicode; take the unpaired surrogate out", column="tokens"
            ) from None
        time, until = (np.array([each], np.int64) for each in (NO_TIME, expires))
        return cls(one_id(id), words, box.reshape(1, 4), time, until, attributes_table([attributes or {}]))

    def ending(self, deadline: int) -> LiveMessages:
        """These messages; those without an expiry expire at `deadline`."""
        return self._replace(expires=np.where(self.expires == NEVER, deadline, self.expires))

    def timed(self) -> pa.Table:
        """For an index: boxes and times."""
        times = pa.array(self.times, _TIME, mask=self.times == NO_TIME)
        return pa.table({**self._columns(), **self._places(), "time": times, **self._attributes()})

    def points(self, now: int) -> pa.Table:
        """For `TopK`: the centres of the boxes, at one time."""
        centres = self.boxes[:, :2] / 2 + self.boxes[:, 2:] / 2  # no sum overflows
        times = pa.array(np.full(self.size, now), _TIME)
        return pa.table({**self._columns(), "x": centres[:, 0], "y": centres[:, 1], "time": times})

    def mortal(self) -> pa.Table:
        """For `Moving`: boxes and expiry."""
        expires = pa.array(self.expires, _TIME, mask=self.expires == NEVER)
        return pa.table({**self._columns(), **self._places(), "expires": expires, **self._attributes()})

    def _attributes(self) -> dict[str, pa.ChunkedArray]:
        attributes = self.attributes
        return {} if attributes is None else {name: attributes[name] for name in attributes.column_names}

    def _columns(self) -> dict[str, pa.Array]:
        return {"id": self.ids.arrow(np.arange(self.size)), "tokens": self.tokens}

    def _places(self) -> dict[str, np.ndarray]:
        return dict(zip(BOX_COLUMNS, np.ascontiguousarray(self.boxes.T), strict=True))


def read_live_messages(source: Any, dialect: Dialect) -> tuple[LiveMessages, pa.Table]:
    """(the good messages of a table, the rejects)."""
    table = as_arrow(source)
    read = read_message_columns(table, dialect, reads_expires=True)
    good, expires = read.good_rows, np.asarray(read.expires)
    tokens = read.tokens.take(pa.array(good)) if len(read.rejects) else read.tokens
    until = np.where(expires == NO_TIME, NEVER, expires)
    attributes = all_attributes_of(table)
    if attributes is not None and len(read.rejects):
        attributes = attributes.take(pa.array(good))
    own = LiveMessages(read.ids.take(good), tokens, read.boxes[good], read.times[good], until[good], attributes)
    return own, read.rejects


def matches_by_message(matches: pa.Table) -> dict[Id, list[Match]]:
    """The rows of a matches table, by message. A message without matches has an empty list."""
    found: dict[Id, list[Match]] = defaultdict(list)
    for row in matches.to_pylist():
        found[row["message"]].append(Match(**row))
    return found

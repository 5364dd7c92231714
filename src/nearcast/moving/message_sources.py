"""What live messages came with: their words in order, and their attributes.

A subscription that comes later may name a phrase, a prefix, a group of words or a filter that none had named before.
Its term is then found in the live messages anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.arrays.ragged import take
from nearcast.tables.attributes import attribute_rows
from nearcast.text.vocabulary import Vocabulary

IsLive = Callable[[np.ndarray], np.ndarray]
"""bool[n]: whether messages of these ids are live."""


class Words(NamedTuple):
    """The words of messages, in order, as terms."""

    ids: np.ndarray  # int64[n]
    terms: np.ndarray  # int32[...]
    starts: np.ndarray  # int64[n+1]


NO_WORDS = Words(np.empty(0, np.int64), np.empty(0, np.int32), np.zeros(1, np.int64))


class MessageSources:
    """Words and attributes by message id. Those of messages that are gone are forgotten by and by."""

    def __init__(self) -> None:
        self._parts = list[Words]()  # each at most half as long as the one before it
        self._attributes = dict[int, dict[str, Any]]()
        self._n_kept = 0

    @property
    def nbytes(self) -> int:
        return sum(int(array.nbytes) for part in self._parts for array in part) + 400 * len(self._attributes)

    def add(self, words: Words, attributes: pa.Table | None, is_live: IsLive) -> None:
        """Keep what messages came with. A message of a known id replaces the older one."""
        if attributes is not None or self._attributes:
            rows = [{}] * len(words.ids) if attributes is None else attribute_rows(attributes)
            for number, row in zip(words.ids.tolist(), rows, strict=True):
                if row:
                    self._attributes[number] = row
                else:
                    self._attributes.pop(number, None)
        self._parts.append(words)
        while len(self._parts) > 1 and 2 * len(self._parts[-1].ids) > len(self._parts[-2].ids):
            last = self._parts.pop()
            self._parts[-1] = _joined(self._parts[-1], last)
        if sum(len(part.ids) for part in self._parts) > 2 * self._n_kept + 1024:
            self._forget(is_live)

    def _forget(self, is_live: IsLive) -> None:
        kept = self.words(is_live)
        self._parts, self._n_kept = [kept], len(kept.ids)
        live = set(kept.ids.tolist())
        self._attributes = {number: row for number, row in self._attributes.items() if number in live}

    def words(self, is_live: IsLive) -> Words:
        """The words of live messages; of an id that came twice, the last."""
        every = NO_WORDS
        for part in self._parts:
            every = _joined(every, part)
        last = len(every.ids) - 1 - np.unique(every.ids[::-1], return_index=True)[1]
        rows = last[is_live(every.ids[last])]
        return Words(every.ids[rows], *take(every.terms, every.starts, rows))

    def renumber(self, new_terms: np.ndarray, is_live: IsLive) -> None:
        """Give terms new numbers, by old ones."""
        self._forget(is_live)
        (kept,) = self._parts
        self._parts = [kept._replace(terms=new_terms[kept.terms])]

    def term_sets(self, vocabulary: Vocabulary, is_live: IsLive) -> Words:
        """The terms that live messages have by now: sorted sets in place of words."""
        words = self.words(is_live)
        terms, starts = vocabulary.term_sets(vocabulary.tokens(words.terms), words.starts)
        if not vocabulary.attributes or not self._attributes:
            return Words(words.ids, terms, starts)
        more = [self._attributes.get(number, {}) for number in words.ids.tolist()]
        return Words(words.ids, *vocabulary.with_attributes_of(terms, starts, more))

    # -- files

    def state(self, is_live: IsLive) -> dict[str, np.ndarray]:
        """Arrays for saving. Attributes are JSON: by message id, by name, the type and the text of the value."""
        words = self.words(is_live)
        written = {
            number: {name: [type(value).__name__, str(value)] for name, value in self._attributes[number].items()}
            for number in words.ids.tolist()
            if number in self._attributes
        }
        return words._asdict() | {"attributes": np.frombuffer(bytearray(json.dumps(written).encode()), np.uint8)}

    @classmethod
    def restored(cls, arrays: dict[str, np.ndarray]) -> MessageSources:
        made, columns = cls(), dict(arrays)
        written = json.loads(columns.pop("attributes").tobytes())
        made._parts = [Words(**columns)]
        made._n_kept = len(made._parts[0].ids)
        made._attributes = {
            int(number): {name: _READERS[sort](text) for name, (sort, text) in row.items()}
            for number, row in written.items()
        }
        return made


_READERS: dict[str, Callable[[str], Any]] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": lambda text: text == "True",
    "Decimal": Decimal,
    "date": date.fromisoformat,
    "datetime": datetime.fromisoformat,
    "Timestamp": datetime.fromisoformat,
}


def _joined(first: Words, second: Words) -> Words:
    starts = np.concatenate([first.starts, second.starts[1:] + first.starts[-1]])
    return Words(np.concatenate([first.ids, second.ids]), np.concatenate([first.terms, second.terms]), starts)

"""What readers of one version of an index use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from nearcast.engine.payload.sources import Sources
from nearcast.errors import InvalidInput
from nearcast.geo.space import Space, coordinate_faults, fault_reason
from nearcast.matching.snapshot import Snapshot, merged
from nearcast.model import Found, MessageBatch
from nearcast.tables import Names
from nearcast.text.analyser import Analyser
from nearcast.text.vocabulary import Vocabulary

Attributes = Mapping[str, Any] | None
"""Further columns of one message, by name, for filters."""


class Published(NamedTuple):
    """One version, which does not change."""

    vocabulary: Vocabulary
    names: Names
    sources: Sources | None
    snapshots: tuple[Snapshot, ...]  # of kind `match`, and of the other kinds that have subscriptions
    is_scored: bool

    def terms(self, tokens: Iterable[str], analyser: Analyser, attributes: Attributes = None) -> np.ndarray:
        """The known terms of tokens, or of a text, and of attributes."""
        if isinstance(tokens, str):
            terms = self.vocabulary.terms_of_text(tokens, analyser)
        else:
            terms = self.vocabulary.terms(tokens)
        return terms if not attributes else self.vocabulary.with_attributes(terms, attributes)

    def message(self, terms: np.ndarray, box: np.ndarray, time: int) -> MessageBatch:
        """One message as a batch."""
        starts = np.array((0, len(terms)), np.int64)
        return MessageBatch(np.zeros(1, np.int64), terms, starts, box.reshape(1, 4), np.array((time,), np.int64))

    def match(self, batch: MessageBatch, threads: int = 1) -> Found:
        return reduce(merged, (each.match(batch, threads) for each in self.snapshots))


def box_of(place: Sequence[float]) -> np.ndarray:
    """float64[4]: the box of a point (x, y) or of a box."""
    x, y = place[:2]
    return np.array((x, y, x, y) if len(place) == 2 else place, np.float64)


def checked_words(words: Any) -> Any:
    """A text, or a list of tokens. Raises InvalidInput for anything else."""
    if isinstance(words, str):
        return words
    is_list = isinstance(words, Iterable) and not isinstance(words, bytes | Mapping) and getattr(words, "ndim", 1) > 0
    tokens = list(words) if is_list else [None]
    if not all(isinstance(token, str) for token in tokens):
        raise InvalidInput(
            f"a message is a text or a list of tokens, which are strings, not {words!r}", column="tokens"
        )
    return tokens


def require_point(x: Any, y: Any, space: Space) -> None:
    """Raise InvalidInput unless these are valid coordinates."""
    for name, value in (("x", x), ("y", y)):
        is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not is_number or (isinstance(value, int) and abs(value) > 1 << 1000):  # beyond float64
            raise InvalidInput(f"{value!r} is not a number", column=name)
    if not space.has_point(x, y):
        box = np.array([[x, y, x, y]], np.float64)
        column, reason = fault_reason(int(coordinate_faults(box, space)[0]), box[0], ("x", "y") * 2, space.planar)
        raise InvalidInput(reason, column=column)


def naming_file(source: Any) -> AbstractContextManager[None]:
    """Errors within name the file, if `source` is one."""
    from nearcast.tables.input_checks.file_errors import naming_file as named  # an engine reads no files

    return named(source)

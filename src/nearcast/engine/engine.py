"""The friendly front: text in, matches out, one subscription and one message at a time."""

from __future__ import annotations

import heapq
import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.arrays.ragged import sorted_sets
from nearcast.engine.explain import Explanation, explain, ranked
from nearcast.engine.index import Index
from nearcast.engine.rank_requests import asked, require_rankable
from nearcast.errors import InvalidInput
from nearcast.geo.circle import CircleRegion
from nearcast.geo.geojson import parse_region
from nearcast.geo.region import WORLD, BoxRegion, Region
from nearcast.geo.space import FINE, Space, coordinate_faults, fault_reason
from nearcast.matching.matcher import Matcher
from nearcast.model import NEVER, NO_SHAPE, MessageBatch, RankBatch, RowBatch
from nearcast.tables import REJECTS_SCHEMA, Subscriptions, read_weights
from nearcast.text.analyser import Analyser
from nearcast.text.clauses import Clause, clauses
from nearcast.text.expression import parse
from nearcast.text.vocabulary import Vocabulary

Box = Sequence[float]


@dataclass(frozen=True)
class Match:
    """One message concerns one subscription."""

    message: int
    subscription: int
    score: float | None = None
    """Of a ranked subscription."""


@dataclass(frozen=True)
class _Subscription:
    clauses: list[Clause]
    region: Region
    expires: int
    ask: tuple[float, float] | None = None  # alpha and threshold of one that is ranked


class Engine:
    """Live subscriptions in memory. Safe to call from several threads; calls take turns.

    `weights` say what tokens weigh for kind `rank`: a table (token, weight) or a Vocabulary; without them all weigh the
    same. `clock` gives the present in seconds since 1970; tests inject their own.
    """

    def __init__(
        self,
        method: str = "auto",
        *,
        space: Box | None = None,
        analyser: Analyser | None = None,
        weights: Any = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._space = Space.of(space)
        self._analyser = analyser or Analyser()
        self._vocabulary = Vocabulary()
        by_term = np.empty(0) if weights is None else read_weights(weights, self._vocabulary)
        self._index = Index(Matcher(method, self._space), self._vocabulary, self._analyser, by_term)
        self._live: dict[int, _Subscription] = {}
        self._expiries: list[tuple[int, int]] = []  # heap of (expires, id); an entry may be out of date
        self._clock = clock
        self._next_subscription = 1
        self._next_message = 1
        self._lock = threading.RLock()

    def __len__(self) -> int:
        with self._lock:
            self._expire()
            return len(self._live)

    @property
    def index(self) -> Index:
        return self._index

    def subscribe(  # noqa: PLR0913  what and where, each said in one of several ways
        self,
        expression: str = "",
        *,
        near: Sequence[float] | None = None,
        km: float | None = None,
        box: Box | None = None,
        region: Any = None,
        id: int | None = None,
        expires: datetime | timedelta | None = None,
        kind: str = "match",
        alpha: float | None = None,
        threshold: float | None = None,
    ) -> int:
        """Listen for messages on which `expression` holds, at a place; without a place, everywhere. Returns the id.

        The place is `near=(x, y), km=radius`, `box=(xmin, ymin, xmax, ymax)`, or `region=` GeoJSON or a circle. The
        same id again replaces. With `kind="rank"`, listen for messages that score at least `threshold`: the expression
        is plain words, the place a box, and `alpha` (0.5) says how much the place counts.
        """
        place = self._region(near, km, box, region)
        wanted = clauses(parse(expression, self._analyser))
        ask = asked(kind, alpha, threshold)
        if ask is not None:
            require_rankable(wanted, place, self._space)
        with self._lock:
            self._expire()
            number = self._next_subscription if id is None else _whole(id, "id")
            subscription = _Subscription(wanted, place, self._deadline(expires), ask)
            self._index.insert_read(self._read(number, subscription))
            self._live[number] = subscription
            if subscription.expires != NEVER:
                heapq.heappush(self._expiries, (subscription.expires, number))
            self._next_subscription = max(self._next_subscription, number + 1)
            return number

    def unsubscribe(self, *ids: int) -> None:
        """Forget subscriptions; an unknown id is no error."""
        with self._lock:
            self._index.remove(ids)
            for number in ids:
                self._live.pop(number, None)

    def publish(
        self,
        text: str = "",
        *,
        at: Sequence[float],
        tokens: Iterable[str] | None = None,
        id: int | None = None,
    ) -> list[Match]:
        """Post a text at a point (x, y) or a box (xmin, ymin, xmax, ymax); returns whom it concerns, by subscription
        id.
        """
        words = list(tokens) if tokens is not None else self._analyser.tokens(text)
        place = self._place(at)
        with self._lock:
            self._expire()
            number = self._next_message if id is None else _whole(id, "id")
            self._next_message = max(self._next_message, number + 1)
            found = self._index.match_batch(self._message(number, words, place))
            if found.scores is None:
                return [Match(number, subscription) for subscription in found.ids.tolist()]
            scores = [None if math.isnan(score) else score for score in found.scores.tolist()]
            return [Match(number, *each) for each in zip(found.ids.tolist(), scores, strict=True)]

    def explain(
        self, subscription: int, text: str = "", *, at: Sequence[float], tokens: Iterable[str] | None = None
    ) -> Explanation:
        """Why this message would or would not reach this subscription."""
        with self._lock:
            self._expire()
            if subscription not in self._live:
                raise InvalidInput(f"no live subscription {subscription}", column="subscription")
            held = self._live[subscription]
            words = list(tokens) if tokens is not None else self._analyser.tokens(text)
            place = self._place(at)
            told = explain(held.clauses, held.region, set(words), place[0], self._now() >= held.expires)
            if held.ask is None or self._index.ranker is None:
                return told
            score = self._index.ranker.score(subscription, self._message(0, words, place))
            return ranked(told, score, held.ask[1])

    # -- parts

    def _region(self, near: Any, km: float | None, box: Any, region: Any) -> Region:
        if sum(given is not None for given in (near, box, region)) > 1:
            raise InvalidInput("give one of near=, box= and region=")
        if (near is None) != (km is None):
            raise InvalidInput("near= and km= go together: near=(x, y), km=2")
        if near is not None and km is not None:
            x, y = _numbers(near, 2, "near")
            return CircleRegion(x, y, float(km), planar=self._space.planar)
        if box is not None:
            xmin, ymin, xmax, ymax = _numbers(box, 4, "box")
            return BoxRegion(xmin, ymin, xmax, ymax, self._space.planar)
        return WORLD if region is None else parse_region(region, self._space)

    def _read(self, number: int, subscription: _Subscription) -> Subscriptions:
        """The one subscription, as a table of one row would be read."""
        rows, regions = self._rows(number, subscription)
        ids, nothing = np.array([number], np.int64), _none_of(rows)
        if subscription.ask is None:
            ranks = RankBatch(nothing, np.empty(0), np.empty(0))
            return Subscriptions(ids, frozenset({"match"}), rows, regions, ranks, REJECTS_SCHEMA.empty_table())
        alpha, threshold = subscription.ask
        ranks = RankBatch(rows, np.array([alpha]), np.array([threshold]))
        return Subscriptions(ids, frozenset({"rank"}), nothing, [], ranks, REJECTS_SCHEMA.empty_table())

    def _rows(self, number: int, subscription: _Subscription) -> tuple[RowBatch, list[Region]]:
        boxes = subscription.region.boxes(self._space)
        wanted = subscription.clauses
        terms, starts = self._terms([clause.required for clause in wanted for _ in boxes], self._vocabulary.add)
        not_terms, not_starts = self._terms(
            [clause.forbidden for clause in wanted for _ in boxes], self._vocabulary.add
        )
        n = len(wanted) * len(boxes)
        shaped = not subscription.region.is_box
        batch = RowBatch(
            np.full(n, number, np.int64),
            terms,
            starts,
            not_terms,
            not_starts,
            np.tile(boxes, (len(wanted), 1)).reshape(-1, 4),
            np.full(n, 0 if shaped else NO_SHAPE, np.int32),
            np.full(n, subscription.expires, np.int64),
        )
        return batch, [subscription.region] if shaped else []

    def _terms(
        self, token_lists: list[Any], resolve: Callable[[pa.Array], np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        flat = pa.array([token for tokens in token_lists for token in tokens], pa.string())
        starts = np.cumsum([0, *(len(tokens) for tokens in token_lists)], dtype=np.int64)
        return sorted_sets(resolve(flat), starts)

    def _message(self, number: int, words: list[str], place: np.ndarray) -> MessageBatch:
        terms, starts = self._terms([words], self._vocabulary.lookup)
        return MessageBatch(np.array([number]), terms, starts, place, np.array([self._now()]))

    def _place(self, at: Sequence[float]) -> np.ndarray:
        try:
            values = [float(value) for value in at]
        except (TypeError, ValueError):
            values = []
        if len(values) not in (2, 4):
            raise InvalidInput("at= is a point (x, y) or a box (xmin, ymin, xmax, ymax)", column="at")
        box = np.array([values * 2 if len(values) == 2 else values], np.float64)
        code = int(coordinate_faults(box, self._space)[0])
        if code != FINE:
            raise InvalidInput(fault_reason(code, box[0], planar=self._space.planar)[1], column="at")
        return box

    def _deadline(self, expires: datetime | timedelta | None) -> int:
        if expires is None:
            return NEVER
        if isinstance(expires, timedelta):
            return self._now() + expires // timedelta(microseconds=1)
        stamped = expires if expires.tzinfo else expires.replace(tzinfo=UTC)
        return (stamped - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)

    def _now(self) -> int:
        return int(self._clock() * 1_000_000)

    def _expire(self) -> None:
        now = self._now()
        while self._expiries and self._expiries[0][0] <= now:
            expires, number = heapq.heappop(self._expiries)
            held = self._live.get(number)
            if held is not None and held.expires == expires:
                self.unsubscribe(number)


def _none_of(rows: RowBatch) -> RowBatch:
    """No rows, of the same types."""
    starts = {"term_starts": rows.term_starts[:1], "not_starts": rows.not_starts[:1]}
    return RowBatch(*(column[:0] for column in rows))._replace(**starts)


def _numbers(values: Any, n: int, name: str) -> list[float]:
    try:
        made = [float(value) for value in values]
    except (TypeError, ValueError):
        made = []
    if len(made) != n:
        raise InvalidInput(f"{name}= takes {n} numbers, not {values!r}", column=name)
    return made


def _whole(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not -(2**63) <= int(value) < 2**63:
        raise InvalidInput(f"{name}= is a whole number within int64, not {value!r}", column=name)
    return int(value)

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

from nearcast.engine.explain import Explanation, explain, with_score
from nearcast.engine.index import Index
from nearcast.engine.kind_arguments import read_kind, require_plain
from nearcast.errors import InvalidInput
from nearcast.geo.circle import CircleRegion
from nearcast.geo.geojson import parse_region
from nearcast.geo.region import WORLD, BoxRegion, Region
from nearcast.geo.space import FINE, Space, coordinate_faults, fault_reason
from nearcast.matching.subscription_set import SubscriptionSet
from nearcast.model import NEVER, Kind, MessageBatch
from nearcast.tables import REJECTS_SCHEMA, Subscriptions, read_weights, token_terms
from nearcast.tables.subscription_rows import OneSubscription, rows_of_one
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
    """The score, where the subscription is of a scored kind."""


@dataclass(frozen=True)
class _Subscription:
    clauses: list[Clause]
    region: Region
    expires: int
    kind: Kind
    params: dict[str, float]


class Engine:
    """Live subscriptions of all kinds, in memory. Threads may share an engine; their calls take turns.

    `weights` are the tokens' weights for kind `rank`: a table (token, weight) or a Vocabulary; without weights all
    tokens weigh the same. `clock` returns the present in seconds since 1970.
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
        self.index = Index(SubscriptionSet(method, self._space), self._vocabulary, self._analyser, by_term)
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
        **parameters: float | None,
    ) -> int:
        """Subscribe to messages on which `expression` holds, at a place or everywhere. Returns the id.

        The place is `near=(x, y), km=radius`, `box=(xmin, ymin, xmax, ymax)`, or `region=` GeoJSON or a circle. A known
        `id` replaces the subscription. With `kind="rank"` the parameters are `threshold=`, the least score to deliver,
        and `alpha=`, the weight of the place (0.5); the expression is plain words and the place a box.
        """
        place = self._region(near, km, box, region)
        wanted = clauses(parse(expression, self._analyser))
        chosen, params = read_kind(kind, parameters)
        require_plain(chosen, wanted, place, self._space)
        with self._lock:
            self._expire()
            number = self._next_subscription if id is None else _whole(id, "id")
            subscription = _Subscription(wanted, place, self._deadline(expires), chosen, params)
            self.index.insert_read(self._read(number, subscription))
            self._live[number] = subscription
            if subscription.expires != NEVER:
                heapq.heappush(self._expiries, (subscription.expires, number))
            self._next_subscription = max(self._next_subscription, number + 1)
            return number

    def unsubscribe(self, *ids: int) -> None:
        """Forget subscriptions; an unknown id is no error."""
        with self._lock:
            self.index.remove(ids)
            for number in ids:
                self._live.pop(number, None)

    def publish(
        self, text: str = "", *, at: Sequence[float], tokens: Iterable[str] | None = None, id: int | None = None
    ) -> list[Match]:
        """Publish a text at a point (x, y) or a box (xmin, ymin, xmax, ymax). Returns the matches, sorted by id."""
        words = list(tokens) if tokens is not None else self._analyser.tokens(text)
        place = self._place(at)
        with self._lock:
            self._expire()
            number = self._next_message if id is None else _whole(id, "id")
            self._next_message = max(self._next_message, number + 1)
            found = self.index.match_batch(self._message(number, words, place))
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
            found = self._live[subscription]
            words = list(tokens) if tokens is not None else self._analyser.tokens(text)
            place = self._place(at)
            explanation = explain(found.clauses, found.region, set(words), place[0], self._now() >= found.expires)
            scored = self.index.subscriptions_of(found.kind)
            if not found.kind.is_scored or scored is None:
                return explanation
            score, least = scored.score(subscription, self._message(0, words, place))
            return with_score(explanation, score, least, not found.region.is_box)

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
        """The subscription, as a table of one row is read."""
        one = OneSubscription(
            number, subscription.clauses, subscription.region, subscription.expires, subscription.params
        )
        rows, shapes = rows_of_one(one, self._vocabulary, self._space)
        return Subscriptions(np.array([number]), {subscription.kind.name: rows}, shapes, REJECTS_SCHEMA.empty_table())

    def _message(self, number: int, words: list[str], place: np.ndarray) -> MessageBatch:
        terms, starts = token_terms([words], self._vocabulary.lookup)
        return MessageBatch(np.array([number]), terms, starts, place, np.array([self._now()]))

    def _place(self, at: Sequence[float]) -> np.ndarray:
        values = _floats(at)
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
            found = self._live.get(number)
            if found is not None and found.expires == expires:
                self.unsubscribe(number)


def _floats(values: Any) -> list[float]:
    """The values as numbers; none where they are not numbers."""
    try:
        return [float(value) for value in values]
    except (TypeError, ValueError):
        return []


def _numbers(values: Any, n: int, name: str) -> list[float]:
    made = _floats(values)
    if len(made) != n:
        raise InvalidInput(f"{name}= takes {n} numbers, not {values!r}", column=name)
    return made


def _whole(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not -(2**63) <= int(value) < 2**63:
        raise InvalidInput(f"{name}= is a whole number within int64, not {value!r}", column=name)
    return int(value)

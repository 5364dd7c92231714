"""The friendly front: text in, matches out, one subscription and one message at a time."""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.engine.expiries import Expiries
from nearcast.engine.index import Index, box_of
from nearcast.engine.kind_arguments import read_kind, require_plain
from nearcast.errors import InvalidInput
from nearcast.geo.circle import CircleRegion
from nearcast.geo.geojson import parse_region
from nearcast.geo.region import WORLD, BoxRegion, Region
from nearcast.geo.space import FINE, Space, coordinate_faults, fault_reason
from nearcast.matching.subscription_set import SubscriptionSet
from nearcast.model import NEVER, Kind
from nearcast.tables import REJECTS_SCHEMA, OnBad, Subscriptions, read_weights
from nearcast.tables.subscription_rows import OneSubscription, rows_of_one
from nearcast.text.analyser import Analyser
from nearcast.text.clauses import Clause, clauses
from nearcast.text.expression import parse
from nearcast.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from nearcast.engine.explain import Explanation

Box = Sequence[float]

_NO_REJECTS = REJECTS_SCHEMA.empty_table()
_EXPIRED_A_CHANGE = 100
"""Expired subscriptions that a change forgets besides."""


class Match(NamedTuple):
    """One message concerns one subscription."""

    message: int
    subscription: int
    score: float | None = None
    """The score, where the subscription is of a scored kind."""


@dataclass(frozen=True, slots=True)
class _Subscription:
    expression: str
    region: Region
    expires: int
    kind: Kind
    params: dict[str, float]


class Engine:
    """Live subscriptions of all kinds, in memory. Threads may share an engine.

    Changes (`subscribe`, `unsubscribe`) take turns. `publish` sees every change that had returned before it began and
    never waits for one, unless the method changes in place (see `nearcast.methods()`). `weights` are the tokens'
    weights for kind `rank`: a table (token, weight) or a Vocabulary; without weights all tokens weigh the same. `clock`
    returns the present in seconds since 1970.
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
        vocabulary = Vocabulary()
        by_term = np.empty(0) if weights is None else read_weights(weights, vocabulary)
        self.index = Index(SubscriptionSet(method, self._space), vocabulary, self._analyser, by_term)
        self._versions = self.index.versions
        self._live: dict[int, _Subscription] = {}
        self._expiries = Expiries(self._expire_some)
        self._clock = clock
        self._next_subscription = 1
        self._message_numbers = itertools.count(1)
        self._numbering = threading.Lock()

    def __len__(self) -> int:
        with self._versions.pause():
            now = self._now()
            return len(self._live) - self._expiries.count_due(now)

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
        given = None if id is None else _whole(id, "id")
        subscription = _Subscription(expression, place, self._deadline(expires), chosen, params)
        with self._versions.change():
            number = self._next_subscription if given is None else given
            self.index.insert_read(self._read(number, subscription, wanted))
            self._expiries.replace(number, subscription.expires)
            self._live[number] = subscription
            self._next_subscription = max(self._next_subscription, number + 1)
        self._upkeep()
        return number

    def unsubscribe(self, *ids: int) -> None:
        """Forget subscriptions; an unknown id is no error."""
        with self._versions.change():
            self._forget(list(ids))
        self._upkeep()

    def _forget(self, ids: list[int]) -> None:
        self.index.remove(ids)
        for number in ids:
            self._live.pop(number, None)
            self._expiries.discard(number)

    def publish(
        self, text: str = "", *, at: Sequence[float], tokens: Iterable[str] | None = None, id: int | None = None
    ) -> list[Match]:
        """Publish a text at a point (x, y) or a box (xmin, ymin, xmax, ymax). Returns the matches, sorted by id."""
        words = text if tokens is None else list(tokens)
        place = self._place(at)
        number, now = self._message_number(id), self._now()
        if len(place) == 2 and not self.index.is_scored:
            ids, scores = self.index.match_point(words, place[0], place[1], now), None
        else:
            ids, scores = self.index.match_message(words, place, now)
        if now >= self._expiries.next_due:
            self._expiries.start()
        if scores is None:
            return [Match(number, subscription) for subscription in ids.tolist()]
        given = [None if math.isnan(score) else score for score in scores.tolist()]
        return [Match(number, *each) for each in zip(ids.tolist(), given, strict=True)]

    def publish_many(self, messages: Any, *, threads: int = 1, on_bad: OnBad = "raise") -> pa.Table:
        """Publish a table of messages. Returns the matches table.

        Subscriptions that have expired get nothing, nor do those that will have expired at the time of the message.
        """
        now = self._now()
        matches = self.index.match_at(messages, now, threads=threads, on_bad=on_bad)
        if now >= self._expiries.next_due:
            self._expiries.start()
        return matches

    def explain(
        self, subscription: int, text: str = "", *, at: Sequence[float], tokens: Iterable[str] | None = None
    ) -> Explanation:
        """Why this message would or would not reach this subscription."""
        from nearcast.engine.explain import explain, with_score  # few engines explain

        found, now = self._live.get(subscription), self._now()
        if found is None or now >= found.expires:
            raise InvalidInput(f"no live subscription {subscription}", column="subscription")
        words = list(tokens) if tokens is not None else self._analyser.tokens(text)
        box, wanted = box_of(self._place(at)), clauses(parse(found.expression, self._analyser))
        explanation = explain(wanted, found.region, set(words), box, now >= found.expires)
        scored = self.index.subscriptions_of(found.kind)
        if not found.kind.is_scored or scored is None:
            return explanation
        score, least = scored.score(subscription, self.index.message(words, box, now))
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

    def _read(self, number: int, subscription: _Subscription, wanted: list[Clause]) -> Subscriptions:
        """The subscription, as a table of one row is read."""
        one = OneSubscription(number, wanted, subscription.region, subscription.expires, subscription.params)
        rows, shapes = rows_of_one(one, self.index.vocabulary, self._space)
        return Subscriptions(np.array([number]), {subscription.kind.name: rows}, shapes, _NO_REJECTS)

    def _message_number(self, given: int | None) -> int:
        if given is None:
            return next(self._message_numbers)
        number = _whole(given, "id")
        with self._numbering:
            following = next(self._message_numbers)
            self._message_numbers = itertools.count(max(following, number + 1))
        return number

    def _place(self, at: Sequence[float]) -> list[float]:
        """The point or box, as valid numbers."""
        values = _floats(at)
        if len(values) == 2 and self._space.has_point(values[0], values[1]):
            return values
        if len(values) not in (2, 4):
            raise InvalidInput("at= is a point (x, y) or a box (xmin, ymin, xmax, ymax)", column="at")
        box = box_of(values).reshape(1, 4)
        code = int(coordinate_faults(box, self._space)[0])
        if code != FINE:
            raise InvalidInput(fault_reason(code, box[0], planar=self._space.planar)[1], column="at")
        return values

    def _deadline(self, expires: datetime | timedelta | None) -> int:
        if expires is None:
            return NEVER
        if isinstance(expires, timedelta):
            return self._now() + expires // timedelta(microseconds=1)
        stamped = expires if expires.tzinfo else expires.replace(tzinfo=UTC)
        return (stamped - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)

    def _now(self) -> int:
        return int(self._clock() * 1_000_000)

    def _expire_some(self, most: int) -> bool:
        """Forget up to `most` subscriptions that have expired; return whether there are more."""
        with self._versions.change():
            due = self._expiries.take_due(self._now(), most)
            if due:
                self._forget(due)
        return len(due) == most

    def _upkeep(self) -> None:
        """After a change: forget a few subscriptions that have expired, and tokens that none uses any more."""
        if self._now() >= self._expiries.next_due:
            self._expire_some(_EXPIRED_A_CHANGE)
        self.index.drop_unused_tokens()


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

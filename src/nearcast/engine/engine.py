"""The friendly front: text in, matches out, one subscription and one message at a time."""

from __future__ import annotations

import heapq
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.arguments import a_flag, a_text, checked_attributes, some_tokens
from nearcast.engine.events import matches_of, moved_region
from nearcast.engine.expiries import Expiries
from nearcast.engine.index import Index
from nearcast.engine.kind_arguments import read_kind, require_plain
from nearcast.engine.place_arguments import floats_of, read_place
from nearcast.engine.published import box_of
from nearcast.errors import InvalidInput
from nearcast.geo.html_summary import html_summary, memory_text
from nearcast.geo.region import Region
from nearcast.geo.space import FINE, Space, coordinate_faults, fault_reason
from nearcast.matching.subscription_set import SubscriptionSet
from nearcast.model import MATCH, NEVER, NO_TIME, TOP, Change, Event, Id, Kind, in_order
from nearcast.tables import REJECTS_SCHEMA, Dialect, OnBad, Subscriptions, as_arrow, read_weights
from nearcast.tables.faults import require_accepted
from nearcast.tables.ids import INT64, checked_id, one_id
from nearcast.tables.messages import Extra, read_extra
from nearcast.tables.subscription_rows import OneSubscription, rows_of_one
from nearcast.text.analyser import Analyser
from nearcast.text.clauses import Clause, clauses
from nearcast.text.expression import parse
from nearcast.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from nearcast.engine.explain import Explanation
    from nearcast.engine.live.results import LiveResults

Box = Sequence[float]

_NO_REJECTS = REJECTS_SCHEMA.empty_table()
_EXPIRED_A_CHANGE = 100
"""Expired subscriptions that a change forgets besides."""


class LiveSubscription(NamedTuple):
    expression: str
    region: Region
    expires: int
    kind: Kind
    params: dict[str, float]


class Engine:
    """Live subscriptions of all kinds, in memory. Threads may share an engine.

    Changes (`subscribe`, `unsubscribe`) take turns. `publish` sees every change that had returned before it began and
    never waits for one, unless the method changes in place (see `nearcast.methods()`). While there are subscriptions of
    kind `top`, or that follow, messages and moves take turns with changes, since each depends on those before it.

    `weights` are the tokens' weights for kinds `rank` and `top`: a table (token, weight) or a Vocabulary; without
    weights all tokens weigh the same. `clock` returns the present in seconds since 1970; time never goes back: if the
    clock does, the newest time so far counts, so that what has expired stays expired. `lifetime` is how long a
    message without `expires` lives for subscriptions that follow; for ever, if it is not given.
    """

    def __init__(
        self,
        method: str = "auto",
        *,
        space: Box | None = None,
        analyser: Analyser | str | None = None,
        weights: Any = None,
        clock: Callable[[], float] = time.time,
        lifetime: timedelta | None = None,
    ) -> None:
        self._space = Space.of(space)
        self._analyser = Analyser.of(analyser)
        vocabulary = Vocabulary()
        by_term = np.empty(0) if weights is None else read_weights(weights, vocabulary)
        self.index = Index(SubscriptionSet(method, self._space), vocabulary, self._analyser, by_term)
        self._versions = self.index.versions
        self._live: dict[Id, LiveSubscription] = {}
        self._expiries = Expiries(self._expire_some)
        self._results: LiveResults | None = None  # of kind `top` and of followers, from the first of them on
        self._weights = weights
        self._clock = clock
        self._newest = [NO_TIME]  # a heap of one time
        self._lifetime = lifetime
        self._deadline(lifetime)
        self._next_subscription = 1
        self._message_numbers = itertools.count(1)
        self._numbering = threading.Lock()
        self._saved: tuple[str, str, int] | None = None  # place, generation, and the version that was saved

    def __len__(self) -> int:
        with self._versions.pause():
            now = self._now()
            due = self._expiries.count_due(now) + (0 if self._results is None else self._results.count_due(now))
            return len(self._live) - due

    def __repr__(self) -> str:
        return f"<nearcast engine: {len(self):,} subscriptions, method {self.index.method}, {memory_text(self.nbytes)}>"

    def _repr_html_(self) -> str:
        """What notebooks show: counts, method, memory, and a map of where the subscriptions are."""
        with self._versions.pause():
            figures: dict[str, object] = {"subscriptions": len(self)}
            if self._results is not None:
                figures |= {"of kind top": len(self._results.lists), "that follow": len(self._results.followers)}
            figures |= {"method": self.index.method, "memory": memory_text(self.nbytes), "ids": self.index.names.words}
            boxes = self.index.drawn_boxes()
            if self._results is not None:
                own = [each.region.boxes(self._space) for id, each in self._live.items() if id in self._results]
                boxes = np.concatenate([boxes, *own])
            return html_summary("nearcast engine", figures, boxes, self._space)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays. The expressions and regions that Python holds, some 500 bytes each, are not counted."""
        return self.index.nbytes + (0 if self._results is None else self._results.nbytes)

    def subscribe(  # noqa: PLR0913  what and where, each said in one of several ways
        self,
        expression: str = "",
        *,
        near: Sequence[float] | None = None,
        km: float | None = None,
        m: float | None = None,
        miles: float | None = None,
        box: Box | None = None,
        region: Any = None,
        id: Id | None = None,
        expires: datetime | timedelta | None = None,
        kind: str = "match",
        follow: bool = False,
        dwell: timedelta | None = None,
        **parameters: Any,
    ) -> Id:
        """Subscribe to messages on which `expression` holds, at a place or everywhere. Returns the id.

        Ids are whole numbers, strings or UUIDs, all of one type; without `id=`, the next whole number.

        The place is `near=(x, y)` with `km=`, `m=` or `miles=`; `box=(xmin, ymin, xmax, ymax)`, with
        xmin > xmax over the antimeridian; or `region=` GeoJSON, WKT, WKB, a geometry of shapely, or a text such as
        "circle(1, 2, 3km)". A known `id` replaces the subscription.

        With `kind="rank"` the parameters are `threshold=`, the least score to deliver, and `alpha=`, the weight of the
        place (0.5); the expression is plain words and the place a box.

        With `kind="top"` the subscription has the best `k=` (10) messages of its `window=`, a number of messages or a
        timedelta; the expression is plain words and the place a point, `near=(x, y)`. Further parameters are `alpha=`
        (0.5) and `max_dist=`, the distance at which place counts 0. With `follow=True` it has the live messages at its
        place, which `move` changes; with `dwell=`, those that it has matched for so long. `results(id)` is where both
        begin, and `publish`, `move` and `advance` return what changes.
        """
        kind, follow = a_text(kind, "kind"), a_flag(follow, "follow")
        radius = {"km": km, "m": m, "miles": miles}
        place = read_place(near, radius, box, region, self._space, is_point=kind == TOP.name)
        wanted = clauses(parse(a_text(expression, "expression"), self._analyser))
        if follow or dwell is not None or kind == TOP.name:
            return self._subscribe_live(id, expression, place, wanted, (kind, follow, dwell, expires), parameters)
        chosen, params = read_kind(kind, parameters)
        require_plain(chosen, wanted, place, self._space)
        subscription = LiveSubscription(expression, place, self._deadline(expires), chosen, params)
        with self._versions.change():
            own = self._subscription_id(id)
            self.index.insert_read(self._read(own, subscription, wanted))
            self._expiries.replace(own, subscription.expires)
            if self._results is not None:
                self._results.forget([own])
                self._drop_unused_results()
            self._live[own] = subscription
        self._upkeep()
        return own

    def _subscription_id(self, given: Id | None) -> Id:
        """The given id, or the next whole number. Checks the type."""
        if given is None:
            return self._next_id()
        own, kind = checked_id(given)
        self.index.names.adopt(kind)
        if isinstance(own, int):
            self._next_subscription = max(self._next_subscription, own + 1)
        return own

    def _next_id(self) -> int:
        if not self.index.names.is_plain:
            raise InvalidInput("the ids of this engine are no whole numbers; give id=", column="id")
        self.index.names.adopt(INT64)
        self._next_subscription += 1
        return self._next_subscription - 1

    def unsubscribe(self, *ids: Id) -> list[Change]:
        """Forget subscriptions; an unknown id is no error. Returns a change -1 for each result of theirs."""
        gone = [checked_id(each)[0] for each in ids]
        with self._versions.change():
            changes = [] if self._results is None else self._results.forget(gone)
            self._drop_unused_results()
            self._forget(gone)
        self._upkeep()
        return changes

    def _forget(self, ids: list[Id]) -> None:
        self.index.remove(ids)
        for each in ids:
            self._live.pop(each, None)
            self._expiries.discard(each)

    def publish(
        self,
        text: str = "",
        *,
        at: Sequence[float],
        tokens: Iterable[str] | None = None,
        id: Id | None = None,
        expires: datetime | timedelta | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> list[Event]:
        """Publish a text at a point (x, y) or a box (xmin, ymin, xmax, ymax). Returns the matches, sorted by id.
        `attributes` are what filters such as {severity >= 3} compare.

        Behind them come the changes of subscriptions of kind `top` and of those that follow, sorted by subscription;
        what leaves comes before what enters. For the former the place is the centre of a box. For the latter the
        message lives until `expires`, and replaces a live message of its `id`.
        """
        words = a_text(text, "text") if tokens is None else some_tokens(tokens)
        place, given = self._place(at), checked_attributes(attributes)
        if self._results is not None:
            return self._publish_in_turn(words, place, id, expires, given)
        if expires is not None:
            self._deadline(expires)  # nobody keeps the message, but a wrong time is refused
        number, now = self._message_id(id), self._now()
        if len(place) == 2 and not self.index.is_scored:
            (names, ids), scores = self.index.match_point(words, place[0], place[1], now, given), None
        else:
            names, ids, scores = self.index.match_message(words, place, now, given)
        if now >= self._expiries.next_due:
            self._expiries.start()
        return matches_of(number, names, ids, scores)

    def publish_many(
        self, messages: Any, *, threads: int = 1, on_bad: OnBad = "raise", extra: Extra = "raise"
    ) -> pa.Table:
        """Publish a table of messages. Returns the matches table.

        Subscriptions that have expired get nothing, nor do those that will have expired at the time of the message.
        While there are subscriptions of kind `top`, or that follow, the table has one row for each event that `publish`
        would return, message by message, and a column `change`: +1, -1, or null for a match.
        """
        if self._results is not None:
            return self._publish_table_in_turn(messages, threads, on_bad, extra)
        now = self._now()
        matches = self.index.match_at(messages, now, threads=threads, on_bad=on_bad, extra=extra)
        if now >= self._expiries.next_due:
            self._expiries.start()
        return matches

    def explain(
        self,
        subscription: Id,
        text: str = "",
        *,
        at: Sequence[float],
        tokens: Iterable[str] | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> Explanation:
        """Why this message would or would not reach this subscription."""
        from nearcast.engine.explain import MessageWords, explain, with_score  # few engines explain

        subscription, now = checked_id(subscription, "subscription")[0], self._now()
        found = self._live.get(subscription)
        if found is None or now >= found.expires:
            raise InvalidInput(f"no live subscription {subscription!r}", column="subscription")
        words = some_tokens(tokens) if tokens is not None else self._analyser.tokens(text)
        box, wanted = box_of(self._place(at)), clauses(parse(found.expression, self._analyser))
        message = MessageWords(words, checked_attributes(attributes) or {})
        explanation = explain(wanted, found.region, message, box, now >= found.expires)
        if found.kind is TOP:
            return self._explain_top(subscription, words, box, explanation)
        scored = self.index.subscriptions_of(found.kind)
        if not found.kind.is_scored or scored is None:
            return explanation
        number = int(self.index.names.find_all([subscription])[0])
        score, least = scored.score(number, self.index.message(words, box, now))
        return with_score(explanation, score, least, not found.region.is_box)

    # -- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the engine to a folder, a path or a URL, whole or not at all. `open_engine` continues from there.

        All of it is saved: subscriptions of all kinds, windows, live messages, the newest time. The clock is not.
        """
        from nearcast.engine.saved.saved_engine import save_engine

        with self._versions.pause():
            self._saved = save_engine(self, path)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by path if the engine is saved, unchanged since then and without results that live on, else by value.

        Its clock must be picklable.
        """
        from nearcast.engine.saved.saved_engine import engine_state, reopened_engine, restored_engine

        with self._versions.pause():
            if self._saved is not None and self._saved[2] == self._versions.number and self._results is None:
                return reopened_engine, (*self._saved[:2], self._clock)
            arrays, header = engine_state(self)
            return restored_engine, ({name: np.array(array) for name, array in arrays.items()}, header, self._clock)

    # -- results that live on

    def move(self, id: Id, to: Sequence[float]) -> list[Change]:
        """Move a subscription that follows: a circle to a point (x, y), any region to a box. Returns the changes.

        Time passes for all: what has expired leaves, and stays that have become long enough count.
        """
        place, id = self._place(to, "to"), checked_id(id)[0]
        with self._versions.pause():
            found = self._found(id)
            if self._results is None or id not in self._results.followers:
                reason = f"subscription {id!r} does not follow; subscribe it with follow=True"
                raise InvalidInput(reason, column="id")
            region = moved_region(found.region, place, id)
            now, changes = self._begin_step()
            changes = in_order([*changes, *self._results.move(id, place, now)])
            self._live[id] = found._replace(region=region)
        return changes

    def advance(self, now: datetime | timedelta | None = None) -> list[Change]:
        """Let time pass: to the present of the clock or, if later, to `now`. Returns the changes.

        From then on the engine's present is never before this time, for all kinds. A `now` before the newest time so
        far raises InvalidInput and changes nothing.
        """
        with self._versions.pause():
            results = self._live_results()
            if now is not None:
                time = self._deadline(now, "now")
                if time < self._newest[0]:
                    shown = " is before ".join(f"{np.datetime64(each, 'us')}Z" for each in (time, self._newest[0]))
                    raise InvalidInput(f"{shown}, the newest time so far; time does not go backwards", column="now")
                self._pass_to(time)
            present, changes = self._begin_step()
            changes = in_order([*changes, *results.advance(present)])
            self._drop_unused_results()
        return changes

    def results(self, id: Id) -> pa.Table:
        """The results of a subscription as of the last event: the list of kind `top`, best first, as a table (message,
        score), or the messages of a subscription that follows, as a table with a column `message`.
        """
        with self._versions.pause():
            id = checked_id(id)[0]
            found = self._live.get(id)
            if found is None:
                raise InvalidInput(f"no live subscription {id!r}", column="id")
            if self._results is None or id not in self._results:
                reason = f"subscription {id!r} has no results: it is of kind '{found.kind.name}' and does not follow"
                raise InvalidInput(reason, column="id")
            return self._results.results(id)

    def _live_results(self) -> LiveResults:
        """Made on first use; the writer calls this."""
        if self._results is None:
            from nearcast.engine.live.results import LiveResults  # few engines need it

            self._results = LiveResults(self._space, self._analyser, self._weights)
        return self._results

    def _drop_unused_results(self) -> None:
        """Let messages be published without the lock again once the last result is gone; the writer calls this."""
        if self._results is not None and self._results.is_empty:
            self._results = None

    def _subscribe_live(
        self,
        id: Id | None,
        expression: str,
        place: Region,
        wanted: list[Clause],
        how: tuple[str, bool, timedelta | None, datetime | timedelta | None],
        parameters: dict[str, Any],
    ) -> Id:
        """Subscribe with kind `top`, or with follow=True."""
        from nearcast.engine.live.arguments import read_follow, read_top

        (kind, follow, dwell, expires), best, stay = how, None, 0
        if follow or dwell is not None:
            stay = read_follow(kind, parameters, follow, dwell)
        else:
            best = read_top(parameters, wanted, place)
        subscription = LiveSubscription(expression, place, self._deadline(expires), MATCH if best is None else TOP, {})
        with self._versions.change():
            number = self._subscription_id(id)
            results, ends = self._live_results(), subscription.expires
            if best is not None:
                results.add_list(number, best, ends)
            else:
                results.add_follower(number, expression, place, stay, ends, self._now())
            self._forget([number])
            self._live[number] = subscription
        self._upkeep()
        return number

    def _begin_step(self) -> tuple[int, list[Change]]:
        """(the present, the changes of subscriptions with results that have expired)."""
        now, results = self._now(), self._live_results()
        gone, changes = results.expire(now)
        for number in gone:
            del self._live[number]
        return now, changes

    def _publish_in_turn(
        self, words: Any, place: list[float], id: Id | None, expires: Any, attributes: Mapping[str, Any] | None
    ) -> list[Event]:
        """Publish one message while there are results that live on."""
        from nearcast.engine.live.messages import LiveMessages

        tokens = self._analyser.tokens(words) if isinstance(words, str) else words
        with self._versions.pause():
            until = self._deadline(self._lifetime if expires is None else expires)
            number = self._message_id(id)
            self._live_results().require_messages(one_id(number).type)
            now, gone = self._begin_step()
            names, ids, scores = self.index.match_message(tokens, place, now, attributes)
            message = LiveMessages.one(number, tokens, box_of(place), until, attributes)
            (step,) = self._live_results().publish(message, now)
            self._drop_unused_results()
        if now >= self._expiries.next_due:
            self._expiries.start()
        return [*matches_of(number, names, ids, scores), *in_order([*gone, *step])]

    def _publish_table_in_turn(self, messages: Any, threads: int, on_bad: OnBad, extra: Extra) -> pa.Table:
        """Publish a table of messages while there are results that live on."""
        from nearcast.engine.events import events_table  # few engines need it
        from nearcast.engine.live.messages import matches_by_message, read_live_messages

        table, dialect = as_arrow(messages), Dialect(self._analyser, self._space, on_bad, extra=read_extra(extra))
        read, rejects = read_live_messages(table, dialect.with_extra(self.index.vocabulary.attributes))
        self.index.rejects = rejects
        require_accepted(rejects, table.num_rows, "messages")
        with self._versions.pause():
            if read.size:
                self._live_results().require_messages(read.ids.type)
            now, gone = self._begin_step()
            found = matches_by_message(self.index.match_at(read.timed(), now, threads=threads, extra="ignore"))
            results = self._live_results()
            steps = results.publish(read.ending(self._deadline(self._lifetime)), now) or [results.advance(now)]
            self.index.rejects = rejects  # matching has replaced them
            kind = results.message_type
            self._drop_unused_results()
        if now >= self._expiries.next_due:
            self._expiries.start()
        steps[0] = in_order([*gone, *steps[0]])
        return events_table(
            (event for id, step in itertools.zip_longest(read.ids.python(), steps) for event in (*found[id], *step)),
            pa.int64() if kind is None else kind.arrow,
            self.index.names.arrow_type,
        )

    def _explain_top(self, number: Id, words: list[str], box: np.ndarray, compared: Explanation) -> Explanation:
        """With the score, and the least score that enters the list as it is now: 0 while there is room."""
        from nearcast.engine.live.messages import LiveMessages

        with self._versions.pause():
            if self._results is None or number not in self._results.lists:
                raise InvalidInput(f"no live subscription {number!r}", column="subscription")
            one = LiveMessages.one(self._live_results().any_message, words, box)
            score, least = self._results.lists.compared(number, one.points(self._now()))
        return replace(compared, holds=score is not None and score >= least, score=score or 0.0, threshold=least)

    # -- parts

    def _found(self, number: Id) -> LiveSubscription:
        """A subscription that has not expired."""
        found = self._live.get(number)
        if found is None or self._now() >= found.expires:
            raise InvalidInput(f"no live subscription {number!r}", column="id")
        return found

    def _read(self, id: Id, subscription: LiveSubscription, wanted: list[Clause]) -> Subscriptions:
        """The subscription, as a table of one row is read."""
        number = id if isinstance(id, int) else int(self.index.names.add(one_id(id))[0])
        one = OneSubscription(number, wanted, subscription.region, subscription.expires, subscription.params)
        rows, shapes = rows_of_one(one, self.index.vocabulary, self._space)
        return Subscriptions(np.array([number]), {subscription.kind.name: rows}, shapes, _NO_REJECTS)

    def _message_id(self, given: Id | None) -> Id:
        if given is None:
            return next(self._message_numbers)
        number = checked_id(given)[0]
        if not isinstance(number, int):
            return number
        with self._numbering:
            following = next(self._message_numbers)
            self._message_numbers = itertools.count(max(following, number + 1))
        return number

    def _place(self, at: Sequence[float], name: str = "at") -> list[float]:
        """The point or box, as valid numbers."""
        values = floats_of(at)
        if len(values) == 2 and self._space.has_point(values[0], values[1]):
            return values
        if len(values) not in (2, 4):
            raise InvalidInput(f"{name}= is a point (x, y) or a box (xmin, ymin, xmax, ymax)", column=name)
        box = box_of(values).reshape(1, 4)
        code = int(coordinate_faults(box, self._space)[0])
        if code != FINE:
            raise InvalidInput(fault_reason(code, box[0], planar=self._space.planar)[1], column=name)
        return values

    def _deadline(self, expires: datetime | timedelta | None, name: str = "expires") -> int:
        if expires is None:
            return NEVER
        if isinstance(expires, timedelta):
            return max(NO_TIME + 1, min(NEVER, self._now() + expires // timedelta(microseconds=1)))
        if not isinstance(expires, datetime):
            raise InvalidInput(f"{name}= is a datetime or a timedelta, not {expires!r}", column=name)
        stamped = expires if expires.tzinfo else expires.replace(tzinfo=UTC)
        return (stamped - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)

    def _now(self) -> int:
        """The present in microseconds since 1970: the clock, or the newest time so far if the clock has gone back."""
        return self._pass_to(int(self._clock() * 1_000_000))

    def _pass_to(self, time: int) -> int:
        """Let time pass to this one, if it is later than the newest so far; return the newest.

        One call that Python does not divide compares and writes: publishers take no lock here, and none of them may
        write an older time over a newer one.
        """
        heapq.heappushpop(self._newest, time)  # keeps the larger of the two
        return self._newest[0]

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


def open_engine(path: str | os.PathLike[str], verify: bool = True, *, clock: Callable[[], float] = time.time) -> Engine:
    """A saved engine. It continues where it was; the files do not change."""
    from nearcast.engine.saved.saved_engine import opened_engine

    return opened_engine(path, verify, clock)

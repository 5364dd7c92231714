"""Moving subscriptions and live messages, below tables and strings: steps in, net changes out.

A step is processed in an order in which every pair changes once at most: messages that die leave the old places;
subscriptions go, move and come among the messages that stay; new messages arrive at the new places. What is left to
cancel is a message or subscription that replaces another of its id.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nearcast.arrays.ragged import distinct, take
from nearcast.errors import InvalidInput
from nearcast.geo.shapes.columns import ShapeColumns
from nearcast.geo.space import Space
from nearcast.model import NO_TIME, Changes, MessageBatch, RowBatch
from nearcast.moving.live_messages import LiveMessages
from nearcast.moving.method import make_moving_method
from nearcast.moving.net_changes import Part, changes_of_part, net_changes, signed
from nearcast.moving.pairs import Pairs, holds_in_full
from nearcast.moving.subscribers import Moves, Subscribers, check_places

_NO_IDS = np.empty(0, np.int64)
_SMALLEST_COMPACTION = 1024


class Arrivals(NamedTuple):
    """New messages. Terms are as methods see them: sorted, EVERYWHERE first."""

    batch: MessageBatch
    expires: np.ndarray  # int64[n]  microseconds, or NEVER


class Subscribed(NamedTuple):
    """New subscriptions, as rows that methods see."""

    ids: np.ndarray  # int64[...]  all of them, also those without rows
    batch: RowBatch
    shapes: ShapeColumns


class MovingSet:
    """The state of `Moving`: subscribers, live messages, the clock, and the method that indexes both."""

    def __init__(self, method: str, space: Space, options: dict[str, Any] | None = None) -> None:
        self.space = space
        self.options = dict(options or {})
        self.now = NO_TIME
        self.subscribers, self.messages = Subscribers(space), LiveMessages()
        self._method_name = method
        self.rebuild_method()

    def rebuild_method(self) -> None:
        """Begin with a new method over the present content."""
        store = self.subscribers.store
        self.method = make_moving_method(self._method_name, store, self.messages, self.space, self.options)
        self.method.build(store.live_rows(), self.messages.slots())
        self.messages.recycle()
        self._built_for = (store.live, len(self.messages))

    @property
    def nbytes(self) -> int:
        return self.subscribers.nbytes + self.messages.nbytes + self.method.nbytes

    # -- steps

    def step(
        self,
        now: int | None = None,
        arrivals: Arrivals | None = None,
        moved: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> Changes:
        """Advance the clock, move subscriptions and let messages arrive, all at once."""
        now = self._checked_now(now)
        gone = self.subscribers.expired(now)
        moves = self._checked_moves(*moved, gone) if moved is not None else None
        parts = self._let_die(now, arrivals)
        parts.append(self._drop(gone))
        if moves is not None:
            parts += self._move(moves)
        if arrivals is not None:
            parts.append(self._arrive(arrivals, now))
        return self._done(now, parts)

    def subscribe(self, new: Subscribed, now: int | None = None) -> Changes:
        """Add subscriptions; one whose id is known replaces the older one."""
        now = self._checked_now(now)
        parts = self._let_die(now, None)
        known = new.ids[self.subscribers.are_known(new.ids)]
        parts.append(self._drop(distinct(np.concatenate([known, self.subscribers.expired(now)]))))
        parts.append(self._add(_unexpired(new, now)))
        return self._done(now, parts)

    def unsubscribe(self, ids: np.ndarray, now: int | None = None) -> Changes:
        """Forget known subscriptions."""
        now = self._checked_now(now)
        self._require_known(ids)
        parts = self._let_die(now, None)
        parts.append(self._drop(distinct(np.concatenate([ids, self.subscribers.expired(now)]))))
        return self._done(now, parts)

    def results(self, subscription: int) -> np.ndarray:
        """int64[n]: the live messages that a known subscription matches, in ascending order."""
        ids = np.array([subscription], np.int64)
        self._require_known(ids)
        pairs = self.method.find(self.subscribers.rows_of(ids))
        keep = holds_in_full(self.subscribers.store, self.messages, pairs)
        return distinct(np.sort(self.messages.ids[pairs.slots[keep]]))

    # -- checks, before anything is changed

    def check_step(self, now: int | None, moved: tuple[np.ndarray, np.ndarray] | None) -> None:
        """Raise InvalidInput where `step` would."""
        moment = self._checked_now(now)
        if moved is not None:
            self._checked_moves(*moved, self.subscribers.expired(moment))

    def _checked_now(self, now: int | None) -> int:
        if now is not None and now < self.now:
            raise InvalidInput(f"time goes backwards: {_shown(now)} is before {_shown(self.now)}; advance only")
        return self.now if now is None else now

    def _require_known(self, ids: np.ndarray) -> None:
        known = self.subscribers.are_known(ids)
        if not known.all():
            row = int((~known).argmax())
            raise InvalidInput(f"no subscription {ids[row]}; subscribe it first", row=row, column="id")

    def _checked_moves(self, ids: np.ndarray, places: np.ndarray, gone: np.ndarray) -> Moves:
        if len(ids) != len(places):
            raise InvalidInput(f"{len(ids)} ids and {len(places)} places; give one place for each id")
        self._require_known(ids)
        check_places(ids, places, self.space)
        last = _last_of_each(ids)
        if last is not None:
            ids, places = ids[last], places[last]
        if len(gone):
            stays = ~np.isin(ids, gone)
            ids, places = ids[stays], places[stays]
        return self.subscribers.moves(ids, places)

    # -- parts of a step

    def _let_die(self, now: int, arrivals: Arrivals | None) -> list[Part]:
        """Expired messages leave, and those whose ids come again."""
        slots = self.messages.expired(now)
        if arrivals is not None:
            slots = distinct(np.concatenate([slots, self.messages.slots_of(arrivals.batch.ids)]))
        if len(slots) == 0:
            return []
        pairs = self._by_id(self.method.leave(slots), -1)
        self.messages.kill(slots)
        if self.method.sweep():
            self.messages.recycle()
        return [pairs]

    def _drop(self, ids: np.ndarray) -> Part:
        rows = self.subscribers.rows_of(ids)
        pairs = self._by_id(self.method.find(rows), -1)
        self.method.remove(rows)
        self.subscribers.discard(ids)
        return pairs

    def _add(self, new: Subscribed) -> Part:
        rows = self.subscribers.add(*new)
        self.method.insert(rows)
        return self._by_id(self.method.find(rows), 1)

    def _move(self, moves: Moves) -> list[Part]:
        changes = self.method.move(moves.rows, moves.boxes)
        parts = [changes_of_part(self.subscribers.store, self.messages, changes)]
        if len(moves.replaced_ids):
            parts.append(self._drop(moves.replaced_ids))
            parts.append(self._add(Subscribed(_NO_IDS, moves.batch, moves.shapes)))
        return parts

    def _arrive(self, arrivals: Arrivals, now: int) -> Part:
        live = np.flatnonzero(arrivals.expires > now)
        batch, expires = arrivals.batch, arrivals.expires
        if len(live) < batch.size:
            terms, starts = take(batch.terms, batch.term_starts, live)
            batch = MessageBatch(batch.ids[live], terms, starts, batch.boxes[live], batch.times[live])
            expires = expires[live]
        return self._by_id(self.method.arrive(self.messages.add(batch, expires)), 1)

    def _by_id(self, pairs: Pairs, sign: int) -> Part:
        return changes_of_part(self.subscribers.store, self.messages, signed(pairs, sign))

    def _done(self, now: int, parts: list[Part]) -> Changes:
        self.now = now
        store = self.subscribers.store
        if store.high > _SMALLEST_COMPACTION and 4 * store.live < store.high:
            self.rebuild()
        elif _has_changed(store.live, self._built_for[0], 16) or _has_changed(
            len(self.messages), self._built_for[1], 256
        ):
            self.rebuild_method()
        return net_changes(parts, now)

    # -- renumbering

    def used_terms(self, n_terms: int) -> np.ndarray:
        """bool[n_terms]: which terms occur in live subscriptions or messages."""
        is_used = np.zeros(n_terms, bool)
        batch, _ = self.subscribers.store.batch(self.subscribers.store.live_rows())
        for terms in (batch.terms, batch.not_terms, self.messages.batch(self.messages.slots())[0].terms):
            is_used[terms] = True
        return is_used

    def give_terms(self, ids: np.ndarray, terms: np.ndarray, starts: np.ndarray) -> None:
        """Give live messages these term sets, which have all terms that they had. No row has the new ones yet, so that
        no result changes.
        """
        slots = self.messages.slots_of(ids)
        wanted = np.flatnonzero(np.diff(starts) != self.messages.arrays.n_terms[slots])
        if len(wanted) == 0:
            return
        batch, expires = self.messages.batch(slots[wanted])
        terms, starts = take(terms, starts, wanted)
        self.method.leave(slots[wanted])
        self.messages.kill(slots[wanted])
        if self.method.sweep():
            self.messages.recycle()
        self.method.arrive(self.messages.add(batch._replace(terms=terms, term_starts=starts), expires))

    def rebuild(self, new_terms: np.ndarray | None = None) -> None:
        """Number rows and messages anew and build the method again: returns the memory of what is gone.

        `new_terms`, by old term, gives terms new numbers in the same order.
        """
        old, store = self.subscribers, self.subscribers.store
        rows = store.live_rows()
        batch, shapes = store.batch(rows[np.argsort(store.owner_ids[rows], kind="stable")])
        messages, expires = self.messages.batch(self.messages.slots())
        if new_terms is not None:
            batch = batch._replace(terms=new_terms[batch.terms], not_terms=new_terms[batch.not_terms])
            messages = messages._replace(terms=new_terms[messages.terms])
        self.subscribers, self.messages = Subscribers(self.space), LiveMessages()
        self.subscribers.add(_NO_IDS, batch, shapes)
        self.subscribers.without_rows = old.without_rows
        self.messages.add(messages, expires)
        self.rebuild_method()


def _has_changed(size: int, built: int, least: int) -> bool:
    """Whether a size is four times, or a quarter of, the size at the last build; sizes below `least` do not count."""
    return size > 4 * max(built, least) or 4 * max(size, least) < built


def _unexpired(new: Subscribed, now: int) -> Subscribed:
    """The subscriptions whose expiry is after `now`."""
    live = np.flatnonzero(new.batch.expires > now)
    if len(live) == new.batch.size:
        return new
    dead = distinct(np.sort(new.batch.owner_ids[new.batch.expires <= now]))
    batch = new.batch
    terms, term_starts = take(batch.terms, batch.term_starts, live)
    not_terms, not_starts = take(batch.not_terms, batch.not_starts, live)
    columns = (batch.boxes[live], batch.shapes[live], batch.expires[live])
    kept = RowBatch(batch.owner_ids[live], terms, term_starts, not_terms, not_starts, *columns)
    return Subscribed(new.ids[~np.isin(new.ids, dead)], kept, new.shapes)


def _last_of_each(ids: np.ndarray) -> np.ndarray | None:
    """The position of the last occurrence of each id, in ascending order; None where no id occurs twice."""
    ordered = np.sort(ids)
    if not (ordered[1:] == ordered[:-1]).any():
        return None
    order = np.argsort(ids, kind="stable")
    is_last = np.ones(len(ids), bool)
    is_last[:-1] = ids[order[1:]] != ids[order[:-1]]
    return np.sort(order[is_last])


def _shown(now: int) -> str:
    return "the beginning" if now == NO_TIME else f"{np.datetime64(now, 'us')}Z"

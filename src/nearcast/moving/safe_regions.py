"""Safe regions: how far a subscription may move before it must report, and whom a new message recalls.

The safe radius of a subscription is the largest shift of its box's sides by which no live message that has its words
crosses a side. Within it the results at the reported place are the results at the true place. A new message that may
be inside the box at one place within the radius and outside at another makes the true place necessary: the client is
recalled. Expiry only widens safe regions, which are computed anew at the next report.

A second set has the same subscriptions with boxes grown by `reach`, the largest radius, and the same messages. It finds
the messages near a subscription, and the subscriptions near a message.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.ragged import distinct
from nearcast.errors import InvalidInput
from nearcast.matching.predicate import FLAG_CHAINED, FLAG_SHAPED
from nearcast.model import Changes
from nearcast.moving.moving_set import Arrivals, MovingSet, Subscribed
from nearcast.moving.pairs import holds_in_full
from nearcast.moving.subscribers import check_places

Where = Callable[[np.ndarray], np.ndarray]
"""Takes the ids (int64[n]) of recalled subscriptions, and returns their present boxes (float64[n,4])."""

_TRAFFIC = ("reports", "recalls", "pushes")
_ROUNDING = 8 * float(np.finfo(np.float64).eps)


class SafeRegions:
    """A moving set whose clients report only when they leave their safe region."""

    def __init__(self, live: MovingSet, reach: float, where: Where | None) -> None:
        if not (np.isfinite(reach) and reach > 0):
            raise InvalidInput(f"reach is a length above 0, not {reach}")
        self._live, self._reach, self._where = live, reach, where
        self._near = self._near_set()
        self._radii = np.zeros(0)  # by row of the live set
        self._measured = live.subscribers
        self.reports = self.recalls = self.pushes = 0

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and a header, enough for `restored`. The radii are kept, since older messages shaped them."""
        high = self._live.subscribers.store.high
        return {"radii": self._radii_up_to(high - 1)[:high]}, {"reach": self._reach, "traffic": self.traffic}

    @property
    def traffic(self) -> dict[str, int]:
        """Reports of clients, recalls of clients, and changes pushed to clients."""
        return {name: getattr(self, name) for name in _TRAFFIC}

    @classmethod
    def restored(
        cls, live: MovingSet, where: Where | None, arrays: dict[str, np.ndarray], header: dict[str, Any]
    ) -> SafeRegions:
        """The safe regions of a saved state, over a live set that is restored already."""
        made = cls(live, header["reach"], where)
        made._radii = np.array(arrays["radii"])
        made.reports, made.recalls, made.pushes = (header["traffic"][name] for name in _TRAFFIC)
        return made

    def _near_set(self) -> MovingSet:
        """The second set, made from what the live set holds."""
        live, store = self._live, self._live.subscribers.store
        near = MovingSet(live.method.name, live.space, live.options)
        batch, shapes = store.batch(store.live_rows())
        batch = batch._replace(boxes=self._grown(batch.boxes, batch.shapes < 0))
        near.subscribers.add(np.array(sorted(live.subscribers.without_rows), np.int64), batch, shapes)
        near.messages.add(*live.messages.batch(live.messages.slots()))
        near.now = live.now
        near.rebuild_method()
        return near

    def subscribe(self, new: Subscribed, now: int | None) -> Changes:
        """Add subscriptions to both sets."""
        changes = self._live.subscribe(new, now)
        batch = new.batch._replace(boxes=self._grown(new.batch.boxes, new.batch.shapes < 0))
        self._near.subscribe(new._replace(batch=batch), now)
        self._measure(new.ids)
        return self._pushed(changes)

    def unsubscribe(self, ids: np.ndarray, now: int | None) -> Changes:
        changes = self._live.unsubscribe(ids, now)
        self._near.unsubscribe(ids, now)
        return self._pushed(changes)

    def step(
        self, now: int | None, arrivals: Arrivals | None = None, moved: tuple[np.ndarray, np.ndarray] | None = None
    ) -> Changes:
        """One step. Clients near an arriving message, whose results are not certain, are recalled for it."""
        ids, places = moved if moved is not None else (np.empty(0, np.int64), np.empty((0, 4)))
        if places.shape[1] == 2 and len(ids):
            raise InvalidInput("with safe=True subscriptions move by boxes, not by points")
        self._live.check_step(now, moved)
        try:
            recalled, found = self._step_near(now, arrivals, ids, places)
        except Exception:  # the caller's where() may raise anything: nothing is changed then
            self._near = self._near_set()
            raise
        self.reports += len(ids)
        self.recalls += len(recalled)
        ids, places = np.concatenate([ids, recalled]), np.concatenate([places, found])
        changes = self._live.step(now, arrivals, (ids, places))
        self._measure(distinct(ids))
        return self._pushed(changes)

    def _step_near(
        self, now: int | None, arrivals: Arrivals | None, ids: np.ndarray, places: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """(the clients that the messages recall, their boxes), after a step of the second set."""
        self._near.step(now, arrivals, (ids, self._grown(places)))
        recalled = self._uncertain(arrivals.batch.ids, ids) if arrivals is not None else ids[:0]
        if len(recalled) == 0:
            return recalled, np.empty((0, 4))
        found = self._recalled_places(recalled)
        self._near.step(None, None, (recalled, self._grown(found)))
        return recalled, found

    def give_terms(self, ids: np.ndarray, terms: np.ndarray, starts: np.ndarray) -> None:
        """Give live messages larger sets of terms in both sets."""
        self._live.give_terms(ids, terms, starts)
        self._near.give_terms(ids, terms, starts)

    def rebuild(self, new_terms: np.ndarray) -> None:
        """Give terms new numbers in both sets."""
        self._live.rebuild(new_terms)
        self._near.rebuild(new_terms)

    def radii(self, ids: np.ndarray) -> np.ndarray:
        """float64[n]: how far each side of a known subscription's box may move unreported. 0: it must always report."""
        rows = self._live.subscribers.first_rows(ids)
        return np.where(rows >= 0, self._radii_up_to(int(rows.max(initial=-1)))[rows], np.inf)

    def must_report(self, ids: np.ndarray, boxes: np.ndarray) -> np.ndarray:
        """bool[n]: whether a client at this box is outside its safe region."""
        rows = self._live.subscribers.first_rows(ids)
        shifts = np.abs(boxes - self._live.subscribers.store.arrays.boxes[rows]).max(axis=1, initial=0.0)
        return np.asarray((rows >= 0) & (shifts > self.radii(ids)))

    def _radii_up_to(self, row: int) -> np.ndarray:
        self._radii = grown(self._radii, row + 1, fill=0.0)
        return self._radii

    def _grown(self, boxes: np.ndarray, is_plain: np.ndarray | None = None) -> np.ndarray:
        """The boxes, wider by the reach on every side, within the space."""
        wider = boxes + np.array([-1.0, -1.0, 1.0, 1.0]) * self._reach
        if not self._live.space.planar:
            xmin, ymin, xmax, ymax = self._live.space.bounds
            wider = np.clip(wider, [xmin, ymin, xmin, ymin], [xmax, ymax, xmax, ymax])
        return wider if is_plain is None else np.where(is_plain[:, None], wider, boxes)

    def _uncertain(self, message_ids: np.ndarray, known: np.ndarray) -> np.ndarray:
        """The subscriptions that match one of these messages at some places within the radius, and not at others.

        Ids in `known` have just reported, so their place is certain.
        """
        pairs = self._near.method.leave(self._near.messages.slots_of(message_ids))
        keep = holds_in_full(self._near.subscribers.store, self._near.messages, pairs)
        ids = self._near.subscribers.store.owner_ids[pairs.rows[keep]]
        ids, slots = ids[~np.isin(ids, known)], pairs.slots[keep][~np.isin(ids, known)]
        is_live = self._live.subscribers.owners.has(ids)
        ids, slots = ids[is_live], slots[is_live]
        rows = self._live.subscribers.first_rows(ids)
        gaps = _gaps(self._live.subscribers.store.arrays.boxes[rows], self._near.messages.arrays.boxes[slots])
        radii = self._radii_up_to(int(rows.max(initial=-1)))[rows]
        return distinct(ids[(gaps <= radii) & (radii > 0)])

    def _recalled_places(self, ids: np.ndarray) -> np.ndarray:
        if self._where is None:
            raise InvalidInput("a message needs the places of some clients; give where=, which returns them")
        boxes = np.asarray(self._where(ids), np.float64)
        if boxes.shape != (len(ids), 4):
            raise InvalidInput(
                f"where() returned the shape {boxes.shape} for {len(ids)} ids; it returns a box for each"
            )
        check_places(ids, boxes, self._live.space)
        return boxes

    def _measure(self, ids: np.ndarray) -> None:
        """Compute the radii of subscriptions that have just reported; of all, if rows have new numbers."""
        if self._live.subscribers is not self._measured:
            self._measured = self._live.subscribers
            ids = distinct(self._measured.store.owner_ids[self._measured.store.live_rows()])
        known = ids[self._live.subscribers.owners.has(ids)]
        rows = self._live.subscribers.first_rows(known)
        radii = self._radii_up_to(int(rows.max(initial=-1)))
        is_plain = self._live.subscribers.store.arrays.flags[rows] & (FLAG_SHAPED | FLAG_CHAINED) == 0
        radii[rows] = np.where(is_plain, self._reach, 0.0)
        rows, known = rows[is_plain], known[is_plain]
        near_rows = self._near.subscribers.first_rows(known)
        pairs = self._near.method.find(near_rows)
        keep = holds_in_full(self._near.subscribers.store, self._near.messages, pairs)
        row_of = np.zeros(int(near_rows.max(initial=-1)) + 1, np.int64)
        row_of[near_rows] = rows
        owners = row_of[pairs.rows[keep]]
        boxes = self._live.subscribers.store.arrays.boxes[owners]
        np.minimum.at(radii, owners, _gaps(boxes, self._near.messages.arrays.boxes[pairs.slots[keep]]))

    def _pushed(self, changes: Changes) -> Changes:
        self.pushes += changes.size
        return changes


def _gaps(boxes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """float64[n]: how far the sides of each box may move before it begins, or ceases, to overlap the other box."""
    apart_x = np.maximum(others[:, 0] - boxes[:, 2], boxes[:, 0] - others[:, 2])
    apart_y = np.maximum(others[:, 1] - boxes[:, 3], boxes[:, 1] - others[:, 3])
    rounding = _ROUNDING * np.maximum(np.abs(boxes).max(axis=1, initial=0.0), np.abs(others).max(axis=1, initial=0.0))
    return np.asarray(np.maximum(0.0, np.abs(np.maximum(apart_x, apart_y)) - rounding))

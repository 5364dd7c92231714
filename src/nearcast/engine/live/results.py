"""Subscriptions of an engine whose results live on: those of kind `top`, and those that follow somebody.

Only the engine's writer calls this. Time is the engine's; it does not go backwards.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from nearcast.engine.expiries import Expiries
from nearcast.engine.live.best_lists import BestLists, Wanted
from nearcast.engine.live.followers import Followers
from nearcast.engine.live.messages import LiveMessages
from nearcast.errors import InvalidInput
from nearcast.geo.region import Region
from nearcast.geo.space import Space
from nearcast.model import Change, Id, in_order
from nearcast.tables.ids import IdType
from nearcast.tables.ids.id_types import header_of, of_header
from nearcast.text.analyser import Analyser


class LiveResults:
    """Best lists and followers, with one list of expiries."""

    def __init__(self, space: Space, analyser: Analyser, weights: Any) -> None:
        self.lists = BestLists(space, analyser, weights)
        self.followers = Followers(space, analyser)
        self.message_type: IdType | None = None  # of the messages so far
        self._expiries = Expiries(self._leave_it_to_the_next_step)

    def _leave_it_to_the_next_step(self, most: int) -> bool:
        """Subscriptions that expire have changes, which somebody must get: no thread forgets them."""
        return False

    @property
    def is_empty(self) -> bool:
        return not (len(self.lists) or len(self.followers))

    def __contains__(self, number: Id) -> bool:
        return number in self.lists or number in self.followers

    def count_due(self, now: int) -> int:
        """How many subscriptions have expired that no step has forgotten yet."""
        return self._expiries.count_due(now)

    def require_messages(self, kind: IdType) -> None:
        """Raise InvalidInput if messages with ids of this type cannot come after those that came."""
        if self.message_type is not None and self.message_type.name != kind.name:
            known = self.message_type.words
            reason = (
                f"the id is one of {kind.words}, those of the messages before it are {known}; give id= of that type"
            )
            raise InvalidInput(reason, column="id")
        self.message_type = self.message_type or kind

    @property
    def nbytes(self) -> int:
        return self.lists.nbytes + self.followers.nbytes

    def message_header(self) -> str | None:
        """The type of messages, for a saved header."""
        return header_of(self.message_type)

    def take_message_header(self, header: str | None) -> None:
        self.message_type = of_header(header)

    def set_expiry(self, number: Id, expires: int) -> None:
        """Set when a subscription expires that is here already."""
        self._expiries.replace(number, expires)

    @property
    def any_message(self) -> Id:
        """An id that a message could have."""
        name = "" if self.message_type is None else self.message_type.name
        return "-" if name == "string" else uuid.UUID(int=0) if name == "uuid" else 0

    # -- subscriptions

    def add_list(self, number: Id, wanted: Wanted, expires: int) -> None:
        """Add or replace a subscription of kind `top`."""
        self.lists.subscribe(number, wanted)
        if number in self.followers:
            self.followers.unsubscribe([number])
        self._expiries.replace(number, expires)

    def add_follower(self, number: Id, expression: str, region: Region, dwell: int, expires: int, now: int) -> None:
        """Add or replace a subscription that follows."""
        self.followers.subscribe(number, expression, region, dwell, now)
        if number in self.lists:
            self.lists.unsubscribe([number])
        self._expiries.replace(number, expires)

    def forget(self, numbers: Iterable[Id]) -> list[Change]:
        """Forget those of the subscriptions that are here; a change -1 for each of their results."""
        known = list(dict.fromkeys(number for number in numbers if number in self))
        in_lists, following = ([each for each in known if each in part] for part in (self.lists, self.followers))
        changes = self.lists.unsubscribe(in_lists) if in_lists else []
        changes += self.followers.unsubscribe(following) if following else []
        for number in known:
            self._expiries.discard(number)
        return in_order(changes)

    def expire(self, now: int) -> tuple[list[Id], list[Change]]:
        """(subscriptions that have expired, their changes). They are forgotten."""
        if now < self._expiries.next_due:
            return [], []
        due = self._expiries.take_due(now, len(self.lists) + len(self.followers))
        return due, self.forget(due)

    # -- steps

    def publish(self, messages: LiveMessages, now: int) -> list[list[Change]]:
        """The changes of each message, one message after another, all at this time."""
        steps: list[list[Change]] = [[] for _ in range(messages.size)]
        if len(self.lists):
            steps = self.lists.publish(messages.points(now))
        if len(self.followers):
            table = messages.mortal()
            for i, step in enumerate(steps):
                step += self.followers.publish(table.slice(i, 1), now)
        return [in_order(step) for step in steps]

    def move(self, number: Id, place: Sequence[float], now: int) -> list[Change]:
        """Move a subscription that follows. Time passes for all."""
        return in_order([*self.lists.advance(now), *self.followers.move(number, place, now)])

    def advance(self, now: int) -> list[Change]:
        """Let time pass."""
        return in_order([*self.lists.advance(now), *self.followers.advance(now)])

    def results(self, number: Id) -> pa.Table:
        """The results of a subscription that is here."""
        return self.lists.results(number) if number in self.lists else self.followers.results(number)

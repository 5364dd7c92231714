"""An engine with all four kinds in plain Python: dicts, lists and sorting, no array and no code of the package."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import rank_reference
import top_reference

EXPRESSIONS: dict[str, Callable[[set[str]], bool]] = {
    "a": lambda words: "a" in words,
    "b OR c": lambda words: bool({"b", "c"} & words),
    "a NOT b": lambda words: "a" in words and "b" not in words,
    "NOT c": lambda words: "c" not in words,
    "": lambda words: True,
    "b NOT b": lambda words: False,
}
DIAGONAL = math.sqrt(2.0)

Region = tuple[float, ...]
"""A box (4 numbers), a circle (3) or a point (2)."""
Result = tuple[int, int, float | None]
"""(arrival of the message, its id, score)."""
Event = tuple[Any, ...]
"""("match", message, subscription, score) or ("change", message, subscription, +1 or -1, score)."""


@dataclass
class Subscriber:
    kind: str  # match, rank, top or follow
    words: str
    region: Region
    expires: float = math.inf
    alpha: float = 0.5
    threshold: float = 0.0
    k: int = 1
    window: float = 0.0  # whole: a number of messages; else a period in seconds
    max_dist: float | None = None
    dwell: float = 0.0
    since: dict[int, float] = field(default_factory=dict)  # live messages that match, and since when
    results: list[Result] = field(default_factory=list)

    @property
    def window_key(self) -> tuple[float, float | None]:
        return self.window, self.max_dist


@dataclass
class Message:
    number: int
    words: list[str]
    box: tuple[float, ...]
    expires: float
    time: float
    arrival: int

    @property
    def centre(self) -> tuple[float, float]:
        return (self.box[0] + self.box[2]) / 2, (self.box[1] + self.box[3]) / 2


def reaches(region: Region, box: tuple[float, ...]) -> bool:
    if len(region) == 3:
        x, y = (min(max(at, low), high) for at, low, high in zip(region[:2], box[:2], box[2:], strict=True))
        return math.dist((x, y), region[:2]) <= region[2]
    own = (*region, *region) if len(region) == 2 else region
    return own[0] <= box[2] and box[0] <= own[2] and own[1] <= box[3] and box[1] <= own[3]


class PlainEngine:
    """The same calls as `nc.Engine`, in a plane from (0, 0) to (1, 1), with times in seconds."""

    def __init__(self) -> None:
        self.clock = 0.0
        self.newest = -math.inf
        self.takes_turns = False  # from then on, time does not go backwards
        self.subscribers: dict[int, Subscriber] = {}
        self.windows: dict[tuple[float, float | None], list[Message]] = {}
        self.live: dict[int, Message] = {}
        self._arrivals = 0

    @property
    def now(self) -> float:
        return max(self.clock, self.newest)

    def alive(self) -> list[int]:
        return [number for number, each in self.subscribers.items() if each.expires > self.now]

    # -- calls

    def subscribe(self, number: int, new: Subscriber) -> None:
        """Results begin as they are now; there are no events."""
        self.takes_turns |= new.kind in ("top", "follow")
        if new.kind == "top":
            self.windows.setdefault(new.window_key, [])
        self.subscribers[number] = new
        self._drop_unused()
        if new.kind == "follow":
            new.since = {each: self.now for each, message in self.live.items() if self._holds(new, message)}
            new.results = [] if new.dwell else [(each, each, None) for each in sorted(new.since)]
        elif new.kind == "top":
            new.results = self._best(new)

    def unsubscribe(self, numbers: Sequence[int]) -> list[Event]:
        gone = {each: self.subscribers.pop(each) for each in numbers if each in self.subscribers}
        self._drop_unused()
        return [event for each in sorted(gone) for event in _left(each, gone[each].results)]

    def publish(self, number: int, words: list[str], box: tuple[float, ...], lives: float) -> list[Event]:
        self.takes_turns |= lives < math.inf
        events = self._expire()
        self._arrivals += 1
        message = Message(number, words, box, self.now + lives, self.now, self._arrivals)
        found = [self._matched(each, message) for each in sorted(self.subscribers)]
        for window in self.windows.values():
            window.append(message)
        if any(each.kind == "follow" for each in self.subscribers.values()):
            self.live.pop(number, None)
            if message.expires > self.now:
                self.live[number] = message
        return [each for each in found if each is not None] + self._settle(events)

    def move(self, number: int, place: Region) -> list[Event]:
        events = self._expire()
        mover = self.subscribers[number]
        mover.region = (*place, mover.region[2]) if len(place) == 2 and len(mover.region) == 3 else place
        return self._settle(events)

    def advance(self, later: float = 0.0) -> list[Event]:
        self.newest, self.takes_turns = self.now + later, True
        return self._settle(self._expire())

    # -- parts

    def _expire(self) -> list[Event]:
        """Time passes; the events of subscriptions that have expired and had results."""
        if self.takes_turns:
            self.newest = self.now
        due = [each for each, own in self.subscribers.items() if own.expires <= self.now]
        return self.unsubscribe(due)

    def _settle(self, events: list[Event]) -> list[Event]:
        """The events of a step: the difference between the results before and after it."""
        self.live = {each: message for each, message in self.live.items() if message.expires > self.now}
        for (size, _), window in self.windows.items():
            if size == int(size):
                del window[: max(0, len(window) - int(size))]
            else:
                window[:] = [each for each in window if self.now - each.time < size]
        for number, each in self.subscribers.items():
            before = each.results
            if each.kind == "top":
                each.results = self._best(each)
            elif each.kind == "follow":
                holding = [m for m, message in self.live.items() if self._holds(each, message)]
                each.since = {m: each.since.get(m, self.now) for m in holding}
                each.results = [(m, m, None) for m in sorted(holding) if self.now - each.since[m] >= each.dwell]
            events += _left(number, [result for result in before if result not in each.results])
            events += [
                ("change", m, number, 1, score) for key, m, score in each.results if (key, m, score) not in before
            ]
        return sorted(events, key=lambda event: (event[2], event[3]))

    def _matched(self, number: int, message: Message) -> Event | None:
        own = self.subscribers[number]
        if own.kind == "match" and self._holds(own, message):
            return ("match", message.number, number, None)
        if own.kind == "rank":
            row = {"tokens": own.words.split(), "box": own.region, "alpha": own.alpha}
            score = rank_reference.score(row, {"tokens": message.words, "box": message.box}, {})
            return ("match", message.number, number, score) if score >= own.threshold else None
        return None

    def _holds(self, own: Subscriber, message: Message) -> bool:
        return EXPRESSIONS[own.words](set(message.words)) and reaches(own.region, message.box)

    def _best(self, own: Subscriber) -> list[Result]:
        wanted = top_reference.Wanted(own.words.split(), own.region[0], own.region[1], own.k, own.alpha)
        posted = {each.arrival: each for each in self.windows[own.window_key]}
        points = [top_reference.Posted(arrival, each.words, *each.centre) for arrival, each in posted.items()]
        best = top_reference.best(wanted, points, {}, own.max_dist or DIAGONAL)
        return [(arrival, posted[arrival].number, score) for arrival, score in best]

    def _drop_unused(self) -> None:
        """A window ends with its last subscription, and live messages with the last one that follows."""
        used = {each.window_key for each in self.subscribers.values() if each.kind == "top"}
        self.windows = {key: window for key, window in self.windows.items() if key in used}
        if not any(each.kind == "follow" for each in self.subscribers.values()):
            self.live = {}


def _left(number: int, results: list[Result]) -> list[Event]:
    return [("change", message, number, -1, score) for _, message, score in results]

"""Readers and writers of one index, and a check that each answer is that of a prefix of the writes."""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from reference import concerns

WORDS = ("fire", "flood", "road", "snow", "rare")
N_IDS = 60
_FEWEST = 50  # writes and reads

MESSAGES = [
    {"id": number, "tokens": tokens, "box": (x, y, x, y)}
    for number, (tokens, x, y) in enumerate(
        [
            (["fire", "road"], 0.0, 0.0),
            (["flood"], 1.0, 1.0),
            (["fire", "flood", "road", "snow"], 0.5, 0.5),
            ([], 0.25, 0.75),
            (["rare", "snow"], 2.0, 2.0),
        ]
    )
]


class Write(NamedTuple):
    """What one call changed: None removes the subscription."""

    changed: dict[int, dict[str, Any] | None]


class Read(NamedTuple):
    """The answers for some messages, and how many writes had returned before and begun after."""

    done: int
    begun: int
    answers: dict[int, list[int]]  # by position in MESSAGES


def drawn_subscription(rng: random.Random, number: int) -> dict[str, Any]:
    made: dict[str, Any] = {"id": number, "tokens": rng.sample(WORDS, rng.choice([0, 1, 1, 1, 2]))}
    if rng.random() < 0.3:
        made["without"] = [word for word in rng.sample(WORDS, 1) if word not in made["tokens"]]
    x, y = rng.choice([0.0, 0.5, 1.0]), rng.choice([0.0, 0.5, 1.0])
    if rng.random() < 0.4:
        made["circle"] = (x, y, rng.choice([1.0, 90.0, 200.0]))
    else:
        width, height = rng.choice([(0.0, 0.0), (0.5, 0.5), (0.5, 2.0), (2.0, 2.0)])
        made["box"] = (x, y, x + width, y + height)
    return made


def as_row(subscription: dict[str, Any]) -> dict[str, Any]:
    """A row of a subscriptions table."""
    words = [*subscription["tokens"], *(f"NOT {word}" for word in subscription.get("without", ()))]
    if "circle" in subscription:
        region = "circle({}, {}, {}km)".format(*subscription["circle"])
    else:
        x0, y0, x1, y1 = subscription["box"]
        ring = [[x0, y0], [x1, y0], [x1, y1], [x0, y1], [x0, y0]]
        kind, corners = ("Point", [x0, y0]) if x0 == x1 else ("Polygon", [ring])
        region = f'{{"type": "{kind}", "coordinates": {corners}}}'
    return {"id": subscription["id"], "expression": " ".join(words), "region": region}


class World:
    """Runs writers, and one thread for each of `reads`. A write changes as many subscriptions as one of `sizes`."""

    def __init__(
        self,
        write: Callable[[Write], None],
        reads: list[Callable[[random.Random], dict[int, list[int]]]],
        sizes: tuple[int, ...] = (1, 1, 2, 10),
    ) -> None:
        self._write, self._reads, self._sizes = write, reads, sizes
        self._turn = threading.Lock()
        self._log: list[Write] = []
        self._begun = self._done = 0
        self._seen: list[Read] = []
        self._errors: list[BaseException] = []
        self._is_over = threading.Event()

    def run(self, seconds: float, writers: int = 2, seed: int = 0) -> tuple[int, int]:
        """Returns how many writes and reads there were. Raises what a thread raised."""
        threads = [threading.Thread(target=self._guarded, args=(self._keep_writing, seed + i)) for i in range(writers)]
        threads += [
            threading.Thread(target=self._guarded, args=(self._keep_reading, read, seed + i))
            for i, read in enumerate(self._reads)
        ]
        for thread in threads:
            thread.start()
        self._is_over.wait(seconds)
        while min(len(self._log), len(self._seen)) < _FEWEST and not self._is_over.wait(0.1):
            pass  # the machine is busy, or the first calls are still loading compiled code
        self._is_over.set()
        for thread in threads:
            thread.join()
        if self._errors:
            raise self._errors[0]
        return len(self._log), len(self._seen)

    def _guarded(self, loop: Callable[..., None], *arguments: Any) -> None:
        try:
            loop(*arguments)
        except BaseException as error:
            self._errors.append(error)
            self._is_over.set()

    def _keep_writing(self, seed: int) -> None:
        rng = random.Random(seed)
        while not self._is_over.is_set():
            ids = rng.sample(range(N_IDS), rng.choice(self._sizes))
            is_removal = rng.random() < 0.4
            write = Write({number: None if is_removal else drawn_subscription(rng, number) for number in ids})
            with self._turn:  # the log has the order of the writes
                self._log.append(write)
                self._begun += 1
                self._write(write)
                self._done += 1
            time.sleep(rng.random() * 0.002)

    def _keep_reading(self, read: Callable[[random.Random], dict[int, list[int]]], seed: int) -> None:
        rng = random.Random(seed)
        while not self._is_over.is_set():
            done = self._done
            answers = read(rng)
            self._seen.append(Read(done, self._begun, answers))

    def expect_prefixes(self) -> None:
        """Each read saw the writes that had returned, maybe later ones, and all of them up to a point."""
        waiting = deque(sorted(self._seen, key=lambda read: read.done))
        right: list[set[int]] = [set() for _ in MESSAGES]  # after `prefix` writes
        open_reads: list[Read] = []
        for prefix in range(len(self._log) + 1):
            if prefix:
                self._apply(self._log[prefix - 1], right)
            while waiting and waiting[0].done <= prefix:
                open_reads.append(waiting.popleft())
            still = [read for read in open_reads if any(sorted(right[m]) != ids for m, ids in read.answers.items())]
            late = [read for read in still if read.begun <= prefix]
            assert not late, f"after {prefix} writes: {late[0]} is the answer of no prefix; here {right}"
            open_reads = still
        assert not open_reads and not waiting

    @staticmethod
    def _apply(write: Write, right: list[set[int]]) -> None:
        for number, subscription in write.changed.items():
            for position, message in enumerate(MESSAGES):
                if subscription is not None and concerns(subscription, message):
                    right[position].add(number)
                else:
                    right[position].discard(number)

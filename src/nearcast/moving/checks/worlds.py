"""Seeded random steps for `Moving`, and a run of them on two methods side by side.

Pools are tiny, so that moves end where others began, boxes touch messages, and expiry falls on the instant of a move.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.moving.moving import Moving

Step = Callable[[Moving], pa.Table]


class World(NamedTuple):
    """What steps are drawn from."""

    space: tuple[float, float, float, float] | None
    grid: tuple[float, ...]
    """Coordinates of corners and messages."""
    sizes: tuple[float, ...]
    """Sides of boxes, and radii of circles."""
    words: tuple[str, ...] = ("a", "b", "c", "d", "e")
    n_ids: int = 12
    n_messages: int = 40
    circles: bool = False
    expressions: bool = True
    ranges: bool = True


TINY = World((0.0, 0.0, 1.0, 1.0), (0.0, 0.25, 0.5, 0.75, 1.0), (0.0, 0.25, 0.5, 1.0))
FINE = World((0.0, 0.0, 1.0, 1.0), tuple(k / 64 for k in range(65)), (0.0, 1 / 64, 0.1, 0.3), n_ids=60, n_messages=200)
OUTSIDE = World((0.0, 0.0, 1.0, 1.0), (-7.0, 0.0, 0.5, 1.0, 9.0), (0.0, 1.0, 30.0))
SPHERE = World(None, (-180.0, -179.5, 0.0, 40.0, 89.0, 179.5, 180.0), (0.0, 60.0, 300.0), circles=True)


class Draw:
    """Draws steps of one world. The steps fit each other: only subscribed ids move."""

    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        self._rng = np.random.default_rng(seed)
        self._now = 0
        self._circles: set[int] = set()
        self._boxes: set[int] = set()

    def first(self) -> dict[str, Any]:
        """The subscriptions to begin with."""
        return self._subscriptions(list(range(0, self._world.n_ids, 2)))

    def step(self) -> Step:
        """One more step."""
        kinds = ["publish", "publish", "move", "move", "move", "advance", "subscribe", "unsubscribe", "together"]
        kind = kinds[self._rng.integers(len(kinds))]
        return getattr(self, f"_{kind}")()

    def _pick(self, pool: Any) -> Any:
        return pool[self._rng.integers(len(pool))]

    def _publish(self) -> Step:
        table = self._messages()
        return lambda moving: moving.publish(table)

    def _move(self) -> Step:
        ids, places = self._places()
        return lambda moving: moving.move(ids, places)

    def _advance(self) -> Step:
        self._now += int(self._rng.integers(0, 3))
        now = self._now
        return lambda moving: moving.advance(now)

    def _together(self) -> Step:
        self._now += int(self._rng.integers(0, 3))
        now, table, (ids, places) = self._now, self._messages(), self._places()
        return lambda moving: moving.step(now, table, ids, places)

    def _subscribe(self) -> Step:
        table = self._subscriptions(self._some_ids(4))
        return lambda moving: moving.subscribe(table)

    def _unsubscribe(self) -> Step:
        known = sorted(self._boxes | self._circles)
        ids = [each for each in self._some_ids(3) if each in known]
        self._boxes -= set(ids)
        self._circles -= set(ids)
        return lambda moving: moving.unsubscribe(ids)

    def _some_ids(self, most: int) -> list[int]:
        drawn = self._rng.integers(0, self._world.n_ids, int(self._rng.integers(1, most + 1)))
        return sorted(set(drawn.tolist()))

    def _messages(self) -> pa.Table:
        n, world = int(self._rng.integers(1, 6)), self._world
        ids = sorted(set(self._rng.integers(0, world.n_messages, n).tolist()))
        boxes = [self._box() if world.ranges and self._rng.random() < 0.4 else self._point() * 2 for _ in ids]
        tokens = [sorted({self._pick(world.words) for _ in range(self._rng.integers(0, 4))}) for _ in ids]
        expires = [None if self._rng.random() < 0.1 else self._now + int(self._rng.integers(0, 5)) for _ in ids]
        stamps = pa.array(expires, pa.timestamp("us", "UTC"))
        columns = dict(zip(("xmin", "ymin", "xmax", "ymax"), zip(*boxes, strict=True), strict=True))
        return pa.table({"id": ids, "tokens": pa.array(tokens, pa.list_(pa.string())), "expires": stamps, **columns})

    def _places(self) -> tuple[list[int], list[Any]]:
        """Boxes for subscriptions of any region, or points for circles; an id may come twice."""
        if self._circles and self._rng.random() < 0.5:
            ids = [int(self._pick(sorted(self._circles))) for _ in range(self._rng.integers(1, 5))]
            return ids, [self._point() for _ in ids]
        known = sorted(self._boxes | self._circles)
        ids = [int(self._pick(known)) for _ in range(self._rng.integers(1, 8))] if known else []
        self._circles -= set(ids)
        self._boxes |= set(ids)
        return ids, [self._box() for _ in ids]

    def _point(self) -> tuple[float, float]:
        x, y = self._pick(self._world.grid), self._pick(self._world.grid)
        return (x, y) if self._world.space is not None else (x, max(-90.0, min(90.0, y / 2)))

    def _box(self) -> tuple[float, float, float, float]:
        x, y = self._point()
        w, h = self._pick(self._world.sizes), self._pick(self._world.sizes)
        if self._world.space is None:
            w, h = min(w, 180.0 - x), min(h, 90.0 - y)
        return (x, y, x + w, y + h)

    def _expression(self) -> str | None:
        a, b, c = (self._pick(self._world.words) for _ in range(3))
        forms = [
            a,
            a,
            f"{a} AND {b}",
            f"{a} OR {b}",
            f"{a} NOT {b}",
            f"({a} OR {b}) NOT {c}",
            f"NOT {a}",
            f"{a} NOT {a}",
        ]
        return str(self._pick(forms if self._world.expressions else forms[:3]))

    def _subscriptions(self, ids: list[int]) -> dict[str, Any]:
        circles = [self._world.circles and self._rng.random() < 0.7 for _ in ids]
        regions = [self._region() if circle else None for circle in circles]
        boxes = [(None,) * 4 if region else self._box() for region in regions]
        is_circle = {each for each, region in zip(ids, regions, strict=True) if region and region.startswith("circle")}
        self._circles = (self._circles - set(ids)) | is_circle
        self._boxes = (self._boxes | set(ids)) - is_circle
        columns = dict(zip(("xmin", "ymin", "xmax", "ymax"), zip(*boxes, strict=True), strict=True))
        table: dict[str, Any] = {"id": ids, "expression": [self._expression() for _ in ids], **columns}
        if self._world.circles:
            table["region"] = pa.array(regions, pa.string())
        return table

    def _region(self) -> str:
        (x, y), r = self._point(), self._pick(self._world.sizes)
        forms = [f"circle({x}, {y}, {r}km)"] * 3 + ["world", _OVER_THE_ANTIMERIDIAN]
        return str(self._pick(forms))


_OVER_THE_ANTIMERIDIAN = (
    '{"type": "Polygon", "coordinates": [[[179, -10], [-179.2, -10], [-179.2, 45], [179, 45], [179, -10]]]}'
)


def run_against_brute(
    method: str, options: dict[str, Any], world: World, seed: int, steps: int, save_every: int | None = None
) -> None:
    """The method returns the changes of brute force after every step, and its results are their sum.

    With `save_every`, it is saved and opened again after so many steps, and continues.
    """
    draw = Draw(world, seed)
    table = draw.first()
    live = Moving(table, method, world.space, **options)
    oracle = Moving(table, "brute", world.space)
    sums: dict[tuple[int, int], int] = {}
    for k in range(steps):
        step = draw.step()
        changes, right = step(live), step(oracle)
        where = f"step {k} of seed {seed}"
        if save_every is not None and k % save_every == save_every - 1:
            live = _saved_and_opened(live)
        assert changes.equals(right), f"{where}: {_lines(changes)} instead of {_lines(right)}"
        _add_up(changes, sums, where)
    for subscription in range(world.n_ids):
        if subscription in live:
            found = live.results(subscription).column("message").to_pylist()
            wanted = sorted(message for message, owner in sums if owner == subscription)
            assert found == wanted, f"results of {subscription}: {found} instead of {wanted}, seed {seed}"


def _saved_and_opened(moving: Moving) -> Moving:
    with tempfile.TemporaryDirectory() as folder:
        moving.save(Path(folder) / "saved")
        return Moving.open(Path(folder) / "saved")


def _add_up(changes: pa.Table, sums: dict[tuple[int, int], int], where: str) -> None:
    """Add changes to the present pairs. A pair begins when it is absent and ceases when it is present."""
    for message, subscription, sign in _lines(changes):
        present = sums.pop((message, subscription), 0)
        assert present + sign in (0, 1), f"{where}: change {sign} of ({message}, {subscription}) at {present}"
        if present + sign:
            sums[message, subscription] = 1


def _lines(changes: pa.Table) -> list[tuple[int, int, int]]:
    columns = (changes.column(name).to_pylist() for name in ("message", "subscription", "change"))
    return list(zip(*columns, strict=True))

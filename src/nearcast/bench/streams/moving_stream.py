"""The tables and steps of moving subscriptions: who moves where, which messages come and how long they live."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from nearcast.bench.streams.sources import Source, find_real_file, source_of, stream_subscriptions
from nearcast.bench.streams.stream_workload import StreamWorkload
from nearcast.bench.workloads.corpus import DrawnItems
from nearcast.bench.workloads.movers import CityGrid, Movers, TrackFile, read_track_file
from nearcast.bench.workloads.random_numbers import table_generator
from nearcast.bench.workloads.tables import messages_table, subscriptions_table

STEP_US = 30_000_000
"""A step is 30 seconds, as in the AP+-tree paper."""
_MEDIUM = 0.002  # of the side of the space: what a mover of class 1 drives in a step on a main road
_UTC = pa.timestamp("us", "UTC")


class Step(NamedTuple):
    """One step: messages expire at `now`, others come, then some subscriptions move."""

    now: int  # microseconds
    messages: pa.Table
    ids: np.ndarray  # int64[m]  subscriptions that move
    boxes: np.ndarray  # float64[n,4]  of all subscriptions, after the moves


class MovingStream(NamedTuple):
    subscriptions: pa.Table
    boxes: np.ndarray  # float64[n,4]  at the beginning
    before: pa.Table  # messages that are live at the beginning
    start: int  # microseconds
    steps: list[Step]
    per_step: int  # messages that come, and that expire, in a step
    space: list[float] | None
    source: str


class Motion(Protocol):
    @property
    def places(self) -> np.ndarray: ...

    def step(self, movers: np.ndarray) -> np.ndarray: ...


class RoadMotion:
    """Movers on a road grid, stretched over the box in which messages are."""

    def __init__(self, workload: StreamWorkload, bounds: np.ndarray) -> None:
        city = CityGrid(workload.streets)
        self._movers = Movers(workload.subscriptions, city, workload.seed, _MEDIUM * workload.velocity)
        self._low, self._size = bounds[:2], bounds[2:] - bounds[:2]

    @property
    def places(self) -> np.ndarray:
        return np.asarray(self._low + self._movers.places * self._size)

    def step(self, movers: np.ndarray) -> np.ndarray:
        return np.asarray(self._low + self._movers.step(movers) * self._size)


class TrackMotion:
    """Movers that replay real tracks from random positions on, `velocity` positions a step, to and fro."""

    def __init__(self, workload: StreamWorkload, tracks: TrackFile) -> None:
        rng = table_generator(workload.seed, "tracks")
        order = np.argsort(tracks.movers, kind="stable")
        self._points = tracks.places[order]
        counts = np.bincount(tracks.movers, minlength=len(tracks.names))
        starts = np.concatenate([[0], np.cumsum(counts)])[:-1]
        chosen = rng.choice(np.flatnonzero(counts > 1), workload.subscriptions)
        self._starts, self._counts = starts[chosen], counts[chosen]
        self._at = rng.uniform(0, 2 * (self._counts - 1))
        self._velocity = workload.velocity

    @property
    def places(self) -> np.ndarray:
        return self._places(np.arange(len(self._at)))

    def step(self, movers: np.ndarray) -> np.ndarray:
        self._at[movers] = (self._at[movers] + self._velocity) % (2 * (self._counts[movers] - 1))
        return self._places(movers)

    def _places(self, movers: np.ndarray) -> np.ndarray:
        last = self._counts[movers] - 1
        at = np.where(self._at[movers] > last, 2 * last - self._at[movers], self._at[movers])
        low = np.minimum(at.astype(np.int64), last - 1)
        share = (at - low)[:, None]
        first = self._starts[movers] + low
        return np.asarray(self._points[first] * (1 - share) + self._points[first + 1] * share)


def moving_stream(workload: StreamWorkload, folder: str | os.PathLike[str] | None, n_steps: int) -> MovingStream:
    """The stream of a workload. Without the files of real data: the sample's texts, movers on a road grid."""
    path = find_real_file(workload.tracks_file, folder)
    tracks = None if path is None else read_track_file(path)
    within = None if tracks is None else np.concatenate([tracks.places.min(axis=0), tracks.places.max(axis=0)])
    source = source_of(workload, folder, within)
    bounds = source.corpus.bounds
    motion: Motion = RoadMotion(workload, bounds) if tracks is None else TrackMotion(workload, tracks)
    drawn = stream_subscriptions(source, workload)
    halves = (drawn.boxes[:, 2:] - drawn.boxes[:, :2]) / 2
    boxes = _around(motion.places, halves, bounds)
    table = subscriptions_table(drawn._replace(boxes=boxes), source.corpus.words())
    before, rest = _messages(workload, source, n_steps)
    steps = _steps(workload, motion, halves, bounds, rest)
    space = None if workload.space is None else list(workload.space)
    name = source.name if path is None else f"{source.name}, {Path(path).name}"
    return MovingStream(table, boxes, before, 0, steps, workload.per_step, space, name)


def _around(places: np.ndarray, halves: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Boxes of these sizes around places, within the bounds."""
    places = np.clip(places, bounds[:2], bounds[2:])
    boxes = np.concatenate([places - halves, places + halves], axis=1)
    return np.asarray(np.clip(boxes, np.tile(bounds[:2], 2), np.tile(bounds[2:], 2)))


def _messages(workload: StreamWorkload, source: Source, n_steps: int) -> tuple[pa.Table, list[pa.Table]]:
    """The messages that are live at the beginning, of all ages, and those of each step."""
    n, each = workload.window, workload.per_step
    total = n + n_steps * each
    drawn: DrawnItems = source.messages(np.arange(total))
    table = messages_table(drawn, source.corpus.words(), "short-point")
    later = np.repeat(np.arange(1, n_steps + 1), each) + workload.steps_live
    dies = np.concatenate([1 + np.arange(n) % workload.steps_live, later]) * STEP_US
    table = table.append_column("expires", pa.array(dies, pa.int64()).cast(_UTC))
    return table.slice(0, n), [table.slice(n + k * each, each) for k in range(n_steps)]


def _steps(
    workload: StreamWorkload, motion: Motion, halves: np.ndarray, bounds: np.ndarray, messages: list[pa.Table]
) -> list[Step]:
    rng = table_generator(workload.seed, "moves")
    n = workload.subscriptions
    boxes = _around(motion.places, halves, bounds)
    steps = []
    for k, arriving in enumerate(messages, 1):
        movers = np.sort(rng.permutation(n)[: max(1, round(workload.mobility * n))])
        boxes = boxes.copy()
        boxes[movers] = _around(motion.step(movers), halves[movers], bounds)
        steps.append(Step(k * STEP_US, arriving, movers.astype(np.int64), boxes))
    return steps

"""Movers on a road network, in the manner of Brinkhoff: a city grid with fast and slow streets, and speed classes.

A mover has a speed class, a place on a street, and a destination. It drives along streets towards the destination,
never faster than the street allows, and gets another destination when it arrives. Every `main_every`-th street is a
main road. Real tracks are replayed with `read_track_file`.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.csv

SPEED_CLASSES = (0.25, 0.5, 1.0, 2.0)
"""Relative to medium: pedestrians, bicycles, cars in traffic, fast cars."""


@dataclass(frozen=True)
class CityGrid:
    """Streets x streets crossings in the unit square."""

    streets: int = 64
    main_every: int = 8
    side_speed: float = 0.5  # of a main road's speed limit


class Movers:
    """Movers of one city, all moved by the same step."""

    def __init__(self, n: int, city: CityGrid | None = None, seed: int = 0, medium: float = 0.002) -> None:
        """`medium` is the distance that a mover of class 1 drives in a step on a main road."""
        self._city = city or CityGrid()
        self._rng = np.random.default_rng(seed)
        streets = self._city.streets
        self._medium = medium * (streets - 1)  # in blocks
        self._speeds = self._rng.choice(SPEED_CLASSES, n)
        self._at = self._rng.integers(0, streets, (n, 2)).astype(np.float64)  # in blocks
        self._to = self._rng.integers(0, streets, (n, 2)).astype(np.float64)

    @property
    def places(self) -> np.ndarray:
        """float64[n,2]: the present places in the unit square."""
        return self._at / (self._city.streets - 1)

    def step(self, movers: np.ndarray) -> np.ndarray:
        """Move some movers (numbers); return their new places, float64[n,2]."""
        left = self._speeds[movers] * self._medium
        at, to = self._at[movers], self._to[movers]
        for _ in range(16):  # a mover passes a corner at most so often in a step
            axis = self._axis(at, to)
            rows = np.arange(len(movers))
            gap = to[rows, axis] - at[rows, axis]
            limit = self._limits(at, axis)
            drive = np.minimum(np.abs(gap), left * limit)
            at[rows, axis] += np.sign(gap) * drive
            left -= drive / limit
            arrived = (at == to).all(axis=1)
            to[arrived] = self._rng.integers(0, self._city.streets, (int(arrived.sum()), 2))
            if (left <= 1e-12).all():
                break
        self._at[movers], self._to[movers] = at, to
        return self.places[movers]

    def _axis(self, at: np.ndarray, to: np.ndarray) -> np.ndarray:
        """0 or 1: the direction of the street that each mover is on; at a crossing, towards the destination."""
        between = at != np.floor(at)
        open_x, open_y = at[:, 0] != to[:, 0], at[:, 1] != to[:, 1]
        return np.where(between[:, 0], 0, np.where(between[:, 1], 1, np.where(open_x, 0, np.where(open_y, 1, 0))))

    def _limits(self, at: np.ndarray, axis: np.ndarray) -> np.ndarray:
        """The speed limit of the street that each mover is on."""
        street = at[np.arange(len(at)), 1 - axis]
        is_main = np.floor(street) % self._city.main_every == 0
        return np.where(is_main, 1.0, self._city.side_speed)


class TrackFile(NamedTuple):
    """Real tracks, in order of time."""

    names: list[str]  # of the movers
    movers: np.ndarray  # int64[n]  position in `names`
    times: np.ndarray  # int64[n]  microseconds
    places: np.ndarray  # float64[n,2]  lon, lat


def read_track_file(path: Path) -> TrackFile:
    """The tracks of a CSV file with the columns id, lat, lon and ts."""
    with gzip.open(path, "rb") if path.name.endswith(".gz") else open(path, "rb") as file:
        convert = pyarrow.csv.ConvertOptions(column_types={"id": "string", "ts": "string"})
        table = pyarrow.csv.read_csv(file, convert_options=convert)
    names, movers = np.unique(table["id"].to_numpy().astype(str), return_inverse=True)
    stamps = [datetime.fromisoformat(text).replace(tzinfo=None) for text in table["ts"].to_pylist()]
    times = np.array(stamps, "datetime64[us]").astype(np.int64)
    order = np.argsort(times, kind="stable")
    places = np.stack([table["lon"].to_numpy(), table["lat"].to_numpy()], axis=1)
    return TrackFile(names.tolist(), movers[order].astype(np.int64), times[order], places[order])

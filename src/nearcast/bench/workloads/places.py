"""Synthetic places: clusters of uneven mass over a uniform background, and boxes around places."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.bench.workloads.random_numbers import (
    DrawNumbers,
    DrawTable,
    begin,
    draw,
    log_uniform,
    table_generator,
    unit,
    zipf_table,
)
from nearcast.geo.distance import EARTH_RADIUS_KM

BACKGROUND = -1
"""The cluster number of a place outside all clusters."""

KM_PER_DEGREE = EARTH_RADIUS_KM * math.pi / 180.0
"""Kilometres of a degree of latitude."""

_SPREADS = (0.003, 0.03)  # a cluster's standard deviation, as a share of the side: a town to a conurbation
_REDRAWS = 8


class PlaceModel(NamedTuple):
    """The distribution that places are drawn from."""

    bounds: np.ndarray  # float64[4]
    centres: np.ndarray  # float64[clusters, 2]
    spreads: np.ndarray  # float64[clusters, 2]
    masses: DrawTable  # of the clusters: the k-th largest has 1 / k of the mass of the largest
    background: float  # share of places that are uniform


def place_model(bounds: tuple[float, float, float, float], clusters: int, background: float, seed: int) -> PlaceModel:
    rng = table_generator(seed, "clusters")
    low, high = np.array(bounds[:2]), np.array(bounds[2:])
    centres = low + rng.random((clusters, 2)) * (high - low)
    spreads = np.exp(rng.uniform(math.log(_SPREADS[0]), math.log(_SPREADS[1]), (clusters, 1))) * (high - low)
    return PlaceModel(np.array(bounds, np.float64), centres, spreads, zipf_table(max(clusters, 1), 1.0), background)


@kernel
def draw_place(model, state):
    """Draw a place within the bounds: (x, y, cluster)."""
    bounds = model.bounds
    if len(model.centres) == 0 or unit(state) < model.background:
        x = bounds[0] + unit(state) * (bounds[2] - bounds[0])
        y = bounds[1] + unit(state) * (bounds[3] - bounds[1])
        return x, y, BACKGROUND
    cluster = draw(model.masses, state)
    x = y = 0.0
    for _ in range(_REDRAWS):
        radius = math.sqrt(-2.0 * math.log(1.0 - unit(state)))
        angle = 2.0 * math.pi * unit(state)
        x = model.centres[cluster, 0] + radius * math.cos(angle) * model.spreads[cluster, 0]
        y = model.centres[cluster, 1] + radius * math.sin(angle) * model.spreads[cluster, 1]
        if bounds[0] <= x <= bounds[2] and bounds[1] <= y <= bounds[3]:
            break
    return min(max(x, bounds[0]), bounds[2]), min(max(y, bounds[1]), bounds[3]), cluster


@kernel
def draw_box(bounds, x, y, share, state, out_box):
    """Draw a box around (x, y) within the bounds: of that share of their area, at most twice as long as wide."""
    width, height = bounds[2] - bounds[0], bounds[3] - bounds[1]
    stretch = 2.0 ** (2.0 * unit(state) - 1.0)
    w = min(math.sqrt(share * stretch), 1.0)
    h = min(share / w, 1.0) if w > 0.0 else 0.0
    w = share / h if h == 1.0 else w
    _draw_side(bounds[0], width, x, w * width, unit(state), out_box[0::2])
    _draw_side(bounds[1], height, y, h * height, unit(state), out_box[1::2])


@kernel
def draw_box_km(x, y, radius, state, out_box):
    """Draw a box around (x, y) in lon/lat: as large as a circle of that radius, at most twice as long as wide."""
    stretch = 2.0 ** (2.0 * unit(state) - 1.0)
    side = math.sqrt(math.pi) * radius / KM_PER_DEGREE
    height = min(side / math.sqrt(stretch), 180.0)
    width = min(side * math.sqrt(stretch) / max(math.cos(math.radians(y)), 1e-3), 360.0)
    _draw_side(-180.0, 360.0, x, width, unit(state), out_box[0::2])
    _draw_side(-90.0, 180.0, y, height, unit(state), out_box[1::2])


@kernel
def _draw_side(start, length, at, size, u, out_pair):
    """Write an interval of `size` with `at` in its middle half, moved inward where it would leave the bounds."""
    low = min(max(at - size * (0.25 + 0.5 * u), start), start + length - size)
    out_pair[0] = max(min(low, at), start)
    out_pair[1] = min(max(low + size, at), start + length)


def ranges_around(
    bounds: np.ndarray, points: np.ndarray, shares: tuple[float, float], draws: DrawNumbers
) -> np.ndarray:
    """A box around each point, of a log-uniform share of the space, float64[n,4]."""
    out = np.empty_like(points)
    _draw_ranges(bounds, points, shares, draws, out)
    return out


@kernel
def _draw_ranges(bounds, points, shares, draws, out):
    state = np.zeros(1, np.uint64)
    for i in range(len(points)):
        begin(state, draws.key, draws.indices[i])
        draw_box(bounds, points[i, 0], points[i, 1], log_uniform(state, shares[0], shares[1]), state, out[i])

"""Every moving method against `brute`, step by step, on replayed real tracks. Skipped where the files are absent."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import nearcast as nc
from nearcast.arrays.jit import JIT_DISABLED
from nearcast.bench.workloads.movers import TrackFile, read_track_file
from nearcast.moving.method import moving_methods

WORDS = ["rain", "snow", "fog", "ice", "storm", "hail"]
EXPRESSIONS = ["rain", "snow AND ice", "fog OR (storm hail)", "storm NOT rain", "", "hail"]
N_STEPS, LIFETIME = 25, 4


class Size(NamedTuple):
    movers: int
    messages: int  # in a step


FEW = Size(12, 5) if JIT_DISABLED else Size(60, 30)
MANY = Size(20, 8) if JIT_DISABLED else Size(800, 400)


def tracks_of(folder: Path, name: str) -> TrackFile:
    path = folder / f"{name}.csv.gz"
    if not path.is_file():
        pytest.skip(f"{path.name} is not there")
    return read_track_file(path)


def paths_of(tracks: TrackFile, n: int) -> np.ndarray:
    """float64[steps + 1,n,2]: the places of n movers, each from a random position of a real track on."""
    rng = np.random.default_rng(4)
    counts = np.bincount(tracks.movers)
    long = np.flatnonzero(counts > N_STEPS)
    paths = []
    for mover in rng.choice(long, n):
        places = tracks.places[tracks.movers == mover]
        first = rng.integers(0, len(places) - N_STEPS)
        paths.append(places[first : first + N_STEPS + 1])
    return np.stack(paths, axis=1)


def boxes_around(places: np.ndarray, halves: np.ndarray) -> np.ndarray:
    return np.concatenate([places - halves, places + halves], axis=1)


def drawn_messages(rng: np.random.Generator, places: np.ndarray, first: int, n: int, step: int) -> pa.Table:
    """Messages at and near the movers; some are ranges. They live for a few steps."""
    at = places[rng.integers(0, len(places), n)] + rng.choice([0.0, 0.001, 0.02], (n, 1)) * rng.normal(size=(n, 2))
    size = rng.choice([0.0, 0.0, 0.01], (n, 1))
    texts = [" ".join(rng.choice(WORDS, rng.integers(1, 4))) for _ in range(n)]
    corners = np.concatenate([at, at + size], axis=1)
    names = ("xmin", "ymin", "xmax", "ymax")
    expires = pa.array((step + rng.integers(1, LIFETIME + 1, n)) * 1_000_000, pa.timestamp("us", "UTC"))
    columns = {name: corners[:, k] for k, name in enumerate(names)}
    return pa.table({"id": np.arange(first, first + n), "text": texts, **columns, "expires": expires})


def replay_equals_brute(tracks: TrackFile, methods: list[str], size: Size) -> int:
    """Replay tracks through the methods and brute; compare every step; return the number of changes."""
    rng = np.random.default_rng(5)
    paths = paths_of(tracks, size.movers)
    halves = rng.choice([0.0, 0.0005, 0.01, 0.1], (size.movers, 1))
    first = boxes_around(paths[0], halves)
    names = ("xmin", "ymin", "xmax", "ymax")
    table = {"id": np.arange(size.movers), "expression": [EXPRESSIONS[k % 6] for k in range(size.movers)]}
    table |= {name: first[:, k] for k, name in enumerate(names)}
    all_of = {name: nc.Moving(table, name) for name in ["brute", *methods]}
    n_changes = 0
    for step in range(1, N_STEPS + 1):
        ids = np.flatnonzero(rng.random(size.movers) < 0.6)
        boxes = boxes_around(paths[step], halves)[ids]
        messages = drawn_messages(rng, paths[step], step * size.messages, size.messages, step)
        found = {name: moving.step(step * 1_000_000, messages, ids, boxes) for name, moving in all_of.items()}
        wanted = found["brute"]
        n_changes += wanted.num_rows
        for name in methods:
            assert found[name].equals(wanted), (name, step)
            assert all_of[name].results(step % size.movers).equals(all_of["brute"].results(step % size.movers))
    return n_changes


FILES = ["flights_switzerland_20180801", "gps_go_track_aracaju", "gps_cats_uk"]


@pytest.mark.data
@pytest.mark.parametrize("name", FILES)
def test_every_moving_method_follows_real_tracks(large_data: Path, name: str) -> None:
    methods = [each for each in moving_methods() if each != "brute"]
    assert len(methods) >= 6
    assert replay_equals_brute(tracks_of(large_data, name), methods, FEW) > FEW.movers // 6 * N_STEPS


@pytest.mark.data
@pytest.mark.parametrize("name", FILES)
def test_the_default_and_the_ap_plus_tree_follow_many_real_tracks(large_data: Path, name: str) -> None:
    assert replay_equals_brute(tracks_of(large_data, name), ["auto", "ap+-tree"], MANY) > MANY.movers // 8 * N_STEPS

"""Tracks are read, checked and replayed; movers stay on their streets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import nearcast as nc
from nearcast.bench.workloads.movers import CityGrid, Movers, read_track_file
from nearcast.errors import InvalidInput
from nearcast.geo.space import LONLAT
from nearcast.moving.tracks import n_replay_steps, read_tracks, replay

DATA = Path(__file__).parents[3].parent / "shared" / "data"
SECOND = 1_000_000


def stamps(*seconds: int | None) -> pa.Array:
    return pa.array([None if s is None else s * SECOND for s in seconds], pa.timestamp("us", "UTC"))


def test_tracks_are_read_in_order_of_time() -> None:
    tracks = read_tracks({"id": [1, 1, 2], "time": stamps(5, 3, 4), "lon": [1.0, 2.0, 3.0], "lat": [0, 0, 0]}, LONLAT)
    assert tracks.ids.python() == [1, 2, 1] and tracks.places.tolist() == [[2, 0], [3, 0], [1, 0]]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"time": stamps(1, None)}, "row 2, column 'time': no time"),
        ({"lon": [1.0, float("nan")]}, "row 2, column 'lon'"),
        ({"lon": [1.0, 181.0]}, "longitude"),
        ({"id": [1, None]}, "row 2, column 'id'"),
    ],
)
def test_bad_tracks_are_refused(change: dict[str, object], reason: str) -> None:
    table = {"id": [1, 2], "time": stamps(1, 2), "lon": [0.0, 0.0], "lat": [0.0, 0.0]} | change
    with pytest.raises(InvalidInput, match=reason):
        read_tracks(table, LONLAT)


def test_a_replay_moves_publishes_and_expires_in_steps() -> None:
    moving = nc.Moving({"id": [1], "expression": ["rain"], "region": ["circle(0, 0, 50km)"]})
    messages = pa.table(
        {"id": [7, 8], "text": ["rain", "rain"], "x": [1.0, 1.0], "y": [0.0, 0.0]}
        | {"time": stamps(5, 12), "expires": stamps(45, None)}
    )
    tracks = read_tracks({"id": [1, 1, 1], "time": stamps(11, 12, 33), "x": [3.0, 1.0, 9.0], "y": [0.0] * 3}, LONLAT)
    steps = list(replay(moving, messages, tracks, 10 * SECOND))
    found = [
        (step.now // SECOND, [(each["message"], each["change"]) for each in step.changes.to_pylist()]) for step in steps
    ]
    assert found == [(15, [(7, 1), (8, 1)]), (35, [(7, -1), (8, -1)]), (55, [])]
    assert sum(step.moves for step in steps) == 3 and sum(step.messages for step in steps) == 2
    assert n_replay_steps(messages, tracks, 10 * SECOND) == len(steps) == 3, "the last step only expires"
    assert moving.n_messages == 1


def test_without_times_there_is_nothing_to_replay() -> None:
    moving = nc.Moving({"id": [1], "expression": ["rain"], "region": ["world"]})
    empty = pa.array([], pa.float64())
    nothing = read_tracks({"id": pa.array([], pa.int64()), "time": stamps(), "x": empty, "y": empty}, LONLAT)
    with pytest.raises(InvalidInput, match="nothing to replay"):
        list(replay(moving, pa.table({"id": [1], "text": ["rain"], "x": [0.0], "y": [0.0]}), nothing, SECOND))


def test_movers_stay_on_streets_and_keep_to_their_speed() -> None:
    city = CityGrid(streets=9, main_every=4)
    movers, everyone = Movers(300, city, seed=3, medium=0.01), np.arange(300)
    before = movers.places
    for _ in range(60):
        after = movers.step(everyone)
        blocks = after * 8
        assert (np.isclose(blocks, np.round(blocks), atol=1e-9).any(axis=1)).all(), "one coordinate is on a street"
        assert ((after >= 0) & (after <= 1)).all()
        assert np.abs(after - before).sum(axis=1).max() <= 0.02 + 1e-9, "the fastest class drives twice the medium"
        before = after
    assert np.abs(before - Movers(300, city, seed=3).places).max() > 0.2, "they travel"


def test_movers_are_drawn_from_the_seed() -> None:
    some = np.arange(0, 50, 2)
    first, second = (Movers(50, seed=1).step(some) for _ in range(2))
    assert (first == second).all()


@pytest.mark.data
@pytest.mark.parametrize("name", ["gps_cats_uk", "gps_go_track_aracaju", "flights_switzerland_20180801"])
def test_real_tracks_are_read(name: str) -> None:
    path = DATA / f"{name}.csv.gz"
    if not path.is_file():
        pytest.skip("the data files are not here")
    tracks = read_track_file(path)
    assert len(tracks.names) > 10 and len(tracks.movers) > 1000
    assert (np.diff(tracks.times) >= 0).all() and np.isfinite(tracks.places).all()

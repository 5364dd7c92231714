"""Safe regions: clients that report only when they must miss no change, and save traffic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import nearcast as nc
from nearcast.bench.workloads.movers import CityGrid, Movers
from nearcast.errors import InvalidInput

SPACE = (0.0, 0.0, 1.0, 1.0)


class Simulation:
    """True boxes of clients, a server that knows reported ones, and an oracle that knows the true ones."""

    def __init__(self, n: int, words: int, half: float, seed: int, reach: float) -> None:
        self.rng = np.random.default_rng(seed)
        self.movers, self.half = Movers(n, CityGrid(streets=17), seed, medium=0.004), half
        self.true = self.boxes(self.movers.places)
        tokens = [[f"w{self.rng.integers(words)}"] for _ in range(n)]
        columns = dict(zip(("xmin", "ymin", "xmax", "ymax"), self.true.T, strict=True))
        table = {"id": np.arange(n), "tokens": tokens, **columns}
        self.first = pa.table(table)
        self.server = nc.Moving(self.first, space=SPACE, safe=True, where=lambda ids: self.true[ids], reach=reach)
        self.oracle = nc.Moving(self.first, space=SPACE)
        self.words, self.n, self.moves = words, n, 0

    def boxes(self, places: np.ndarray) -> np.ndarray:
        return np.concatenate([places - self.half, places + self.half], axis=1)

    def messages(self, k: int, count: int) -> dict[str, Any]:
        tokens = [[f"w{self.rng.integers(self.words)}", "x"] for _ in range(count)]
        stamps = pa.array([k + 10] * count, pa.timestamp("us", "UTC"))
        ids = 1000 * k + np.arange(count)
        if k % 3 == 0 and k:
            ids[0] = 1000 * (k - 1)  # replaces a message of the step before
        return {
            "id": ids,
            "tokens": tokens,
            "x": self.rng.random(count),
            "y": self.rng.random(count),
            "expires": stamps,
        }

    def step(self, k: int, count: int) -> None:
        self.compare(k, *self.draw(k, count))

    def draw(self, k: int, count: int) -> tuple[np.ndarray, dict[str, Any]]:
        """Clients that drive to new places, and new messages."""
        driving = np.flatnonzero(self.rng.random(self.n) < 0.5)
        self.true[driving] = self.boxes(self.movers.step(driving))
        self.moves += len(driving)
        return driving, self.messages(k, count)

    def leaving(self, driving: np.ndarray) -> np.ndarray:
        """The clients that are outside their safe regions."""
        return driving[self.server.must_report(driving, self.true[driving])]

    def compare(self, k: int, driving: np.ndarray, table: dict[str, Any]) -> None:
        """The server learns what it must, the oracle all; their changes are equal."""
        leaving = self.leaving(driving)
        mine = pa.concat_tables([self.server.move(leaving, self.true[leaving], now=k), self.server.publish(table)])
        right = pa.concat_tables([self.oracle.move(driving, self.true[driving], now=k), self.oracle.publish(table)])
        assert mine.equals(right), f"step {k}"
        self.changes = mine


@pytest.mark.parametrize("seed", range(3))
def test_no_change_is_missed(seed: int) -> None:
    simulation = Simulation(60, 3, 0.1, seed, 0.05)
    for k in range(40):
        simulation.step(k, 4)
    traffic = simulation.server.traffic
    assert 0 < traffic["reports"] < simulation.moves and traffic["recalls"] > 0


def test_the_road_workload_saves_half_of_the_traffic() -> None:
    simulation = Simulation(400, 40, 0.02, 5, 0.05)
    for k in range(50):
        simulation.step(k, 8)
    traffic = simulation.server.traffic
    assert sum(traffic.values()) <= 0.5 * (simulation.moves + traffic["pushes"]), (traffic, simulation.moves)


def test_saved_in_the_middle_it_continues_with_its_safe_regions(tmp_path: Path) -> None:
    simulation = Simulation(60, 3, 0.1, 7, 0.05)
    simulation.server.unsubscribe([5])
    simulation.server.subscribe(simulation.first.slice(5, 1))
    for k in range(15):
        simulation.step(k, 4)
    simulation.server.save(tmp_path)
    original, half_way = simulation.server, simulation.server.traffic
    opened = nc.Moving.open(tmp_path, where=lambda ids: simulation.true[ids])
    ids = np.arange(60)
    assert opened.traffic == half_way and half_way["recalls"] > 0
    assert np.array_equal(opened.must_report(ids, simulation.true), original.must_report(ids, simulation.true))
    for k in range(15, 40):
        simulation.server = original
        driving, table = simulation.draw(k, 4)
        leaving = simulation.leaving(driving)
        simulation.compare(k, driving, table)
        simulation.server = opened
        assert np.array_equal(simulation.leaving(driving), leaving), f"step {k}"
        mine = pa.concat_tables([opened.move(leaving, simulation.true[leaving], now=k), opened.publish(table)])
        assert mine.equals(simulation.changes) and opened.traffic == original.traffic, f"step {k}"
    assert opened.traffic["reports"] > half_way["reports"]


def test_where_belongs_to_a_saved_state_with_safe_regions(tmp_path: Path) -> None:
    nc.Moving(None).save(tmp_path)
    with pytest.raises(InvalidInput, match="belong to safe=True"):
        nc.Moving.open(tmp_path, where=lambda ids: np.zeros((len(ids), 4)))


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ([[0.41, 0.4, np.nan, 0.5]], "NaN"),
        ([[0.6, 0.4, 0.5, 0.5]], "above"),
        ([[0.6, 0.4]], "it returns a box for each"),
        (ValueError("no answer"), "no answer"),
    ],
    ids=str,
)
def test_a_bad_answer_of_where_changes_nothing(answer: Any, reason: str) -> None:
    def where(ids: np.ndarray) -> Any:
        if isinstance(answers[-1], Exception):
            raise answers[-1]
        return answers[-1]

    answers = [answer]
    table = {"id": [1], "tokens": [["a"]], "xmin": [0.4], "ymin": [0.4], "xmax": [0.5], "ymax": [0.5]}
    moving = nc.Moving(table, space=SPACE, safe=True, where=where)
    moving.advance(1)
    message = {"id": [7], "tokens": [["a"]], "x": [0.505], "y": [0.45]}
    with pytest.raises(type(answer) if isinstance(answer, Exception) else InvalidInput, match=reason):
        moving.publish(message, now=5)
    assert moving.traffic == {"reports": 0, "recalls": 0, "pushes": 0} and moving.n_messages == 0
    assert not moving.must_report([1], [[0.405, 0.4, 0.505, 0.5]]).any()
    answers.append([[0.406, 0.4, 0.506, 0.5]])
    assert moving.publish(message, now=2).num_rows == 1, "the clock has not advanced"
    assert moving.traffic == {"reports": 0, "recalls": 1, "pushes": 1}


def test_a_message_in_doubt_needs_the_place() -> None:
    table = {"id": [1], "tokens": [["a"]], "xmin": [0.4], "ymin": [0.4], "xmax": [0.5], "ymax": [0.5]}
    moving = nc.Moving(table, space=SPACE, safe=True)
    assert not moving.must_report([1], [[0.405, 0.4, 0.505, 0.5]]).any()
    assert moving.must_report([1], [[0.42, 0.4, 0.52, 0.5]]).all()
    with pytest.raises(InvalidInput, match="give where="):
        moving.publish({"id": [7], "tokens": [["a"]], "x": [0.505], "y": [0.45]})
    sure = {"id": [8], "tokens": [["a"]], "x": [0.45], "y": [0.45]}
    assert moving.publish(sure).num_rows == 1, "inside at every place within the radius: no recall"


def test_options_of_safe_regions_need_safe() -> None:
    with pytest.raises(InvalidInput, match="belong to safe=True"):
        nc.Moving(None, reach=3.0)
    with pytest.raises(InvalidInput, match="every client reports"):
        nc.Moving(None).must_report([1], [[0, 0, 1, 1]])
    with pytest.raises(InvalidInput, match="reach is a length above 0"):
        nc.Moving(None, safe=True, reach=-1.0)

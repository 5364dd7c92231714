"""`Moving` beyond the shipped checks: times, memory of words, methods and options, growth."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pytest

import nearcast as nc
from nearcast.errors import InvalidInput, UnknownMethod
from nearcast.moving.method import moving_methods

WORLD = {"id": [1], "expression": ["rain"], "region": ["world"]}


@pytest.mark.parametrize(
    "now",
    [
        datetime(2026, 1, 1, 12),
        datetime(2026, 1, 1, 12, tzinfo=UTC),
        datetime(2026, 1, 1, 14, tzinfo=timezone(timedelta(hours=2))),
        np.datetime64("2026-01-01T12:00:00"),
        "2026-01-01T12:00:00Z",
        "2026-01-01 14:00:00+02:00",
        1_767_268_800_000_000,
    ],
    ids=str,
)
def test_a_moment_may_be_given_in_several_ways(now: object) -> None:
    moving = nc.Moving(WORLD)
    moving.advance(now)  # type: ignore[arg-type]
    assert moving.now == datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize("now", [None, "noon", 1.5, True, np.datetime64("NaT")], ids=str)
def test_what_is_no_moment_is_refused(now: object) -> None:
    with pytest.raises(InvalidInput):
        nc.Moving(WORLD).advance(now)  # type: ignore[arg-type]


def test_changes_carry_the_clock() -> None:
    moving = nc.Moving(WORLD)
    message = {"id": [7], "text": ["rain"], "x": [0.0], "y": [0.0]}
    assert moving.publish(message)["time"].to_pylist() == [None]
    changes = moving.publish(message | {"id": [8]}, now="2026-01-01T12:00:00Z")
    assert changes["time"].to_pylist() == [datetime(2026, 1, 1, 12, tzinfo=UTC)]
    assert moving.rejects is not None and moving.rejects.num_rows == 0


def test_words_of_expired_messages_are_forgotten() -> None:
    moving = nc.Moving(WORLD)
    sizes = []
    for k in range(60):
        words = [[f"word{k}x{i}", "rain"] for i in range(400)]
        stamps = pa.array([k + 2] * 400, pa.timestamp("us", "UTC"))
        table = {"id": list(range(400 * k, 400 * k + 400)), "tokens": words, "x": [0.0] * 400, "y": [0.0] * 400}
        moving.publish(table | {"expires": stamps}, now=k)
        sizes.append(len(moving.vocabulary))
    assert max(sizes) < 6000, "24,000 words came, 800 live at a time"
    assert moving.results(1).num_rows == moving.n_messages == 800
    assert moving.publish({"id": [-1], "text": ["rain"], "x": [0.0], "y": [0.0]}).num_rows == 1


def test_bad_rows_may_be_skipped() -> None:
    moving = nc.Moving(WORLD)
    table = {"id": [7, 8], "text": ["rain", "rain"], "x": [0.0, 999.0], "y": [0.0, 0.0]}
    assert moving.publish(table, on_bad="skip")["message"].to_pylist() == [7]
    assert moving.rejects is not None and moving.rejects["row"].to_pylist() == [2]


def test_methods_and_their_options() -> None:
    assert {"ap+-tree", "brute", "iq+-tree", "kk-index", "rq+-tree", "ss-index", "term-cells"} == set(moving_methods())
    assert nc.Moving(WORLD).method == "term-cells"
    with pytest.raises(UnknownMethod, match=r"no moving method 'pyramid'; there are auto, ap\+-tree"):
        nc.Moving(WORLD, method="pyramid")
    with pytest.raises(InvalidInput, match="'ap[+]-tree' has no option 'speed'; it takes f, theta_p, copies"):
        nc.Moving(WORLD, method="ap+-tree", speed=3)


@pytest.mark.parametrize("method", sorted(moving_methods()))
def test_growing_and_shrinking_builds_anew_and_changes_nothing(method: str) -> None:
    """From none to many and back, with live messages all the time."""
    rng = np.random.default_rng(1)
    moving = nc.Moving(None, method, (0.0, 0.0, 1.0, 1.0))
    xs, ys = rng.random(300), rng.random(300)
    moving.publish({"id": np.arange(300), "tokens": [["a"]] * 300, "x": xs, "y": ys})
    lows = rng.random((400, 2)) * 0.8
    for first in range(0, 400, 100):
        part = slice(first, first + 100)
        columns = {
            "xmin": lows[part, 0],
            "ymin": lows[part, 1],
            "xmax": lows[part, 0] + 0.2,
            "ymax": lows[part, 1] + 0.2,
        }
        moving.subscribe({"id": np.arange(first, first + 100), "tokens": [["a"]] * 100, **columns})
    moving.unsubscribe(np.arange(10, 400))
    for k in range(10):
        inside = (xs >= lows[k, 0]) & (xs <= lows[k, 0] + 0.2) & (ys >= lows[k, 1]) & (ys <= lows[k, 1] + 0.2)
        assert moving.results(k)["message"].to_pylist() == np.flatnonzero(inside).tolist()


def test_the_limit_on_copies_of_a_message_is_reported() -> None:
    rng = np.random.default_rng(2)
    lows = rng.random((500, 2)) * 0.9
    words = [[f"w{k % 40}"] for k in range(500)]
    columns = {"xmin": lows[:, 0], "ymin": lows[:, 1], "xmax": lows[:, 0] + 0.1, "ymax": lows[:, 1] + 0.1}
    table = {"id": np.arange(500), "tokens": words, **columns}
    many = nc.Moving(table, "ap+-tree", (0.0, 0.0, 1.0, 1.0), f=16, theta_p=4)
    few = nc.Moving(table, "ap+-tree", (0.0, 0.0, 1.0, 1.0), f=16, theta_p=4, copies=2)
    text = [[f"w{i}" for i in range(12)]] * 50
    message = {"id": np.arange(50), "tokens": text, "x": rng.random(50), "y": rng.random(50)}
    assert many.publish(message).equals(few.publish(message))
    assert few.report["copies of messages"] <= 2 * 50 < many.report["copies of messages"]


@pytest.mark.parametrize("shift", [0, -3, 2**31 - 4, 2**62], ids=str)
def test_changes_are_sorted_for_ids_of_any_size(shift: int) -> None:
    ids = (np.array([5, 3, 0, 7]) + shift).tolist()
    columns = {"xmin": [0.0] * 4, "ymin": [0.0] * 4, "xmax": [1.0] * 4, "ymax": [1.0] * 4}
    moving = nc.Moving({"id": ids, "expression": ["a", "a OR b", "a", "b"], **columns})
    table = {"id": ids, "tokens": [["a", "b"]] * 4, "x": [0.5] * 4, "y": [0.5] * 4}
    changes = moving.publish(table)
    wanted = [(message, subscription) for message in sorted(ids) for subscription in sorted(ids)]
    assert list(zip(changes["message"].to_pylist(), changes["subscription"].to_pylist(), strict=True)) == wanted
    assert moving.publish(table).num_rows == 0, "each message replaces itself"
    assert set(moving.unsubscribe(ids[:2])["change"].to_pylist()) == {-1}

"""Brute force against formulas computed by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

import nearcast as nc
from top_reference import Posted, Wanted, best, columns

UNIT = (0.0, 0.0, 1.0, 1.0)


def test_scores_of_one_message_by_hand() -> None:
    weights = {"token": ["a", "b"], "weight": [3.0, 4.0]}
    table = {"id": [1], "tokens": [["a", "b"]], "x": [0.0], "y": [0.0], "alpha": [0.25], "k": [1]}
    top = nc.TopK(table, 5, "brute", weights, UNIT)
    top.publish({"id": [7], "tokens": [["a", "a", "other"]], "x": [0.3], "y": [0.4]})
    # "other" has no weight and gets the largest one: the message is (a 2 * 3, other 4), the subscription (3, 4) / 5.
    words = 3 * 6 / (5 * math.hypot(6, 4))
    place = 1 - 0.5 / math.sqrt(2)
    ((message, score),) = [tuple(row.values()) for row in top.results(1).to_pylist()]
    assert message == 7 and score == pytest.approx(0.25 * place + 0.75 * words, abs=1e-12)


def test_default_weights_are_idf_over_the_subscriptions() -> None:
    table = {"id": [1, 2], "tokens": [["a"], ["a", "b"]], "x": [0.0, 0.0], "y": [0.0, 0.0], "alpha": [0.0, 0.0]}
    top = nc.TopK(table, 5, "brute", space=UNIT)
    top.publish({"id": [7], "tokens": [["a"]], "x": [0.0], "y": [0.0]})
    first, second = math.log(1 + 2 / 2), math.log(1 + 2 / 1)
    assert top.results(2)["score"][0].as_py() == pytest.approx(first / math.hypot(first, second), abs=1e-12)


def test_great_circle_distance_and_its_largest_value() -> None:
    table = {"id": [1], "tokens": [["a"]], "lon": [0.0], "lat": [0.0], "alpha": [1.0]}
    quarter = {"id": [7], "text": ["a"], "lon": [90.0], "lat": [0.0]}
    for max_dist, score in ((None, 1 - math.pi / 2 * 6371.0088 / 20015), (1e6, 1 - math.pi / 2 * 6371.0088e-6), (9, 0)):
        top = nc.TopK(table, 5, "brute", max_dist=max_dist)
        top.publish(quarter)
        assert top.results(1)["score"][0].as_py() == pytest.approx(score, abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_lists_are_those_of_the_reference_after_every_message(seed: int) -> None:
    rng = np.random.default_rng(seed)
    words = "abcde"
    wanted = [
        Wanted(list(rng.choice(list(words), rng.integers(1, 4), replace=False)), *rng.random(2), k, float(rng.random()))
        for k in (1, 2, 3, 4, 9)
    ]
    weight = dict(zip(words, rng.random(5) + 0.1, strict=True))
    table = columns(wanted, tokens="words", x="x", y="y", k="k", alpha="alpha") | {"id": np.arange(5)}
    top = nc.TopK(table, 6, "brute", {"token": list(weight), "weight": list(weight.values())}, UNIT)
    window: list[Posted] = []
    for number in range(25):
        posted = Posted(number, list(rng.choice(list(words), rng.integers(0, 5))), *rng.random(2))
        window = [*window, posted][-6:]
        top.publish({"id": [number], "tokens": [posted.words or None], "text": [""], "x": [posted.x], "y": [posted.y]})
        for k, each in enumerate(wanted):
            got = [(row["message"], row["score"]) for row in top.results(k).to_pylist()]
            expected = best(each, window, weight, math.sqrt(2))
            assert [message for message, _ in got] == [message for message, _ in expected]
            assert [score for _, score in got] == pytest.approx([score for _, score in expected], abs=1e-12)

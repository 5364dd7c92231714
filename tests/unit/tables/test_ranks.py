"""Ranked rows of a subscriptions table, and tables of weights: what is taken, and what is refused by row and reason."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import nearcast as nc
from nearcast.geo.space import LONLAT
from nearcast.model import RANK
from nearcast.tables import Dialect, Subscriptions, idf_weights, read_subscriptions, read_weights

BOX_REGION = '{"type": "Polygon", "coordinates": [[[0, 0], [2, 0], [2, 1], [0, 1], [0, 0]]]}'
TRIANGLE = '{"type": "Polygon", "coordinates": [[[0, 0], [9, 0], [0, 9], [0, 0]]]}'


def row(**changes: Any) -> dict[str, Any]:
    base = {"id": 1, "tokens": ["a"], "xmin": 0.0, "ymin": 0.0, "xmax": 1.0, "ymax": 1.0}
    return base | {"kind": "rank", "threshold": 0.5, "alpha": None, "expression": None, "region": None} | changes


def read(rows: list[dict[str, Any]], on_bad: Any = "raise", vocabulary: nc.Vocabulary | None = None) -> Subscriptions:
    words = nc.Vocabulary() if vocabulary is None else vocabulary
    return read_subscriptions(rows, words, Dialect(nc.Analyser(), LONLAT, on_bad))


def test_alpha_defaults_to_a_half() -> None:
    params = read([row(alpha=0.25), row(id=2), row(id=3, kind="match", threshold=7.0)]).rows(RANK).params
    assert params["alpha"].tolist() == [0.25, 0.5] and params["threshold"].tolist() == [0.5, 0.5]
    bare = row()
    del bare["alpha"]
    assert read([bare]).rows(RANK).params["alpha"].tolist() == [0.5]


def test_places_are_boxes_points_and_regions_that_are_one_box() -> None:
    point = {"xmin": None, "ymin": None, "xmax": None, "ymax": None, "x": 3.0, "y": 4.0}
    nowhere = point | {"x": None, "y": None}
    rows = [row(x=None, y=None), row(id=2, **point), row(id=3, **nowhere, region=BOX_REGION)]
    found = read([*rows, row(id=4, **nowhere, region="world"), row(id=5, **nowhere, region=TRIANGLE, kind="match")])
    wanted = [[0, 0, 1, 1], [3, 4, 3, 4], [0, 0, 2, 1], [-180, -90, 180, 90]]
    assert found.rows(RANK).boxes.tolist() == wanted and found.rows(RANK).owner_ids.tolist() == [1, 2, 3, 4]
    assert found.rows().owner_ids.tolist() == [5] and set(found.batches) == {"match", "rank"}


BAD = {
    "no threshold": ({"threshold": None}, "threshold", "no threshold; kind 'rank' needs the least score"),
    "threshold above 1": ({"threshold": 1.01}, "threshold", "1.01 is not within 0 to 1"),
    "threshold not a number": ({"threshold": math.nan}, "threshold", "nan is not within 0 to 1"),
    "alpha below 0": ({"alpha": -0.1}, "alpha", "-0.1 is not within 0 to 1"),
    "alpha not a number": ({"alpha": math.nan}, "alpha", "nan is not within 0 to 1"),
    "alpha infinite": ({"alpha": math.inf}, "alpha", "inf is not within 0 to 1"),
    "expression": ({"tokens": None, "expression": "a OR b"}, "expression", "kind 'rank' takes tokens, not an expr"),
    "circle": ({"region": "circle(0, 0, 2km)"}, "region", "or a region that is one box, not 2 km round 0, 0"),
    "polygon": ({"region": TRIANGLE}, "region", "kind 'rank' takes a point, a box, or a region that is one box"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_ranked_rows_are_named(name: str) -> None:
    changes, column, reason = BAD[name]
    with pytest.raises(nc.InvalidInput) as caught:
        read([row(id=7, threshold=0.1), row(**changes)])
    assert (caught.value.row, caught.value.column) == (2, column) and reason in caught.value.reason
    found = read([row(id=7), row(**changes)], "skip")
    assert found.rows(RANK).owner_ids.tolist() == [7] and found.rejects["row"].to_pylist() == [2]


def test_a_missing_threshold_column_is_an_error() -> None:
    bare = row()
    del bare["threshold"]
    with pytest.raises(nc.InvalidInput, match="row 1, column 'threshold': no threshold"):
        read([bare])


# -- weights


def test_tokens_without_a_weight_in_the_table_get_the_largest() -> None:
    vocabulary = nc.Vocabulary()
    vocabulary.add(pa.array(["before"]))
    weights = read_weights({"token": ["b", "a"], "weight": [2, 0]}, vocabulary)
    assert dict(zip(vocabulary.tokens(np.arange(3)).to_pylist(), weights.tolist(), strict=True)) == {
        "before": 2.0,
        "b": 2.0,
        "a": 0.0,
    }
    assert read_weights({"token": pa.array([], pa.string()), "weight": pa.array([], pa.float64())}, vocabulary).tolist()


def test_weights_of_a_vocabulary_are_its_own() -> None:
    counted = nc.Vocabulary()
    counted.count_documents(counted.add(pa.array(["a", "b", "a"])), np.array([0, 2, 3]))
    assert read_weights(counted, nc.Vocabulary()).tolist() == pytest.approx([math.log(2), math.log(3)])
    uncounted = nc.Vocabulary()
    uncounted.add(pa.array(["a"]))
    with pytest.raises(nc.InvalidInput, match="has counted no documents"):
        read_weights(uncounted, nc.Vocabulary())
    assert read_weights(nc.Vocabulary(), nc.Vocabulary()).tolist() == []


@pytest.mark.parametrize(
    ("tokens", "weights", "words"),
    [
        (["a", "b"], [1.0, math.nan], "row 2, column 'weight': nan is not a weight; it is a number from 0 to"),
        (["a", "b"], [1.0, math.inf], "row 2, column 'weight': inf is not a weight"),
        (["a", "b"], [1.0, -0.5], "row 2, column 'weight': -0.5 is not a weight"),
        (["a", "b"], [1.0, None], "row 2, column 'weight': null is not a weight"),
        (["a", "b"], ["1", "x"], "row 2, column 'weight': 'x' is not a number"),
        (["a", None], [1.0, 1.0], "row 2, column 'token': no token"),
        (["a", "b", "a"], [1.0, 1.0, 1.0], "row 3, column 'token': 'a' has a weight already"),
        (["a", "b"], [None, None], "row 1, column 'weight': null is not a weight"),
    ],
)
def test_bad_weights_are_named(tokens: list[Any], weights: list[Any], words: str) -> None:
    with pytest.raises(nc.InvalidInput, match=words):
        read_weights({"token": tokens, "weight": weights}, nc.Vocabulary())


def test_a_table_without_both_columns_is_no_table_of_weights() -> None:
    with pytest.raises(nc.InvalidInput, match="weights need a column 'weight'"):
        read_weights({"token": ["a"]}, nc.Vocabulary())


def test_idf_counts_each_subscription_once_and_no_not() -> None:
    vocabulary = nc.Vocabulary()
    rows = [
        row(),
        row(id=2, kind="match", tokens=["a", "b"]),
        row(id=3, kind="match", tokens=None, expression="(a OR b) c NOT d"),
        row(id=4, tokens=["a", "a"]),
    ]
    weights = idf_weights(read(rows, vocabulary=vocabulary), vocabulary)
    by_token = dict(zip(vocabulary.tokens(np.arange(len(vocabulary))).to_pylist(), weights.tolist(), strict=True))
    assert by_token == pytest.approx({"a": math.log(2), "b": math.log(3), "c": math.log(5), "d": math.log(5)})


def test_idf_of_nothing_is_one() -> None:
    vocabulary = nc.Vocabulary()
    found = read([row(tokens=[]), row(id=2, kind="match", tokens=None, expression="NOT x")], vocabulary=vocabulary)
    assert idf_weights(found, vocabulary).tolist() == [1.0]

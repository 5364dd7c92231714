"""The distance from a message to a cell of the sphere: never more than the true one, and seldom much less."""

from __future__ import annotations

import numpy as np
import pytest

from nearcast.geo.distance import great_circle_km, point_box_distance
from nearcast.geo.space import Space
from nearcast.topk.dissemination.igpt.cells import Cells, distance_to_cell, sphere_boxes
from nearcast.topk.embedding import embed, embedding_of
from nearcast.topk.score import metric_of

NASTY = [
    (-180.0, -90.0, 180.0, 90.0),
    (-180.0, 0.0, 0.0, 90.0),
    (90.0, -45.0, 180.0, 0.0),
    (-90.0, 45.0, -90.0, 45.0),
    (0.0, 89.0, 45.0, 90.0),
    (-0.5, -0.5, 0.5, 0.5),
    (179.0, -90.0, 180.0, -89.0),
]


def _boxes(rng: np.random.Generator) -> np.ndarray:
    sizes = 180.0 * rng.random((200, 2)) ** 6
    middles = np.stack([rng.uniform(-180.0, 180.0, 200), rng.uniform(-90.0, 90.0, 200)], axis=1)
    drawn = np.concatenate([middles - sizes, middles + sizes], axis=1)
    return np.concatenate([np.array(NASTY), drawn.clip([-180, -90, -180, -90], [180, 90, 180, 90])])


@pytest.mark.parametrize("max_dist", [None, 20.0])
def test_the_bound_is_at_most_the_distance_to_any_place_of_the_cell(max_dist: float | None) -> None:
    rng = np.random.default_rng(1)
    boxes, space = _boxes(rng), Space.of(None)
    n, metric = len(boxes), metric_of(space, max_dist)
    embedding = embedding_of(space, metric)
    none = np.full(n, -1, np.int32)
    cells = Cells(boxes, none, none, np.zeros(n), *sphere_boxes(boxes))
    ratios = []
    for cell, box in enumerate(boxes):
        share = rng.choice([0.0, 0.5, 1.0, rng.random()], (6, 2))
        inside = box[:2] + share * (box[2:] - box[:2])
        for x, y in (rng.uniform(-180.0, 180.0), rng.uniform(-90.0, 90.0)), rng.choice(boxes)[:2], inside[0]:
            point = np.array(embed(embedding, x, y))
            bound = distance_to_cell(cells, cell, embedding, np.array([x, y]), point)
            nearest = min(great_circle_km(x, y, *place) for place in inside) / metric.max_dist
            assert bound <= nearest + 1e-9, (box, x, y)
            true = point_box_distance(x, y, boxes, cell, False) / metric.max_dist
            if 0.0 < true < 0.5 and np.ptp(box[::2]) < 5.0:
                ratios.append(bound / true)
        assert distance_to_cell(cells, cell, embedding, inside[0], np.array(embed(embedding, *inside[0]))) == 0.0
    assert max_dist is not None or (len(ratios) > 50 and np.median(ratios) > 0.95)

"""`Index.explain`: one subscription of an index, as it was given, compared with one message."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import shapely

from nearcast.geo.circle import CircleRegion
from nearcast.geo.polygon import PolygonRegion
from nearcast.geo.region import WORLD, BoxRegion, Region
from nearcast.geo.space import Space
from nearcast.model import RowBatch
from nearcast.tables import Dialect, read_subscriptions
from nearcast.text.analyser import Analyser
from nearcast.text.clauses import Clause, clauses
from nearcast.text.expression import parse
from nearcast.text.vocabulary import Vocabulary


def clauses_of(row: dict[str, Any], analyser: Analyser) -> list[Clause]:
    """What a subscription asks for."""
    if row.get("expression") is not None:
        return clauses(parse(row["expression"], analyser))
    tokens = row.get("tokens") or []
    return [Clause(tuple(sorted({*(tokens.split() if isinstance(tokens, str) else tokens)})), ())]


def region_of(table: pa.Table, analyser: Analyser, space: Space) -> Region:
    """The place of a subscription, which is the one row of a table."""
    read = read_subscriptions(table, Vocabulary(), Dialect(analyser, space))
    rows = next((rows for rows in read.batches.values() if rows.size), RowBatch.empty())
    if rows.size == 0:
        return WORLD
    if rows.shapes[0] < 0:
        return _of_boxes(np.unique(rows.boxes, axis=0), space)
    geometry = read.shapes.geometries[rows.shapes[0]]
    if geometry is not None:
        return PolygonRegion(geometry, space.planar)
    x, y, radius = read.shapes.circles[rows.shapes[0]].tolist()
    return CircleRegion(x, y, radius, space.planar)


def _of_boxes(boxes: np.ndarray, space: Space) -> Region:
    if len(boxes) > 1:  # parts of a box over the antimeridian
        return PolygonRegion(shapely.MultiPolygon([shapely.box(*box) for box in boxes.tolist()]), space.planar)
    xmin, ymin, xmax, ymax = boxes[0].tolist()
    is_world = not space.planar and (xmin, ymin, xmax, ymax) == space.bounds
    return WORLD if is_world else BoxRegion(xmin, ymin, xmax, ymax, space.planar)

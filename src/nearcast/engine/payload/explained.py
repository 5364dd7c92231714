"""`Index.explain`: one subscription of an index, as it was given, compared with one message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import shapely

from nearcast.engine.explain import Explanation, MessageWords, explain, with_score
from nearcast.geo.circle import CircleRegion
from nearcast.geo.polygon import PolygonRegion
from nearcast.geo.region import WORLD, BoxRegion, Region
from nearcast.geo.space import Space
from nearcast.model import KINDS, MATCH, NEVER, NO_TIME, RowBatch
from nearcast.tables import Dialect, as_arrow, read_subscriptions
from nearcast.tables.attributes import all_attributes_of, attribute_rows
from nearcast.tables.columns import times_of
from nearcast.tables.faults import Faults
from nearcast.tables.messages import read_message_columns
from nearcast.text.analyser import Analyser
from nearcast.text.clauses import Clause, clauses
from nearcast.text.expression import parse
from nearcast.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from nearcast.engine.index import Index


def explained(index: Index, row: dict[str, Any], number: int, source: pa.Table, message: Any) -> Explanation:
    """A subscription of an index compared with a messages table of one row. `row` and `source` are the subscription as
    it was given, as values and as a table; no subscription changes meanwhile.
    """
    place = region_of(source, index.analyser, index.space)
    table = as_arrow(message)
    columns = read_message_columns(table, index.message_dialect("raise"))
    tokens, box, attributes = columns.tokens[0].as_py() or [], columns.boxes[0], all_attributes_of(table)
    words = MessageWords(tokens, {} if attributes is None else attribute_rows(attributes)[0])
    expires = int(times_of(source, "expires", Faults(1, "raise"), NEVER)[0])
    wanted, time = clauses_of(row, index.analyser), int(columns.times[0])
    found = explain(wanted, place, words, box, time != NO_TIME and time >= expires)
    scored = index.subscriptions_of(KINDS[row.get("kind", MATCH.name)])
    if scored is None or not scored.kind.is_scored:
        return found
    score, least = scored.score(number, index.message(tokens, box, NO_TIME))
    return with_score(found, score, least, not place.is_box)


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

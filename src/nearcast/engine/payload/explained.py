"""`Index.explain`: one subscription of an index, as it was given, compared with one message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import shapely

from nearcast.arguments import a_text, checked_attributes, some_numbers, some_tokens
from nearcast.engine.explain import Explanation, MessageWords, explain
from nearcast.geo.circle import CircleRegion
from nearcast.geo.polygon import PolygonRegion
from nearcast.geo.region import WORLD, BoxRegion, Region
from nearcast.geo.space import BOX_COLUMNS, Space
from nearcast.model import NEVER, NO_TIME, RowBatch
from nearcast.tables import Dialect, read_subscriptions
from nearcast.tables.attributes import all_attributes_of, attribute_rows
from nearcast.tables.columns import times_of
from nearcast.tables.faults import Faults
from nearcast.tables.messages import read_message_columns
from nearcast.text.analyser import Analyser
from nearcast.text.clauses import Clause, clauses
from nearcast.text.expression import parse
from nearcast.text.vocabulary import Vocabulary


class Explained(NamedTuple):
    """An explanation, and the message as it was read."""

    explanation: Explanation
    tokens: list[str]
    box: np.ndarray
    is_box: bool  # whether the place of the subscription is its box


def message_row(
    text: str, at: Sequence[float], tokens: Sequence[str] | None, attributes: Mapping[str, Any] | None
) -> dict[str, Any]:
    """A message as a table of one row."""
    given = {name: [value] for name, value in (checked_attributes(attributes) or {}).items()}
    words = given | ({"text": [a_text(text, "text")]} if tokens is None else {"tokens": [some_tokens(tokens)]})
    numbers = some_numbers(at, "at", 2, 4)
    names = ("x", "y") if len(numbers) == 2 else BOX_COLUMNS
    return {"id": [0], **words, **{name: [value] for name, value in zip(names, numbers, strict=True)}}


def explain_row(row: dict[str, Any], source: pa.Table, message: pa.Table, dialect: Dialect, now: int) -> Explained:
    """Compare a subscription, given as a dict and as a table of one row, with a messages table of one row."""
    analyser, space = dialect.analyser, dialect.space
    place = region_of(source, analyser, space)
    columns = read_message_columns(message, dialect)
    tokens, box, attributes = columns.tokens[0].as_py() or [], columns.boxes[0], all_attributes_of(message)
    words = MessageWords(tokens, {} if attributes is None else attribute_rows(attributes)[0])
    expires = int(times_of(source, "expires", Faults(1, "raise"), NEVER)[0])
    time = now if columns.times[0] == NO_TIME else int(columns.times[0])
    found = explain(clauses_of(row, analyser), place, words, box, time >= expires)
    return Explained(found, tokens, box, place.is_box)


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

"""Rows of whole tables: the same rows, terms, shapes and rejects as if each subscription were read on its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.errors import InvalidInput
from nearcast.geo.geojson import parse_region
from nearcast.geo.region import BoxRegion, Region
from nearcast.geo.shapes.columns import ShapeColumns
from nearcast.geo.space import LONLAT
from nearcast.model import NEVER, NO_SHAPE, RowBatch
from nearcast.tables import Dialect, Subscriptions, read_subscriptions
from nearcast.tables.subscription_rows import OneSubscription, rows_of_one
from nearcast.text.analyser import Analyser
from nearcast.text.clause_columns import FEW
from nearcast.text.clauses import Clause, clauses
from nearcast.text.derived.atoms import plain_tokens
from nearcast.text.expression import parse
from nearcast.text.vocabulary import Vocabulary

PLAIN = Analyser()
BOX = (1.0, 2.0, 3.0, 4.0)
TRIANGLE = '{"type": "Polygon", "coordinates": [[[0, 0], [9, 0], [0, 9]]]}'
ISLANDS = '{"type": "MultiPolygon", "coordinates": [[[[0, 0], [1, 0], [0, 1]]], [[[5, 5], [6, 5], [5, 6]]]]}'
SQUARE = '{"type": "Polygon", "coordinates": [[[0, 0], [9, 0], [9, 9], [0, 9]]]}'
REGIONS = [None, None, TRIANGLE, ISLANDS, SQUARE, "world", "circle(1, 2, 3km)", "circle(179.99, 2, 30km)", "nowhere"]
EXPRESSIONS = ["", "a", "b a", "a OR b", "c (b OR a-d) NOT e", "NOT b", "a NOT a", '"x y" NOT c', "a AND", "!"]
TOKENS = [None, [], ["b", "a", "b"], ["z"], ["e", "c"]]

rows_ = st.builds(
    lambda words, region, expires, kind: {**words, "region": region, "expires": expires, "kind": kind},
    st.sampled_from(
        [{"expression": text, "tokens": None} for text in EXPRESSIONS]
        + [{"expression": None, "tokens": tokens} for tokens in TOKENS]
        + [{"expression": "a", "tokens": ["b"]}]
    ),
    st.sampled_from(REGIONS),
    st.sampled_from([None, 5]),
    st.sampled_from(["match", "match", "match", "rank"]),
)


tables = st.tuples(st.lists(rows_, max_size=7), st.sampled_from([1, 1, 1, FEW])).map(lambda drawn: drawn[0] * drawn[1])
"""Few rows, which are read one by one, or many, which kernels read."""


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    box = dict(zip(("xmin", "ymin", "xmax", "ymax"), BOX, strict=True))
    schema = pa.schema(
        [("id", pa.int64()), ("tokens", pa.list_(pa.string())), ("expression", pa.string()), ("region", pa.string())]
        + [(name, pa.float64()) for name in (*box, "alpha", "threshold")]
        + [("expires", pa.timestamp("us", "UTC")), ("kind", pa.string())]
    )
    made = [{"id": 100 - i, "alpha": i % 100 / 100, "threshold": 0.5, **box, **row} for i, row in enumerate(rows)]
    return pa.Table.from_pylist(made, schema=schema)


def read(rows: list[dict[str, Any]], vocabulary: Vocabulary) -> Subscriptions:
    return read_subscriptions(table_of(rows), vocabulary, Dialect(PLAIN, LONLAT, "skip"))


def parsed(row: dict[str, Any]) -> tuple[list[Clause], Region | None]:
    """The clauses and the region of one row. Raises the first of its mistakes."""
    if row["kind"] == "rank" and row["expression"] is not None:
        raise InvalidInput("kind 'rank' takes tokens, not an expression", column="expression")
    region = None if row["region"] is None else parse_region(row["region"], LONLAT)
    if row["kind"] == "rank" and region is not None:
        if not region.is_box:
            accepted = "a point, a box, or a region that is one box"
            raise InvalidInput(f"kind 'rank' takes {accepted}, not {region.describe()}", column="region")
    if row["expression"] is None:
        return [Clause(tuple(row["tokens"] or ()), ())], region
    if row["tokens"]:
        raise InvalidInput("both tokens and an expression; give one of them", column="expression")
    try:
        return clauses(parse(row["expression"], PLAIN)), region
    except InvalidInput as error:
        raise InvalidInput(error.reason, column="expression") from None


Expected = tuple[int, Clause, tuple[float, ...], Region | None, int]


def expected_rows(rows: list[dict[str, Any]], kind: str) -> tuple[list[Expected], list[str]]:
    """(the rows of a kind in their order, their tokens in the order in which a vocabulary gets them)."""
    plain: list[Expected] = []
    expanded: list[Expected] = []
    for i, row in enumerate(rows):
        try:
            own_clauses, region = parsed(row)
        except InvalidInput:
            continue
        if row["kind"] != kind:
            continue
        expires = NEVER if row["expires"] is None else row["expires"]
        boxes = [BOX] if region is None else [tuple(box) for box in region.boxes(LONLAT).tolist()]
        is_plain = row["expression"] is None and (region is None or kind == "rank")
        shape = None if region is None or region.is_box else region
        made = [(100 - i, clause, box, shape, expires) for clause in own_clauses for box in boxes]
        (plain if is_plain else expanded).extend(made)
    sides = [row[1].required for row in (*plain, *expanded)] + [row[1].forbidden for row in (*plain, *expanded)]
    return plain + expanded, [token for side in sides for token in side]


def rows_in(batch: RowBatch, shapes: ShapeColumns, vocabulary: Vocabulary) -> Iterator[tuple[Any, ...]]:
    for i in range(batch.size):
        sides = []
        for terms, starts in ((batch.terms, batch.term_starts), (batch.not_terms, batch.not_starts)):
            own = terms[starts[i] : starts[i + 1]]
            assert (own[1:] > own[:-1]).all()
            sides.append({vocabulary.token(int(term)) for term in own})
        shape = int(batch.shapes[i])
        drawn = (
            None if shape == NO_SHAPE else (shapes.circles[shape].tolist(), shapely.to_wkb(shapes.geometries[shape]))
        )
        yield int(batch.owner_ids[i]), *sides, tuple(batch.boxes[i].tolist()), drawn, int(batch.expires[i])


def shown(row: Expected) -> tuple[Any, ...]:
    number, clause, box, region, expires = row
    drawn = None
    if region is not None:
        shapes = ShapeColumns.of([region])
        drawn = (shapes.circles[0].tolist(), shapely.to_wkb(shapes.geometries[0]))
    return number, set(clause.required), set(clause.forbidden), box, drawn, expires


@settings(max_examples=200, deadline=None)
@given(tables)
def test_a_table_has_the_rows_of_its_subscriptions(rows: list[dict[str, Any]]) -> None:
    vocabulary = Vocabulary()
    subscriptions = read(rows, vocabulary)
    tokens: list[str] = []
    for kind in ("match", "rank"):
        expected, own_tokens = expected_rows(rows, kind)
        batch = subscriptions.batches.get(kind, RowBatch.empty())
        assert list(rows_in(batch, subscriptions.shapes, vocabulary)) == [shown(row) for row in expected]
        tokens += own_tokens
        if kind == "rank" and batch.size:
            assert batch.params["alpha"].tolist() == [(100 - number) % 100 / 100 for number in batch.owner_ids.tolist()]
    known = set(vocabulary.tokens(np.arange(len(vocabulary))).to_pylist())
    assert known == {word for token in tokens for word in (token, *plain_tokens(token))}


@settings(max_examples=100, deadline=None)
@given(tables)
def test_bad_rows_are_rejected_in_order_with_the_reason_of_the_parser(rows: list[dict[str, Any]]) -> None:
    reasons = []
    for i, row in enumerate(rows, 1):
        try:
            parsed(row)
        except InvalidInput as error:
            reasons.append((i, error.column, error.reason))
    rejects = read(rows, Vocabulary()).rejects
    assert list(zip(*(rejects[name].to_pylist() for name in ("row", "column", "reason")), strict=True)) == reasons


def test_tokens_are_numbered_plain_rows_first_then_required_then_forbidden() -> None:
    words = [{"expression": "n NOT m", "tokens": None}, {"expression": None, "tokens": ["y", "x"]}]
    words += [{"expression": "l OR k n", "tokens": None}, {"expression": None, "tokens": ["w", "v"]}]
    regions = [None, None, "circle(180, 2, 3km)", "world"]
    rows = [{**each, "region": region} for each, region in zip(words, regions, strict=True)]
    vocabulary = Vocabulary()
    read(rows, vocabulary)
    assert vocabulary.tokens(np.arange(len(vocabulary))).to_pylist() == ["y", "x", "n", "k", "l", "w", "v", "m"]


@pytest.mark.parametrize("region", [region for region in REGIONS if region != "nowhere"])
@pytest.mark.parametrize("text", EXPRESSIONS[:-2])
def test_one_subscription_has_the_rows_of_a_table_of_one(text: str, region: str | None) -> None:
    row = {"expression": text, "tokens": None, "region": region, "expires": 7, "kind": "match"}
    by_table, by_one = Vocabulary(), Vocabulary()
    table = read([row], by_table)
    place = BoxRegion(*BOX) if region is None else parse_region(region, LONLAT)
    one = OneSubscription(100, clauses(parse(text, PLAIN)), place, 7, {"alpha": 0.5})
    batch, shapes = rows_of_one(one, by_one, LONLAT)
    for column, wanted in zip(batch[:-1], table.rows()[:-1], strict=True):
        assert column.dtype == wanted.dtype and np.array_equal(column, wanted)
    assert batch.params["alpha"].tolist() == [0.5] * batch.size
    assert [*map(len, by_one.arrays().values())] == [*map(len, by_table.arrays().values())]
    if batch.size:
        assert shapes.circles.tolist() == table.shapes.circles.tolist()
        assert shapely.to_wkb(shapes.geometries).tolist() == shapely.to_wkb(table.shapes.geometries).tolist()


def test_a_token_added_as_a_string_is_the_token_of_a_column() -> None:
    tokens = ["a", "é", "", "a b", "漢字", "a", *(f"w{i}" for i in range(100))]
    vocabulary = Vocabulary()
    assert vocabulary.add_strings(tokens).tolist() == vocabulary.add(pa.array(tokens)).tolist()
    assert vocabulary.add_strings([]).tolist() == []

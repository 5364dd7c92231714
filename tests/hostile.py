"""Inputs that are made to cost much, each about 100 kB: every one is answered, or refused with a NearcastError."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa

import nearcast as nc
from nearcast.geo.geojson import parse_region
from nearcast.geo.space import Space
from nearcast.text.analyser import Analyser
from nearcast.text.clauses import clauses
from nearcast.text.expression import parse

SIZE = 100_000


class Case(NamedTuple):
    name: str
    work: Callable[[], Any]

    def __repr__(self) -> str:
        return self.name


def cases() -> Iterator[Case]:
    """All cases, by name."""
    for name, text in texts():
        yield Case(f"text {name}", lambda text=text: Analyser().tokens(text))
        yield Case(f"text column {name}", lambda text=text: Analyser().tokens_batch(pa.array([text, "a"])))
    for name, text in expressions():
        yield Case(f"expression {name}", lambda text=text: clauses(parse(text, Analyser())))
        yield Case(f"expression column {name}", lambda text=text: nc.build_index(_table(expression=[text])))
    for name, region in regions():
        yield Case(f"region {name}", lambda region=region: parse_region(region, Space.of(None)))
        if not name.startswith("dict"):
            yield Case(f"region column {name}", lambda region=region: nc.build_index(_table(region=[region])))


def _table(**columns: Any) -> Any:
    place = {} if "region" in columns else {"x": [0.0], "y": [0.0]}
    words = {} if "expression" in columns else {"tokens": [["a"]]}
    return pa.table({"id": [1], **words, **place, **columns})


def texts() -> Iterator[tuple[str, str]]:
    yield "of marks", "a" + "\u0301" * (SIZE // 2)
    yield "of marks in two classes", "a" + "\u0301\u0323" * (SIZE // 4)
    yield "of marks in falling classes", "a" + ("\u0301" * 30 + "\u0323" * 30) * (SIZE // 120)
    yield "of marks without a letter", "\u0323\u0301" * (SIZE // 4)
    yield "of joiners", "a" + "\u200d" * (SIZE // 3)
    yield "of joined pictures", "\U0001f468\u200d" * (SIZE // 7)
    yield "of apostrophes", "a'" * (SIZE // 2)
    yield "of signs", "#@" * (SIZE // 2)
    yield "of signs after marks", "a\u0301#" * (SIZE // 4)
    yield "of one word", "a" * SIZE
    yield "of Hebrew quotes", '\u05d0"' * (SIZE // 3)
    yield "of numbers and points", "1.1," * (SIZE // 4)
    yield "of Thai letters", "\u0e01" * (SIZE // 3)
    yield "of Thai words", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35" * (SIZE // 18)
    yield "of Hangul jamo", "\u1100\u1161\u11a8" * (SIZE // 9)
    yield "of Han", "\u4e2d" * (SIZE // 3)
    yield "of line feeds", "\n" * SIZE
    yield "of flags", "\U0001f1e6" * (SIZE // 4)
    yield "of underscores", "_" * SIZE
    yield "of long decompositions", "\ufdfa" * (SIZE // 3)
    yield "of nulls", "\0a" * (SIZE // 2)


def expressions() -> Iterator[tuple[str, str]]:
    yield "of parentheses", "(" * SIZE
    yield "of closed parentheses", "(" * (SIZE // 2 - 1) + "a" + ")" * (SIZE // 2 - 1)
    yield "of NOT", "NOT " * (SIZE // 4 - 1) + "a"
    yield "of minus signs", "-" * (SIZE - 1) + "a"
    yield "of words", " ".join(f"w{k}" for k in range(SIZE // 7))
    yield "of alternatives", " OR ".join(f"w{k}" for k in range(SIZE // 10))
    yield "of pairs", " AND ".join(f"(a{k} OR b{k})" for k in range(SIZE // 22))
    yield (
        "of long alternatives",
        " AND ".join("(" + " OR ".join(f"w{k}x{j}" for j in range(20)) + ")" for k in range(SIZE // 230)),
    )
    yield "of clauses", " OR ".join(f"(a{k} b{k})" for k in range(SIZE // 18))
    yield "of negated clauses", "NOT (" + " OR ".join(f"(a{k} b{k})" for k in range(SIZE // 18)) + ")"
    yield "of excluded words", " ".join(f"-w{k}" for k in range(SIZE // 8))
    yield "of prefixes", " OR ".join(f"w{k}*" for k in range(SIZE // 11))
    yield "of phrases", " OR ".join(f'"a{k} b"' for k in range(SIZE // 14))
    yield "of one phrase", '"' + "a " * (SIZE // 2 - 2) + '"'
    yield "of stars", "*" * SIZE
    yield "of an open quote", '"' + "a\\" * (SIZE // 2 - 1)
    yield "of open quotes", '"a ' * (SIZE // 3)
    yield "of an open brace", "{" + '"a" ' * (SIZE // 4 - 1)
    yield "of open braces", "{ " * (SIZE // 2)
    yield "of braces", "{a=1}" * (SIZE // 5)
    yield "of one filter", "{a in (" + ",".join(str(k) for k in range(SIZE // 6)) + ")}"
    yield "of a long number", "{a = " + "9" * (SIZE - 10) + "}"
    yield "of a long exponent", "{a = 1e" + "9" * (SIZE - 10) + "}"
    yield "of spaces", " " * (SIZE - 1) + "a"
    yield "of spaces between", ("a" + " " * 999) * (SIZE // 1000)
    yield "of marks", "a" + "\u0301\u0323" * (SIZE // 4)
    yield "of one word", "a" * SIZE
    yield "of colons", "a:" * (SIZE // 2)
    yield "of AND", "a AND " * (SIZE // 6)
    yield "of nested pairs", "(a b OR " * 45 + "c d" + ")" * 45


def regions() -> Iterator[tuple[str, Any]]:
    yield "of digits", "circle(" + "1" * SIZE
    yield "of digits and points", "circle(" + "1." * (SIZE // 2)
    yield "of three long numbers", "circle({0},{0},{0}km)".format("0." + "1" * (SIZE // 3 - 10))
    yield "of spaces", "circle" + " " * SIZE + "("
    yield "of spaces within", "circle(1" + " " * SIZE + "1"
    yield "of a long unit", "circle(1,1,1" + "k" * SIZE + ")"
    yield "of an exponent", "circle(1,1,1e" + "9" * SIZE + "km)"
    yield "of braces", '{"a":' * (SIZE // 5)
    yield "of lists", '{"type":"Polygon","coordinates":' + "[" * SIZE
    yield "of a long number", '{"type":"Point","coordinates":[' + "9" * SIZE + ",0]}"
    yield "of a deep collection", ('{"type":"GeometryCollection","geometries":[' * (SIZE // 46) + "]}" * (SIZE // 46))
    for corners in (400, 800, 1500, 3000):
        yield f"of {corners} crossing corners", _polygon([_star(corners, Random(corners))])
    yield (
        "of crossing corners over the antimeridian",
        _polygon([[[x + 180.0 if x < 0 else x - 180.0, y] for x, y in _star(1500, Random(1))]]),
    )
    yield "of a star", _polygon([_pentagram(4001)])
    yield "of a comb", _polygon([_comb(2000)])
    yield "of two combs", json.dumps({"type": "MultiPolygon", "coordinates": [[_comb(900)], [_comb(900, True)]]})
    yield (
        "of many overlapping parts",
        json.dumps({"type": "MultiPolygon", "coordinates": [[_square(k * 0.001, 0, 5)] for k in range(SIZE // 90)]}),
    )
    yield (
        "of many apart",
        json.dumps(
            {"type": "MultiPolygon", "coordinates": [[_square(k % 40, k // 40, 0.5)] for k in range(SIZE // 90)]}
        ),
    )
    yield "of many holes", _polygon([_square(0, 0, 50), *(_square(k % 40, k // 40, 0.5) for k in range(SIZE // 90))])
    yield "of overlapping holes", _polygon([_square(0, 0, 80), *(_square(k * 0.001, 1, 5) for k in range(SIZE // 90))])
    yield "of turns around the pole", _polygon([[[(k * 170) % 360 - 180.0, 80.0] for k in range(4000)]])
    yield "of one corner", _polygon([[[0.0, 0.0]] * (SIZE // 12)])
    yield "of a wide line", _polygon([[[(-1) ** k * 179.0, k * 0.01] for k in range(4000)]])
    yield "dict nested in itself", _endless()
    yield "dict of a collection in itself", _endless_collection()


def _polygon(rings: list[list[list[float]]]) -> str:
    return json.dumps({"type": "Polygon", "coordinates": rings})


def _star(corners: int, random: Random) -> list[list[float]]:
    return [[round(random.uniform(-80, 80), 4), round(random.uniform(-80, 80), 4)] for _ in range(corners)]


def _pentagram(corners: int) -> list[list[float]]:
    angles = (2 * math.pi * (k * (corners // 2)) / corners for k in range(corners))
    return [[round(50 * math.cos(angle), 6), round(50 * math.sin(angle), 6)] for angle in angles]


def _comb(teeth: int, is_turned: bool = False) -> list[list[float]]:
    points = [[-80.0, -40.0]]
    for k in range(teeth):
        x = -80 + 160 * k / teeth
        points += [[x, 40.0], [x + 80 / teeth, -39.0]]
    points.append([80.0, -40.0])
    return [[y, x] for x, y in points] if is_turned else points


def _square(x: float, y: float, side: float) -> list[list[float]]:
    return [[x, y], [x + side, y], [x + side, y + side], [x, y + side], [x, y]]


def _endless() -> dict[str, Any]:
    made: dict[str, Any] = {"type": "Feature"}
    made["geometry"] = made
    return made


def _endless_collection() -> dict[str, Any]:
    made: dict[str, Any] = {"type": "GeometryCollection"}
    made["geometries"] = [made]
    return made

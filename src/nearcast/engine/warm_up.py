"""Calls every kernel, with the argument types of real work, so that it is compiled or loaded.

The calls cover text, places and every method: build, insert, match, rank, save, open and remove.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.engine.catalogue import methods
from nearcast.engine.engine import Engine
from nearcast.engine.index import Index, build_index
from nearcast.engine.saved.saved_index import open_index
from nearcast.engine.warm_moving import warm_moving
from nearcast.geo.space import LONLAT, Space
from nearcast.matching.method import find_method, kinds_of
from nearcast.tables import Dialect, read_subscriptions
from nearcast.text.analyser import Analyser
from nearcast.text.vocabulary import Vocabulary
from nearcast.topk.warm_up import warm_top

COMMON = "text and places"
TOP = "best k in a window"
MOVING = "moving subscriptions"
OTHER_KINDS = {TOP: warm_top, MOVING: warm_moving}
FEW = 150
"""Rows with which nearly all kernels are called; also interpreted, a method takes at most 1 s."""
MANY = 1500
"""Rows with which all are called: past the 1,024 from which stores and arenas of lists are compacted."""
TRIANGLE = '{"type": "Polygon", "coordinates": [[[0, 0], [9, 0], [0, 9], [0, 0]]]}'
UNIT = (0.0, 0.0, 1.0, 1.0)


def parts_of(names: Sequence[str] | None = None) -> list[str]:
    """The names for `warm_part`: the common part, then the methods named, or all methods of all kinds."""
    known = [info.name for info in methods()]
    parts = [COMMON, *(find_method("match", name).name for name in (names or known))]
    return parts if names else [*parts, TOP, MOVING]


def warm_part(part: str, n_rows: int) -> None:
    """Call the kernels of one of `parts_of`, with about so many rows."""
    if part == COMMON:
        _warm_text()
        _warm_tables()
        _warm_engine()
        return
    if part in OTHER_KINDS:
        OTHER_KINDS[part](n_rows)
        return
    _warm_method(part, n_rows)
    if "rank" in kinds_of(part):
        _warm_rank(part, n_rows)


def _warm_text() -> None:
    texts = pa.array(["Two plain words", "Café #tag @name 漢字かな", "", None] * 20)
    tokens = Analyser().tokens_batch(texts)
    Analyser(fold_accents=True, stop_words="en", stem="english").tokens_batch(texts)
    Analyser().tokens("one more text")
    vocabulary = Vocabulary()
    terms = vocabulary.add(tokens.flatten())
    vocabulary.count_documents(terms, np.array([0, len(terms)], np.int64))
    with tempfile.TemporaryDirectory() as folder:
        vocabulary.save(Path(folder) / "vocabulary")
        vocabulary = Vocabulary.open(Path(folder) / "vocabulary")
        vocabulary.add(pa.array([f"grown{k}" for k in range(5000)]))
    vocabulary.lookup(pa.array(["two", "unknown"]))
    vocabulary.term("two")
    vocabulary.tokens(vocabulary.lookup(pa.array(["two"])))


def _warm_tables() -> None:
    """Read more regions and expressions than are read one by one."""
    for space in (LONLAT, Space.of(UNIT)):
        rows = [
            row | {"id": k, "expression": row["expression"] + f" v{k}"} for k, row in enumerate(_many(space.planar))
        ]
        read_subscriptions(rows, Vocabulary(), Dialect(Analyser(), space))


def _many(planar: bool) -> list[dict[str, Any]]:
    triangles = ({"region": TRIANGLE.replace("9", str(k))} for k in range(2, 40))
    circles = ({"region": f"circle(0.{k}, 0.5, 1{'' if planar else 'km'})"} for k in range(1, 40))
    return [{"expression": "w0 AND (w1 OR w2)"} | region for region in (*triangles, *circles)]


def _warm_engine() -> None:
    for space in (None, UNIT):
        engine = Engine("brute", space=space)
        near = engine.subscribe("one OR two NOT three", near=(0.5, 0.5), km=0.1, expires=timedelta(hours=1))
        drawn = engine.subscribe("one", region=TRIANGLE)
        boxed = engine.subscribe("", box=(0, 0, 1, 1))
        scored = engine.subscribe("one three", box=(0, 0, 1, 1), kind="rank", threshold=0.1)
        for at in ((0.5, 0.5), (0.2, 0.2, 0.6, 0.6), (20.0, 20.0)):
            engine.publish("one two", at=at)
            for number in (near, drawn, boxed, scored):
                engine.explain(number, "two", at=at)
        engine.unsubscribe(near)
        engine.publish_many({"id": [1], "text": ["one"], "x": [0.5], "y": [0.5]})


def _warm_method(name: str, n_rows: int) -> None:
    """Build, change and match. Planar spaces have no kernels of their own beyond those of the common part."""
    rng = np.random.default_rng(1)
    points, ranges = _messages(rng, n_rows // 8, 0.0), _messages(rng, n_rows // 8, 0.3)
    index = build_index(_boxes(rng, 0, n_rows // 5), name)
    index.insert(_boxes(rng, 0, n_rows * 3 // 4))  # replaces, and makes trees grow a level
    index.insert(_boxes(rng, 0, n_rows))  # replaces, and grows enough for a rebuild
    index.insert(_boxes(rng, n_rows, 50))
    index.insert(_expressions())
    for messages in (points, ranges):
        index.match(messages)
    row = {"id": 2, "tokens": ["w0"], "xmin": 0, "ymin": 0, "xmax": 1, "ymax": 1}
    plain = build_index([row, row | {"id": 1}], name)  # descending ids are sorted
    plain.match_one(["w0", "w1"], 0.5, 0.5)
    plain.match_one([f"w{k}" for k in range(100)], 0.5, 0.5)  # long messages take another path
    _warm_service(index, points, ranges, _boxes(rng, n_rows, 100))


def _warm_rank(name: str, n_rows: int) -> None:
    rng = np.random.default_rng(2)
    points, ranges = _messages(rng, n_rows // 8, 0.0), _messages(rng, n_rows // 8, 0.3)
    index = build_index(_boxes(rng, 0, 20), name, space=UNIT)
    for first, n in ((0, n_rows // 5), (0, n_rows), (n_rows, 50)):
        index.insert(_ranked(rng, first, n))
    _warm_service(index, points, ranges, _ranked(rng, n_rows, 100))


def _warm_service(index: Index, points: dict[str, Any], ranges: dict[str, Any], more: dict[str, Any]) -> None:
    """Match, save, open and change an index."""
    for messages in (points, ranges):
        index.match(messages, threads=2)
    index.match_one(["w0", "w1"], 0.5, 0.5)
    with tempfile.TemporaryDirectory() as folder:
        index.save(folder)
        opened = open_index(folder)
        opened.insert(more)
        opened.match(points)
        opened.remove(np.arange(10))
    index.remove(np.arange(len(index) * 7 // 8))
    index.match(ranges)


def _ranked(rng: np.random.Generator, first: int, n: int) -> dict[str, Any]:
    """As `_boxes`, for kind `rank`; some expire."""
    params = {"kind": ["rank"] * n, "alpha": rng.random(n), "threshold": rng.random(n)}
    far = [None if k % 3 else "2100-01-01T00:00:00Z" for k in range(n)]
    return _boxes(rng, first, n) | params | {"expires": pa.array(far, pa.string())}


def _boxes(rng: np.random.Generator, first: int, n: int) -> dict[str, Any]:
    """Tokens and boxes in the unit square; every eighth has no token."""
    counts = np.arange(n) % 8 % 6
    low = rng.random((n, 2)) * 0.9
    high = low + rng.random((n, 2)) ** 4 * 0.1
    return {
        "id": np.arange(first, first + n),
        "tokens": [_words(rng, count) for count in counts.tolist()],
        **dict(zip(("xmin", "ymin", "xmax", "ymax"), np.hstack([low, high]).T, strict=True)),
    }


def _expressions() -> list[dict[str, Any]]:
    expressions = ("w0 AND (w1 OR w2) NOT w3", "NOT w4", "", "w1")
    far = "2100-01-01T00:00:00Z"
    return [
        {"id": 90_000 + 10 * k + j, "expression": expression, "region": region, "expires": far if j % 2 else None}
        for k, expression in enumerate(expressions)
        for j, region in enumerate(("circle(0.5, 0.5, 30km)", TRIANGLE, "world"))
    ]


def _messages(rng: np.random.Generator, n: int, size: float) -> dict[str, Any]:
    low = rng.random((n, 2)) * (1 - size)
    high = low + rng.random((n, 2)) * size
    return {
        "id": np.arange(n),
        "text": [" ".join(_words(rng, count)) for count in (np.arange(n) % 50).tolist()],
        **dict(zip(("xmin", "ymin", "xmax", "ymax"), np.hstack([low, high]).T, strict=True)),
        "time": pa.array(np.arange(n), pa.timestamp("us", "UTC")),
    }


def _words(rng: np.random.Generator, count: int) -> list[str]:
    """Skewed: low numbers are frequent."""
    return [f"w{int(200 * value**3)}" for value in rng.random(count)]

"""Mistakes that people make in tables and calls, by name. `error_texts.txt` has what nearcast says to each.

After a change of texts, regenerate the file and read the difference:

    python -m tests.golden.error_cases
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import nearcast as nc

TEXTS = Path(__file__).with_name("error_texts.txt")
S: dict[str, Any] = {"id": [1, 2], "expression": ["a", "b"], "x": [0.0, 1.0], "y": [0.0, 1.0]}
M: dict[str, Any] = {"id": [5, 6], "text": ["a", "b"], "x": [0.0, 1.0], "y": [0.0, 1.0]}
T: dict[str, Any] = {"id": [1, 2], "tokens": [["a"], ["b"]], "x": [0.0, 1.0], "y": [0.0, 1.0]}
BOX: dict[str, Any] = {"xmin": [0.0, 0.0], "ymin": [0.0, 0.0], "xmax": [1.0, 1.0], "ymax": [1.0, 1.0]}
R = {"id": [1, 2], "tokens": [["a"], ["b"]], **BOX, "kind": ["rank", "rank"], "threshold": [0.5, 0.5]}


def without(table: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: values for name, values in table.items() if name not in names}


# what is changed in a good table, by name
SUBSCRIPTIONS: dict[str, Any] = {
    "no id": without(S, "id"),
    "no expression": without(S, "expression"),
    "no place": without(S, "x", "y"),
    "only a longitude": without(S, "y"),
    "id twice": S | {"id": [1, 1]},
    "id null": S | {"id": [1, None]},
    "id empty": S | {"id": ["a", ""]},
    "ids of two types": S | {"id": [1, "a"]},
    "id a fraction": S | {"id": [1, 1.5]},
    "id too large": S | {"id": [1, 2**63]},
    "misspelt expression": without(S, "expression") | {"exprssion": ["a", "b"]},
    "misspelt region": S | {"regoin": ["world", "world"]},
    "unknown column": S | {"owner": ["Ann", "Bob"]},
    "radius": S | {"radius": [1, 2]},
    "a messages table": M,
    "expression a number": S | {"expression": [1, 2]},
    "open parenthesis": S | {"expression": ["a", "(b"]},
    "lone operator": S | {"expression": ["a", "AND"]},
    "lower-case and": S | {"expression": ["a", "a and b"]},
    "field": S | {"expression": ["a", "text:b"]},
    "open quote": S | {"expression": ["a", '"b']},
    "short prefix": S | {"expression": ["a", "b*"]},
    "filter cut off": S | {"expression": ["a", "{severity >="]},
    "filter with =>": S | {"expression": ["a", "{severity => 3}"]},
    "both tokens and expression": S | {"tokens": [["a"], ["b"]]},
    "tokens numbers": T | {"tokens": [1, 2]},
    "token null": T | {"tokens": [["a"], ["b", None]]},
    "x missing": S | {"x": [0.0, None]},
    "x infinite": S | {"x": [0.0, float("inf")]},
    "x out of range": S | {"x": [0.0, 200.0]},
    "lon and lat swapped": S | {"x": [0.0, 51.0], "y": [0.0, -114.0]},
    "metres of a plane": S | {"x": [0.0, 500_000.0]},
    "x text": S | {"x": ["0", "west"]},
    "ymin above ymax": without(S, "x", "y") | BOX | {"ymin": [0.0, 2.0]},
    "xmin and xmax swapped": without(S, "x", "y") | BOX | {"xmin": [0.0, 2.0]},
    "km with a unit": S | {"km": ["1", "3km"]},
    "km negative": S | {"km": [1, -1]},
    "km and m": S | {"km": [1, 1], "m": [None, 5]},
    "km and region": S | {"km": [None, 1], "region": ["world", "world"]},
    "km without a point": S | {"km": [1, 1], "x": [0, None]},
    "km without columns": without(S, "x", "y") | {"km": [1, 1]},
    "region rubbish": S | {"region": ["world", "Calgary"]},
    "region empty": S | {"region": ["world", ""]},
    "region a number": S | {"region": [1, 2]},
    "circle without unit": S | {"region": ["world", "circle(1, 2, 3)"]},
    "circle of acres": S | {"region": ["world", "circle(1, 2, 3acres)"]},
    "circle negative": S | {"region": ["world", "circle(1, 2, -3km)"]},
    "circle out of range": S | {"region": ["world", "circle(200, 2, 3km)"]},
    "circle cut off": S | {"region": ["world", "circle(1, 2"]},
    "box of three": S | {"region": ["world", "box(1, 2, 3)"]},
    "box around the globe": S | {"region": ["world", "box(-73, 1, -74, 2)"]},
    "JSON cut off": S | {"region": ["world", '{"type": "Polygon"']},
    "JSON of another type": S | {"region": ["world", '{"type": "Town"}']},
    "line": S | {"region": ["world", "LINESTRING (0 0, 1 1)"]},
    "WKT cut off": S | {"region": ["world", "POLYGON ((0 0, 1 1"]},
    "WKB rubbish": S | {"region": [b"rubbish", b"more"]},
    "polygon of two corners": S | {"region": ["world", '{"type": "Polygon", "coordinates": [[[0, 0], [1, 1]]]}']},
    "polygon without area": S | {"region": ["world", "POLYGON ((0 0, 1 1, 2 2, 0 0))"]},
    "expires text": S | {"expires": ["2026-01-31", "soon"]},
    "kind unknown": S | {"kind": ["match", "best"]},
    "kind top in an index": S | {"kind": ["match", "top"]},
    "rank without threshold": R | {"threshold": [0.5, None]},
    "threshold out of range": R | {"threshold": [0.5, 2.0]},
    "alpha text": R | {"alpha": ["0.5", "half"]},
    "rank with an expression": R | {"expression": [None, "a OR b"], "tokens": [["a"], None]},
    "rank with a circle": without(R, *BOX) | {"region": ["world", "circle(1, 2, 3km)"]},
}
MESSAGES: dict[str, Any] = {
    "no text": without(M, "text"),
    "text a number": M | {"text": [1, 2]},
    "text in bytes": M | {"text": [b"a", b"\xff"]},
    "no place": without(M, "x", "y"),
    "y missing": M | {"y": [0.0, float("nan")]},
    "lat out of range": without(M, "x", "y") | {"lon": [0, 0], "lat": [0, 91]},
    "time text": M | {"time": ["2026-01-31", "yesterday"]},
    "misspelt time": M | {"tme": ["2026-01-31", "2026-01-31"]},
    "capital ID": without(M, "id") | {"ID": [1, 2]},
    "a subscriptions table": S,
    "box over the antimeridian": without(M, "x", "y") | BOX | {"xmin": [0.0, 170.0], "xmax": [1.0, -170.0]},
    "empty dict": {},
    "dict of scalars": {"id": 1, "text": "a", "x": 0, "y": 0},
    "list of lists": [[1, "a"]],
    "lengths differ": M | {"id": [1]},
    "None": None,
    "a number": 3,
    "no such file": "no-such-file.csv",
    "unknown ending": "messages.xlsx",
}
FILES: dict[str, tuple[str, bytes]] = {
    "CSV: value": ("m.csv", b"id,text,x,y\n1,a,0,0\n2,b,west,0\n"),
    "CSV: value after a text of two lines": ("m.csv", b'id,text,x,y\n1,"a\nb",0,0\n2,b,0,95\n'),
    "CSV: column twice": ("m.csv", b"id,text,x,y,text\n1,a,0,0,b\n"),
    "CSV: column missing": ("m.csv", b"id,words,x,y\n1,a,0,0\n"),
    "CSV: no UTF-8": ("m.csv", b"id,text,x,y\n1,a,0,0\n2,\xff\xfe,0,0\n"),
    "CSV: columns in one row": ("m.csv", b"id,text,x,y\n1,a,0,0,0,0\n"),
    "CSV: empty": ("m.csv", b""),
    "CSV: NA in a number": ("m.csv", b"id,text,x,y\n1,NA,0,0\n2,b,NA,0\n"),
    "JSON: cut off": ("m.jsonl", b'{"id": 1, "text": "a"'),
    "JSON: two types": ("m.jsonl", b'{"id": 1, "text": "a", "x": 0, "y": 0}\n{"id": 2, "text": 5, "x": 0, "y": 0}\n'),
    "Parquet: no Parquet": ("m.parquet", b"rubbish"),
}
INDEX = nc.build_index(S, "brute")
CALLS: dict[str, Callable[[], Any]] = {
    "all rows bad": lambda: INDEX.match(M | {"x": [999.0, 999.0]}, on_bad="skip"),
    "keep unknown": lambda: INDEX.match(M, keep=["txt"]),
    "extra a text": lambda: INDEX.match(M, extra="note"),
    "on_bad unknown": lambda: INDEX.match(M, on_bad="shrug"),  # type: ignore[arg-type]
    "now text": lambda: INDEX.match(M, now="soon"),
    "match_one: no words": lambda: INDEX.match_one(None, 0, 0),  # type: ignore[arg-type]
    "match_one: x text": lambda: INDEX.match_one("a", "0", 0),  # type: ignore[arg-type]
    "match_one: out of range": lambda: INDEX.match_one("a", 0, 91),
    "no such subscription": lambda: INDEX[3],
    "method unknown": lambda: nc.build_index(S, "rtree"),
    "space of three": lambda: nc.build_index(S, space=(0, 0, 1)),
    "km in a plane": lambda: nc.build_index(S | {"km": [1, 1]}, space=(0, 0, 1, 1)),
    "engine: near without km": lambda: nc.Engine().subscribe("a", near=(0, 0)),
    "engine: km and m": lambda: nc.Engine().subscribe("a", near=(0, 0), km=1, m=1),
    "engine: km text": lambda: nc.Engine().subscribe("a", near=(0, 0), km="far"),  # type: ignore[arg-type]
    "engine: two places": lambda: nc.Engine().subscribe("a", near=(0, 0), km=1, region="world"),
    "engine: box of three": lambda: nc.Engine().subscribe("a", box=(0, 0, 1)),
    "engine: region a number": lambda: nc.Engine().subscribe("a", region=3),
    "engine: unknown argument": lambda: nc.Engine().subscribe("a", nera=(0, 0)),
    "engine: at of three": lambda: nc.Engine().publish("a", at=(0, 0, 0)),
    "top: no window": lambda: nc.TopK(T),
    "top: k 0": lambda: nc.TopK(T | {"k": [1, 0]}, window=3),
    "top: time missing": lambda: nc.TopK(T, window=timedelta(hours=1)).publish(M),
    "moving: unknown id": lambda: nc.Moving(T).move([9], [[0.0, 0.0]]),
}


def said(call: Callable[[], Any]) -> str:
    """What nearcast says: the error on one line, or that all is well."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call()
        except nc.NearcastError as error:
            return " / ".join(line.strip() for line in str(error).splitlines() if line.strip("^ "))
    return "(accepted)"


def texts() -> Iterator[tuple[str, str]]:
    """(case, what is said)."""
    for name, table in SUBSCRIPTIONS.items():
        yield f"subscriptions: {name}", said(lambda table=table: nc.build_index(table, "brute"))
    for name, table in MESSAGES.items():
        yield f"messages: {name}", said(lambda table=table: INDEX.match(table))
    with tempfile.TemporaryDirectory() as folder:
        for name, (file, content) in FILES.items():
            (Path(folder) / file).write_bytes(content)
            yield name, said(lambda file=file: INDEX.match(Path(folder) / file)).replace(f"{folder}/", "")
    for name, call in CALLS.items():
        yield name, said(call)


def written() -> str:
    """The golden file."""
    return "".join(f"{name}\n    {text}\n" for name, text in texts())


if __name__ == "__main__":
    TEXTS.write_text(written(), encoding="utf-8")

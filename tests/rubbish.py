"""Sixty kinds of rubbish, and every public call that it is given to."""

from __future__ import annotations

import collections
import decimal
import fractions
import inspect
import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

import nearcast as nc


def rubbish() -> dict[str, Any]:
    """By name. Values are made anew, since some can be read once only."""
    return {
        "none": None,
        "true": True,
        "zero": 0,
        "negative": -1,
        "half": 0.5,
        "nan": float("nan"),
        "infinite": float("inf"),
        "beyond int64": 2**63,
        "beyond float": 10**400,
        "below int64": -(2**63) - 1,
        "complex": 1j,
        "decimal": decimal.Decimal("1.5"),
        "decimal nan": decimal.Decimal("nan"),
        "fraction": fractions.Fraction(1, 3),
        "empty text": "",
        "text": "rubbish",
        "digits": "12",
        "lone surrogate": "a\ud800b",
        "null character": "a\0b",
        "line feeds": "\n\r\n",
        "long text": "x" * 5000,
        "open parenthesis": "((",
        "atom": "\uffff{a = 1",
        "bytes": b"rubbish",
        "invalid utf-8": b"\xff\xfe",
        "empty list": [],
        "list of none": [None],
        "list of text": ["a", "b"],
        "mixed list": [1, "a", None, 2.5],
        "nested list": [[[[1]]]],
        "surrogates in a list": ["\udc00"],
        "huge numbers in a list": [2**70, -(2**70)],
        "pair beyond float": (10**400, 0),
        "nans": [float("nan")] * 4,
        "texts for numbers": ("x", "y"),
        "five numbers": [1, 2, 3, 4, 5],
        "empty tuple": (),
        "set": {1, 2},
        "empty dict": {},
        "dict of scalars": {"id": 1, "x": 2},
        "dict with ids beyond int64": {"id": [2**63], "tokens": [["a"]], "x": [0.0], "y": [0.0]},
        "dict with surrogates": {"id": [1], "text": ["\ud800"], "expression": ["\ud800"], "x": [0.0], "y": [0.0]},
        "dict of unequal columns": {"id": [1, 2], "tokens": [["a"]]},
        "dict with numbers for names": {1: [1], None: [2]},
        "list of dicts": [{"id": 1}, {"x": "a"}, {}],
        "list of dicts and others": [{"id": 1}, 7],
        "array": np.arange(3),
        "array of objects": np.array([object(), None], object),
        "array of three dimensions": np.zeros((2, 2, 2)),
        "array of no dimension": np.array(1.5),
        "array of structs": np.zeros(2, [("id", "i8")]),
        "masked array": np.ma.masked_array([1, 2], [True, False]),
        "not a time": np.datetime64("NaT"),
        "arrow table without columns": pa.table({}),
        "arrow table of nulls": pa.table({"id": pa.nulls(2), "text": pa.nulls(2), "x": pa.nulls(2), "y": pa.nulls(2)}),
        "arrow table with twins": pa.table([pa.array([1]), pa.array([2])], ["id", "id"]),
        "arrow run-ends": pa.table(
            {
                "id": pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), pa.array([1])),
                "text": pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), pa.array(["a"])),
                "x": pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), pa.array([1.0])),
                "y": pa.array([1.0, 2.0]),
            }
        ),
        "arrow times out of range": pa.table(
            {
                "id": [1],
                "text": ["a"],
                "expression": ["a"],
                "x": [0.0],
                "y": [0.0],
                "time": pa.array([2**62], pa.timestamp("s")),
                "expires": pa.array([2**62], pa.timestamp("s")),
            }
        ),
        "arrow array": pa.array(["a", None]),
        "frame": pd.DataFrame({"id": [1, "a"], "x": [object(), 2]}),
        "empty frame": pd.DataFrame(),
        "last time": datetime.max,
        "first time": datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
        "date": date(2026, 1, 1),
        "longest time": timedelta.max,
        "shortest time": timedelta.min,
        "negative time": timedelta(seconds=-1),
        "uuid": uuid.UUID(int=7),
        "object": object(),
        "queue": collections.deque([1]),
        "class": int,
        "function": len,
        "function that raises": _raises,
        "generator": (each for each in (1, "a")),
        "path of nothing": Path("nothing/at/all"),
        "url of nothing": "s4://nothing/at/all",
    }


def _raises(*_: Any, **__: Any) -> Any:
    raise nc.InvalidInput("by the caller's function")


SUBSCRIPTIONS = {"id": [1, 2], "tokens": [["a"], ["b"]], "xmin": [0.0, 1.0], "ymin": [0.0] * 2, "xmax": [2.0] * 2}
SUBSCRIPTIONS["ymax"] = [2.0, 2.0]
POINTS = {"id": [1, 2], "tokens": [["a"], ["b"]], "x": [0.0, 1.0], "y": [0.0, 1.0]}
MESSAGES = {"id": [5, 6], "text": ["a b", "b"], "x": [1.0, 1.5], "y": [1.0, 1.5]}
NOW = datetime(2026, 1, 1, tzinfo=UTC)

MAKERS: dict[str, Callable[[], Any]] = {
    "Index": lambda: nc.build_index(SUBSCRIPTIONS),
    "Engine": lambda: _engine(),
    "TopK": lambda: nc.TopK(POINTS, window=10),
    "Moving": lambda: nc.Moving(POINTS),
    "Vocabulary": lambda: _vocabulary(),
    "Analyser": nc.Analyser,
}
"""How to make an object of each class that has methods."""

GOOD: dict[str, Any] = {
    "subscriptions": POINTS,
    "messages": MESSAGES,
    "message": {name: values[:1] for name, values in MESSAGES.items()},
    "tokens": ["a"],
    "token": "a",
    "text": "a",
    "texts": pa.array(["a"]),
    "x": 1.0,
    "y": 1.0,
    "at": (1.0, 1.0),
    "to": (1.0, 1.0),
    "id": 1,
    "ids": [1],
    "subscription": 1,
    "places": [[1.0, 1.0]],
    "boxes": [[1.0, 1.0, 1.0, 1.0]],
    "now": NOW,
    "time": 0,
    "path": "saved",
    "window": 10,
    "expression": "a",
    "term": 0,
    "terms": np.array([0], np.int32),
    "starts": np.array([0, 1]),
    "term_starts": np.array([0, 1]),
    "place": (1.0, 1.0),
    "box": np.array([1.0, 1.0, 1.0, 1.0]),
    "name": "plain",
    "word": "ab",
    "atoms": ["a"],
    "numbers": np.array([1]),
    "attributes": {"severity": 3},
}
"""A right value for each parameter without a default. A new parameter without one gets rubbish alone."""

INTERNAL = {
    "Index": {"explain_message", "insert_read", "match_batch", "matches", "match_at", "match_message", "match_point"}
    | {
        "message",
        "remove_numbers",
        "restored",
        "state",
        "subscriptions_of",
        "drawn_boxes",
        "message_dialect",
        "subscription_dialect",
    }
    | {"drop_unused_names", "drop_unused_tokens"}
    | {"message_dialect", "subscription_dialect"},
    "TopK": {"changes_table", "publish_read", "restored", "row_of", "state"},
    "Moving": {"restored", "state"},
    "Vocabulary": {
        "add_atoms",
        "take_counts",
        "add_atoms_of",
        "add_strings",
        "arrays",
        "from_arrays",
        "header",
        "mark_members",
        "part",
    }
    | {"term_sets", "term_sets_of", "with_attributes", "with_attributes_of", "with_plain_terms"},
    "Analyser": {"from_header", "header"},
}
"""Methods that other parts of nearcast call with what they have checked."""


class Call(NamedTuple):
    """A public call, of which one argument is rubbish."""

    owner: str
    method: str
    parameter: str

    def __str__(self) -> str:
        return f"{self.owner}.{self.method}({self.parameter}=)".lstrip(".")

    def of(self, value: Any) -> Any:
        """Make the call."""
        function = _bound(self.owner, self.method)
        parameters = [*inspect.signature(function).parameters.values()]
        arguments, positional = dict[str, Any](), list[Any]()
        for each in parameters:
            if each.kind is each.VAR_POSITIONAL:
                positional = [value] if each.name == self.parameter else []
            elif each.kind is each.VAR_KEYWORD:
                arguments |= {"option": value} if each.name == self.parameter else {}
            elif each.name == self.parameter:
                arguments[each.name] = value
            elif each.default is each.empty:
                arguments[each.name] = GOOD.get(each.name, value)
        return function(*positional, **arguments)


def calls() -> list[Call]:
    """Every public function, constructor and method, with each of its parameters."""
    found = list[Call]()
    for name in nc.__all__:
        thing = getattr(nc, name)
        if not callable(thing) or (inspect.isclass(thing) and issubclass(thing, Exception | tuple)):
            continue
        found += _calls_of("", name, thing)
        if inspect.isclass(thing):
            public = (each for each in dir(thing) if not each.startswith("_"))
            methods = [
                each for each in public if callable(inspect.getattr_static(thing, each)) or _is_static(thing, each)
            ]
            methods += [each for each in ("__contains__", "__getitem__") if hasattr(thing, each)]
            for method in sorted(set(methods) - INTERNAL.get(name, set())):
                found += _calls_of(name, method, getattr(thing, method))
    return found


def _is_static(thing: type, name: str) -> bool:
    return isinstance(inspect.getattr_static(thing, name), classmethod | staticmethod)


def _calls_of(owner: str, name: str, function: Callable[..., Any]) -> list[Call]:
    parameters = inspect.signature(function).parameters
    return [Call(owner, name, each) for each in parameters if each != "self"]


def _bound(owner: str, method: str) -> Callable[..., Any]:
    if not owner:
        return getattr(nc, method)  # type: ignore[no-any-return]
    if _is_static(getattr(nc, owner), method):
        return getattr(getattr(nc, owner), method)  # type: ignore[no-any-return]
    return getattr(MAKERS[owner](), method)  # type: ignore[no-any-return]


def _engine() -> nc.Engine:
    engine = nc.Engine()
    engine.subscribe("a", near=(0, 0), km=5, id=1, follow=True)
    engine.subscribe("a", near=(0, 0), id=2, kind="top", window=10)
    engine.subscribe("a", near=(0, 0), km=5, id=3)
    return engine


def _vocabulary() -> nc.Vocabulary:
    vocabulary = nc.Vocabulary()
    vocabulary.add(pa.array(["a", "b"]))
    return vocabulary

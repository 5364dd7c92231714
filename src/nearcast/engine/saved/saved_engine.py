"""The state of an engine as arrays and a header: `Engine.save`, `open_engine`, and pickles."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.arrays.arrow import stream_bytes, stream_table
from nearcast.engine.engine import Engine, LiveSubscription
from nearcast.engine.index import Index
from nearcast.engine.live.results import LiveResults
from nearcast.errors import InvalidInput
from nearcast.geo.geojson import parse_region
from nearcast.geo.space import Space
from nearcast.matching.subscription_set import part_of
from nearcast.model import KINDS, WINDOW_KINDS, Id
from nearcast.storage.bundles import open_bundle, write_bundle
from nearcast.storage.location import locate

ENGINE_FORMAT = ("nearcast-engine", 1)

Arrays = dict[str, np.ndarray]
State = tuple[Arrays, dict[str, Any]]


def save_engine(engine: Engine, path: str | os.PathLike[str]) -> tuple[str, str, int]:
    """Write an engine, whose changes are kept out. (place, generation, version that was saved)."""
    generation = write_bundle(path, ENGINE_FORMAT, *engine_state(engine))
    return locate(path).url, generation, engine.index.versions.number


def opened_engine(path: str | os.PathLike[str], verify: bool, clock: Callable[[], float]) -> Engine:
    """The engine that was saved at a path."""
    opened = open_bundle(path, ENGINE_FORMAT, verify)
    engine = restored_engine(opened.arrays, opened.header, clock)
    engine._saved = (opened.url, opened.generation, engine.index.versions.number)
    return engine


def reopened_engine(path: str, generation: str, clock: Callable[[], float]) -> Engine:
    """The engine that was at this path when it was pickled. Raises if another one is there."""
    engine = opened_engine(path, False, clock)
    if engine._saved is None or engine._saved[1] != generation:
        raise InvalidInput(f"the engine at {path} was replaced since it was pickled; open it again")
    return engine


def engine_state(engine: Engine) -> State:
    """(arrays, header), while changes are kept out."""
    ids, lifetime = engine.index.names.arrow_type, engine._lifetime
    own, index = engine.index.state()
    arrays = {f"index.{name}": array for name, array in own.items()}
    arrays["subscriptions"] = _rows_state(engine._live, ids)
    header: dict[str, Any] = {"index": index, "is_weighed": engine._weights is not None}
    if engine._results is not None:
        own, header["results"] = _results_state(engine._results, ids)
        arrays |= {f"results.{name}": array for name, array in own.items()}
    header["lifetime_us"] = None if lifetime is None else lifetime // timedelta(microseconds=1)
    header |= {"newest": engine._newest[0], "next_subscription": engine._next_subscription}
    with engine._numbering:
        header["next_message"] = next(engine._message_numbers)
        engine._message_numbers = itertools.count(header["next_message"])
    return arrays, header


def restored_engine(arrays: Arrays, header: dict[str, Any], clock: Callable[[], float]) -> Engine:
    """The engine of a state. It keeps the arrays."""
    index = Index.restored(part_of(arrays, "index"), header["index"])
    lifetime = None if header["lifetime_us"] is None else timedelta(microseconds=header["lifetime_us"])
    made = Engine(analyser=index.analyser, clock=clock, lifetime=lifetime)
    made.index, made._space, made._versions = index, index.space, index.versions
    made._weights = index.weights_table() if header["is_weighed"] else None
    made._live = _rows_of(arrays["subscriptions"], index.space)
    if "results" in header:
        made._results = LiveResults(index.space, index.analyser, made._weights)
        _restore_results(made._results, part_of(arrays, "results"), header["results"])
    for id, each in made._live.items():
        if made._results is not None and id in made._results:
            made._results.set_expiry(id, each.expires)
        else:
            made._expiries.replace(id, each.expires)
    made._newest, made._next_subscription = [header["newest"]], header["next_subscription"]
    made._message_numbers = itertools.count(header["next_message"])
    return made


def _rows_state(rows: dict[Id, LiveSubscription], ids: pa.DataType) -> np.ndarray:
    """uint8[...]: the subscriptions as a table in Arrow's stream format."""
    own = list(rows.values())
    table = {
        "id": pa.array(list(rows), ids),
        "expression": pa.array([row.expression for row in own], pa.string()),
        "region": pa.array([json.dumps(row.region.to_geojson()) for row in own], pa.string()),
        "expires": pa.array([row.expires for row in own], pa.int64()),
        "kind": pa.array([row.kind.name for row in own], pa.string()),
        "params": pa.array([json.dumps(row.params) for row in own], pa.string()),
    }
    return stream_bytes(pa.table(table))


def _rows_of(saved: np.ndarray, space: Space) -> dict[Id, LiveSubscription]:
    """The result of `_rows_state`."""
    kinds = KINDS | WINDOW_KINDS
    rows = dict[Id, LiveSubscription]()
    for row in stream_table(saved).to_pylist():
        region, params = parse_region(json.loads(row["region"]), space), json.loads(row["params"])
        rows[row["id"]] = LiveSubscription(row["expression"], region, row["expires"], kinds[row["kind"]], params)
    return rows


def _results_state(results: LiveResults, ids: pa.DataType) -> State:
    """Best lists, followers, and the messages that are in their windows or live."""
    arrays, header = dict[str, np.ndarray](), dict[str, Any]()
    for name, part in (("lists", results.lists), ("followers", results.followers)):
        own, header[name] = part.state(ids)
        arrays |= {f"{name}.{key}": array for key, array in own.items()}
    return arrays, header | {"messages": results.message_header()}


def _restore_results(results: LiveResults, arrays: Arrays, header: dict[str, Any]) -> None:
    """Continue from a result of `_results_state`, without the times at which subscriptions expire."""
    results.lists.restore(part_of(arrays, "lists"), header["lists"])
    results.followers.restore(part_of(arrays, "followers"), header["followers"])
    results.take_message_header(header["messages"])

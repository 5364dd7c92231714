"""The delta: what the change log has changed since the base index was built.

A saved delta is a folder that never changes. It contains the inserted subscriptions that are live, the touched ids with
the number of the delta that touched each last, the names of known change files, and the rejects of the newest files.
The matches of base and delta are the pairs of the base whose subscription was not touched, plus the pairs of the delta.

Each worker builds the delta's index itself. That takes 25 ms for some hundred subscriptions on a busy machine; saving
an index for all workers took 230 ms, mostly to make its 53 files durable.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nearcast.arrays.arrow import one_array
from nearcast.arrays.bundle import write_whole
from nearcast.engine.build_part import build_part
from nearcast.engine.index import Index
from nearcast.errors import CorruptFile
from nearcast.model import RANK
from nearcast.sharding.live.changes import DELTA_METHOD, Changes, joined_ids, joined_tables
from nearcast.sharding.normalise import SUBSCRIPTIONS_SCHEMA, with_ids_of
from nearcast.sharding.weights import Weights, ranked_rows, unranked_rows
from nearcast.tables import Dialect, write_table


class Delta(NamedTuple):
    """The changes since the base, up to delta `number`."""

    number: int
    live: pa.Table  # SUBSCRIPTIONS_SCHEMA: inserted and not removed again
    touched: pa.Array  # ascending: ids whose rows in the base are obsolete
    touched_at: np.ndarray  # int64[n]  the delta that touched each last
    files: tuple[str, ...]  # change files in effect that still existed


NO_DELTA = Delta(0, SUBSCRIPTIONS_SCHEMA.empty_table(), pa.array([], pa.int64()), np.empty(0, np.int64), ())


def apply_changes(delta: Delta, changes: Changes, files: tuple[str, ...]) -> Delta:
    """The delta after these changes."""
    ids = _ascending(changes.ids)[0]
    number = delta.number + 1
    live = delta.live.filter(pa.array(~is_among(delta.live["id"], ids)))
    stays = ~is_among(delta.touched, ids)
    touched, order = _ascending(joined_ids([delta.touched.filter(pa.array(stays)), ids]))
    touched_at = np.concatenate([delta.touched_at[stays], np.full(len(ids), number)])
    return Delta(number, joined_tables([live, changes.inserted]), touched, touched_at[order], files)


def _ascending(ids: pa.Array) -> tuple[pa.Array, np.ndarray]:
    """(the ids in ascending order, their positions)."""
    order = pc.array_sort_indices(ids)
    return ids.take(order), np.asarray(order)


def delta_since(delta: Delta, number: int) -> Delta:
    """What came after delta `number`: the delta over a base that contains all changes up to it."""
    later = delta.touched_at > number
    touched = delta.touched.filter(pa.array(later))
    live = delta.live.filter(pa.array(is_among(delta.live["id"], touched)))
    return delta._replace(live=live, touched=touched, touched_at=delta.touched_at[later])


def is_among(ids: pa.Array | pa.ChunkedArray, ascending: pa.Array) -> np.ndarray:
    """bool[n]: which ids are in the ascending array."""
    if not len(ascending) or not len(ids):
        return np.zeros(len(ids), bool)
    if not pa.types.is_integer(ids.type):
        return np.asarray(pc.is_in(ids, ascending), bool)
    numbers, known = ids.to_numpy(), ascending.to_numpy()
    places = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
    return np.asarray(known[places] == numbers)


def save_delta(delta: Delta, rejects: pa.Table, folder: Path) -> str:
    """Save a delta as a new folder in `folder`, complete or not at all; return its name."""
    name = f"delta-{delta.number:08d}-{uuid.uuid4().hex[:8]}"
    unfinished = folder / f"_{name}"
    unfinished.mkdir(parents=True)
    write_table(delta.live, unfinished / "subscriptions.parquet")
    write_table(pa.table({"id": delta.touched, "at": delta.touched_at}), unfinished / "touched.parquet")
    write_table(rejects, unfinished / "rejects.parquet")
    head = {"number": delta.number, "files": list(delta.files)}
    write_whole(unfinished / "delta.json", json.dumps(head).encode())
    unfinished.rename(folder / name)
    return name


def load_delta(path: str | os.PathLike[str]) -> Delta:
    folder = Path(path)
    try:
        head = json.loads((folder / "delta.json").read_bytes())
        live = pq.read_table(folder / "subscriptions.parquet", partitioning=None)
        live = live.cast(with_ids_of(SUBSCRIPTIONS_SCHEMA, live.schema.field("id").type))
        touched = pq.read_table(folder / "touched.parquet", partitioning=None)
    except (OSError, ValueError) as error:
        raise CorruptFile(f"{folder} cannot be read: {error}") from None
    files = tuple(head["files"])
    return Delta(head["number"], live, one_array(touched["id"]), touched["at"].to_numpy(), files)


_OPENED: dict[str, tuple[list[Index], pa.Array]] = {}
_MOST_OPENED = 4  # the delta in use, and some for repeated batches


def open_delta(path: str, dialect: Dialect, weights: Callable[[], Weights]) -> tuple[list[Index], pa.Array]:
    """(the indexes over the inserted subscriptions, one per kind; the touched ids), opened once per process.

    `weights` gives the weights of the base; it is called only if a subscription is ranked.
    """
    if path not in _OPENED:
        delta = load_delta(path)
        _OPENED[path] = (_indexes(delta.live, dialect, weights), delta.touched)
        for oldest in list(_OPENED)[:-_MOST_OPENED]:
            del _OPENED[oldest]
    return _OPENED[path]


def _indexes(live: pa.Table, dialect: Dialect, weights: Callable[[], Weights]) -> list[Index]:
    plain, ranked = unranked_rows(live), ranked_rows(live)
    space = dialect.space.bounds if dialect.space.planar else None
    indexes = []
    if plain.num_rows:
        indexes.append(build_part(plain, DELTA_METHOD, space=space, keep_source=False, analyser=dialect.analyser))
    if ranked.num_rows:
        known = weights().of_ranked(ranked)
        method, analyser = RANK.default_method, dialect.analyser
        indexes.append(build_part(ranked, method, known, space, keep_source=False, analyser=analyser))
    return indexes

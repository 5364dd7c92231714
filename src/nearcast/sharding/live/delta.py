"""What the change log has done to an index since it was built: a small index of its own, and the ids it overrules.

A saved delta is a folder that never changes: the live inserted subscriptions, the ids touched with the number of the
delta that touched each last, the change files known, and the rejects of those that came with it. The answer of base
and delta is: pairs of the base whose subscription was not touched, plus the pairs of the delta.

Each worker builds the delta's index itself: 25 ms for some hundred subscriptions on a busy machine, where saving one
for all to open took 230 ms, most of it for the 53 files of an index to be durable.
"""

from __future__ import annotations

import json
import os
import uuid
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.arrays.bundle import write_whole
from nearcast.errors import CorruptFile
from nearcast.matching.rank_method import BEST_RANK_METHOD
from nearcast.sharding.live.changes import DELTA_METHOD, Changes
from nearcast.sharding.normalise import SUBSCRIPTIONS_SCHEMA
from nearcast.sharding.weights import Weights, ranked_rows, unranked_rows
from nearcast.tables import Dialect, write_table

if TYPE_CHECKING:
    from nearcast.engine.index import Index

_MOST_OPEN = 4  # deltas that one worker keeps: the one in use, and some for a replay


class Delta(NamedTuple):
    number: int
    live: pa.Table  # SUBSCRIPTIONS_SCHEMA: inserted and not removed since
    touched: np.ndarray  # int64[n] ascending: ids whose rows in the base no longer count
    touched_at: np.ndarray  # int64[n]  the delta that touched each last
    files: tuple[str, ...]  # change files in effect that were still there


NO_DELTA = Delta(0, SUBSCRIPTIONS_SCHEMA.empty_table(), np.empty(0, np.int64), np.empty(0, np.int64), ())


def apply_changes(delta: Delta, changes: Changes, files: tuple[str, ...]) -> Delta:
    """The delta after these changes."""
    ids = np.sort(changes.ids)
    number = delta.number + 1
    live = delta.live.filter(pa.array(~is_among(delta.live["id"].to_numpy(), ids)))
    stays = ~is_among(delta.touched, ids)
    touched = np.concatenate([delta.touched[stays], ids])
    touched_at = np.concatenate([delta.touched_at[stays], np.full(len(ids), number)])
    order = np.argsort(touched)
    live = pa.concat_tables([live, changes.inserted]).combine_chunks()
    return Delta(number, live, touched[order], touched_at[order], files)


def delta_since(delta: Delta, number: int) -> Delta:
    """What came after delta `number`: the delta over a base that has all until then."""
    later = delta.touched_at > number
    touched = delta.touched[later]
    live = delta.live.filter(pa.array(is_among(delta.live["id"].to_numpy(), touched)))
    return delta._replace(live=live, touched=touched, touched_at=delta.touched_at[later])


def is_among(ids: np.ndarray, ascending: np.ndarray) -> np.ndarray:
    """bool[n]: which ids are in the other, ascending, array."""
    if not len(ascending):
        return np.zeros(len(ids), bool)
    places = np.minimum(np.searchsorted(ascending, ids), len(ascending) - 1)
    return np.asarray(ascending[places] == ids)


def save_delta(delta: Delta, rejects: pa.Table, folder: Path) -> str:
    """Write a delta into a new folder of `folder`, whole or not at all; its name."""
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
        live = pq.read_table(folder / "subscriptions.parquet", partitioning=None).cast(SUBSCRIPTIONS_SCHEMA)
        touched = pq.read_table(folder / "touched.parquet", partitioning=None)
    except (OSError, ValueError) as error:
        raise CorruptFile(f"{folder} cannot be read: {error}") from None
    files = tuple(head["files"])
    return Delta(head["number"], live, touched["id"].to_numpy(), touched["at"].to_numpy(), files)


_OPEN: OrderedDict[str, tuple[list[Index], np.ndarray]] = OrderedDict()


def open_delta(path: str, dialect: Dialect, weights: Callable[[], Weights]) -> tuple[list[Index], np.ndarray]:
    """(the indexes over the inserted, one for each kind; the ids touched), kept by the process: a delta's folder never
    changes. `weights` are those of the base, and are only asked for where something is ranked.
    """
    if path not in _OPEN:
        delta = load_delta(path)
        _OPEN[path] = (_indexes(delta.live, dialect, weights), delta.touched)
        while len(_OPEN) > _MOST_OPEN:
            _OPEN.popitem(last=False)
    return _OPEN[path]


def _indexes(live: pa.Table, dialect: Dialect, weights: Callable[[], Weights]) -> list[Index]:
    from nearcast.engine.index import build_index

    plain, ranked = unranked_rows(live), ranked_rows(live)
    space = dialect.space.bounds if dialect.space.planar else None
    made = []
    if plain.num_rows:
        made.append(build_index(plain, DELTA_METHOD, space=space, analyser=dialect.analyser))
    if ranked.num_rows:
        known = weights().of_ranked(ranked)
        made.append(build_index(ranked, BEST_RANK_METHOD, known, space, analyser=dialect.analyser))
    return made

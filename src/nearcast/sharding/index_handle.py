"""One version of a saved index, sharded or not, by its path: what a driver holds and what its workers open.

A handle is small and names the version by its generation. Workers keep opened indexes by path and generation, so an
index that was replaced at the same path is never mixed up with the older one.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from pathlib import Path
from typing import Any, NamedTuple

from nearcast.arrays.bundle import MANIFEST, read_manifest
from nearcast.engine.index import Index, open_index
from nearcast.errors import InvalidInput
from nearcast.geo.space import Space
from nearcast.sharding.normalise import SERVED_KINDS
from nearcast.sharding.sharded_index import ShardedIndex, open_sharded, shard_index
from nearcast.storage.index_folder import INDEX_FORMAT, local_index
from nearcast.storage.location import locate
from nearcast.tables import Dialect
from nearcast.text.analyser import Analyser

_MOST_OPENED = 8  # indexes without shards that a worker keeps open


class IndexHandle(NamedTuple):
    """One version of an index to match against. Small: it travels to workers with each task."""

    path: str
    generation: str  # another one after each replacement
    n_shards: int
    is_scored: bool  # whether matches have a score
    nbytes: int
    space: dict[str, Any]
    analyser: dict[str, Any]
    sharded: ShardedIndex | None = None

    @property
    def dialect(self) -> Dialect:
        """How messages for this index are read."""
        return Dialect(Analyser.from_header(self.analyser), Space.from_header(self.space), "skip")

    def open(self) -> Index:
        """The whole index, where it has one shard or none; opened once per process."""
        return _opened_index(self.path, self.generation) if self.sharded is None else shard_index(self.sharded, 0)


def open_handle(path: str | os.PathLike[str]) -> IndexHandle:
    """The version that is current at a path or URL: what `Index.save` or `nearcast pipeline build` wrote."""
    place = locate(path)
    at = place.path if place.is_local else str(path)
    if place.child(MANIFEST).is_file():
        return _handle_of_index(at)
    if place.child("CURRENT").is_file():
        return _handle_of_shards(open_sharded(at))
    if not place.is_folder():
        raise InvalidInput(f"{place.shown} does not exist; save an index there, or name a path that this process reads")
    raise InvalidInput(f"{place.shown} is not a saved index: it has neither {MANIFEST} nor CURRENT")


def _handle_of_index(path: str) -> IndexHandle:
    saved = local_index(path)
    manifest = read_manifest(Path(saved.folder), INDEX_FORMAT)
    header = manifest["header"]
    others = sorted(header.keys() - {"vocabulary", "analyser", *SERVED_KINDS})
    if others:
        kinds = ", ".join(others)
        raise InvalidInput(f"{path} has subscriptions of kind {kinds}; Spark serves {' and '.join(SERVED_KINDS)}")
    n_bytes = sum(int(entry["bytes"]) for entry in manifest["arrays"].values())
    space = header["match"]["space"]
    is_scored = _opened_index(path, saved.generation).is_scored
    return IndexHandle(path, saved.generation, 1, is_scored, n_bytes, space, header["analyser"])


def _handle_of_shards(sharded: ShardedIndex) -> IndexHandle:
    manifest, version = sharded.manifest, os.path.basename(sharded.path)
    is_scored, numbers = bool(sharded.n_ranked), (sharded.n_shards, sharded.nbytes)
    header = (manifest["space"], manifest["analyser"])
    return IndexHandle(sharded.path, version, numbers[0], is_scored, numbers[1], *header, sharded)


_OPENED: OrderedDict[tuple[str, str], Index] = OrderedDict()


def _opened_index(path: str, generation: str) -> Index:
    """The index of this generation. Raises if another one is at the path now, whatever this process has opened."""
    saved = local_index(path)
    if saved.generation != generation:
        raise InvalidInput(f"the index at {path} was replaced since it was opened; open it again")
    key = (path, generation)
    if key not in _OPENED:
        for known in [each for each in _OPENED if each[0] == path]:
            del _OPENED[known]
        _OPENED[key] = open_index(saved.folder, verify=False)
        while len(_OPENED) > _MOST_OPENED:
            _OPENED.popitem(last=False)
    _OPENED.move_to_end(key)
    return _OPENED[key]

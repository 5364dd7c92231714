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
from nearcast.storage import INDEX_FORMAT
from nearcast.tables import Dialect
from nearcast.text.analyser import Analyser

_MOST_OPENED = 8  # indexes without shards that a worker keeps open


class IndexHandle(NamedTuple):
    """An index to match against. Small: it travels to workers with each task."""

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
    """The version that is current at `path`: what `Index.save` or `nearcast pipeline build` wrote."""
    root = Path(path)
    if (root / MANIFEST).is_file():
        return _handle_of_index(root)
    if (root / "CURRENT").is_file():
        return _handle_of_shards(root)
    if not root.exists():
        raise InvalidInput(f"{root} does not exist; save an index there, or name a path that this process can read")
    raise InvalidInput(f"{root} is not a saved index: it has neither {MANIFEST} nor CURRENT")


def _handle_of_index(root: Path) -> IndexHandle:
    manifest = read_manifest(root, INDEX_FORMAT)
    path, generation = os.path.abspath(root), manifest["generation"]
    header = manifest["header"]
    others = sorted(header.keys() - {"vocabulary", "analyser", *SERVED_KINDS})
    if others:
        raise InvalidInput(
            f"{root} has subscriptions of kind {', '.join(others)}; Spark serves {', '.join(SERVED_KINDS)}"
        )
    n_bytes = sum(int(entry["bytes"]) for entry in manifest["arrays"].values())
    space = header["match"]["space"]
    is_scored = _opened_index(path, generation).is_scored
    return IndexHandle(path, generation, 1, is_scored, n_bytes, space, header["analyser"])


def _handle_of_shards(root: Path) -> IndexHandle:
    sharded = open_sharded(root)
    manifest, path = sharded.manifest, os.path.abspath(sharded.path)
    return IndexHandle(
        path,
        os.path.basename(path),
        sharded.n_shards,
        bool(sharded.n_ranked),
        sharded.nbytes,
        manifest["space"],
        manifest["analyser"],
        sharded._replace(path=path),
    )


_OPENED: OrderedDict[tuple[str, str], Index] = OrderedDict()


def _opened_index(path: str, generation: str) -> Index:
    """The index of this generation. Raises if another one is at the path now, whatever this process has opened."""
    now = read_manifest(Path(path), INDEX_FORMAT)["generation"]
    if now != generation:
        raise InvalidInput(f"the index at {path} was replaced since it was opened; open it again")
    key = (path, generation)
    if key not in _OPENED:
        for known in [each for each in _OPENED if each[0] == path]:
            del _OPENED[known]
        _OPENED[key] = open_index(path, verify=False)
        while len(_OPENED) > _MOST_OPENED:
            _OPENED.popitem(last=False)
    _OPENED.move_to_end(key)
    return _OPENED[key]

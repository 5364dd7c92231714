"""One version of a saved index, sharded or not, by its path: what a driver holds and what its workers open.

A handle is small and names the version by its generation. Workers keep opened indexes by path and generation, so an
index that was replaced at the same path is never mixed up with the older one.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.arrays.manifest import MANIFEST
from nearcast.engine.index import Index
from nearcast.engine.saved.saved_index import open_index
from nearcast.errors import InvalidInput
from nearcast.geo.space import Space
from nearcast.model import KINDS
from nearcast.sharding.normalise import SERVED_KINDS
from nearcast.sharding.sharded_index import REJECTS, ShardedIndex, open_sharded, shard_index
from nearcast.storage.index_folder import saved_manifest
from nearcast.storage.location import Location, locate
from nearcast.tables import REJECTS_SCHEMA, Dialect
from nearcast.tables.ids import INT64, header_of
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
    id_type: str = "int64"  # of the subscriptions, as `tables.ids.header_of` says it
    attributes: tuple[str, ...] = ()  # the columns of messages that filters of subscriptions name

    @property
    def has_names(self) -> bool:
        """Whether the subscriptions' ids are no numbers. In a DataFrame they are strings, since Spark has no UUIDs."""
        return self.id_type != "int64"

    @property
    def dialect(self) -> Dialect:
        """How messages for this index are read."""
        return Dialect(Analyser.from_header(self.analyser), Space.from_header(self.space), "skip")

    def open(self) -> Index:
        """The whole index, where it has one shard or none; opened once per process."""
        return _opened_index(self.path, self.generation) if self.sharded is None else shard_index(self.sharded, 0)

    def rejects(self) -> pa.Table:
        """The subscriptions that the build of these shards rejected: row, column, reason and the row itself."""
        if self.sharded is None or not int(self.sharded.manifest["rejected"]):
            return REJECTS_SCHEMA.empty_table()
        return pq.read_table(pa.BufferReader(locate(self.sharded.part_path(REJECTS)).read()))


def open_handle(path: str | os.PathLike[str], version: str | None = None) -> IndexHandle:
    """The index that is current at `path`, as `Index.save` or a build of shards wrote it, or a version of shards."""
    root = locate(path)
    if version is not None:
        return _handle_of_shards(open_sharded(root.url, version))
    names = root.names() if root.is_folder() else []
    if MANIFEST in names:
        return _handle_of_index(root)
    if "CURRENT" in names:
        return _handle_of_shards(open_sharded(root.url))
    if not names:
        raise InvalidInput(
            f"{root.shown} does not exist; save an index there, or name a path that this process can read"
        )
    raise InvalidInput(f"{root.shown} is not a saved index: it has neither {MANIFEST} nor CURRENT")


def _handle_of_index(root: Location) -> IndexHandle:
    manifest = saved_manifest(root.url)
    path, generation = root.url, manifest["generation"]
    header = manifest["header"]
    others = sorted((header.keys() & KINDS.keys()) - {*SERVED_KINDS})
    if others:
        raise InvalidInput(
            f"{root.shown} has subscriptions of kind {', '.join(others)}; Spark serves {', '.join(SERVED_KINDS)}"
        )
    n_bytes = sum(int(entry["bytes"]) for entry in manifest["arrays"].values())
    space = header["match"]["space"]
    index = _opened_index(path, generation)
    names, id_type = index.vocabulary.attributes, header_of(index.names.type or INT64) or "int64"
    return IndexHandle(path, generation, 1, index.is_scored, n_bytes, space, header["analyser"], None, id_type, names)


def _handle_of_shards(sharded: ShardedIndex) -> IndexHandle:
    manifest, path = sharded.manifest, sharded.path
    return IndexHandle(
        path,
        locate(path).name,
        sharded.n_shards,
        bool(sharded.n_ranked),
        sharded.nbytes,
        manifest["space"],
        manifest["analyser"],
        sharded,
        header_of(sharded.id_type) or "int64",
        sharded.attributes,
    )


_OPENED: OrderedDict[tuple[str, str], Index] = OrderedDict()


def _opened_index(path: str, generation: str) -> Index:
    """The index of this generation. Raises if another one is at the path now, whatever this process has opened."""
    place, key = locate(path), (path, generation)
    if place.is_local or key not in _OPENED:  # a store takes 30 ms to answer: what is open there is not asked for again
        if saved_manifest(path)["generation"] != generation:
            raise InvalidInput(f"the index at {place.shown} was replaced since it was opened; open it again")
    if key not in _OPENED:
        for known in [each for each in _OPENED if each[0] == path]:
            del _OPENED[known]
        _OPENED[key] = open_index(path, verify=False)
        while len(_OPENED) > _MOST_OPENED:
            _OPENED.popitem(last=False)
    _OPENED.move_to_end(key)
    return _OPENED[key]

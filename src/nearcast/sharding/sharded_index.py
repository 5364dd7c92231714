"""A sharded index on disk: a folder of versions, one of which is current.

INDEX/CURRENT                      the name of the current version; replaced in one step
INDEX/versions/<name>/manifest.json
INDEX/versions/<name>/router/      which shards store a subscription, which shards a message visits
INDEX/versions/<name>/weights/     token weights for kind `rank`, in all shards and for later changes
INDEX/versions/<name>/shards/<k>/  an ordinary index, and which of its subscriptions other shards store too

INDEX is a folder on any file system. On local disk a version is built under another name, and so are its shards. In an
object store, which renames nothing, they have their names from the start; the manifest of the version says which folder
holds which shard, and only CURRENT makes the version visible.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import uuid
from collections.abc import Callable
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from nearcast.engine.index import Index
from nearcast.engine.saved.saved_index import open_index
from nearcast.errors import CorruptFile, ForeignVersion, InvalidInput, StorageError
from nearcast.sharding.routing.replicas import Replicas, open_replicas
from nearcast.sharding.routing.router import Router
from nearcast.sharding.weights import Weights
from nearcast.storage.leftovers import abandoned_below, remove_quietly
from nearcast.storage.location import Location, locate
from nearcast.tables.ids import INT64, IdType, of_header
from nearcast.tables.matches import matches_schema

T = TypeVar("T")
FORMAT = ["nearcast-shards", 3]
PLANNED_ROUTER = "planned-router"
REJECTS = "rejects.parquet"
"""In a version's folder: the rows that the build rejected, if there are any."""

KEPT_HOURS = 24.0
"""How long a version stays after it was replaced: handles and running queries that name it go on meanwhile."""

_VERSION = re.compile(r"v-\d+-\w+")
_MANIFEST = "manifest.json"
_HOUR_NS = 3_600_000_000_000


class ShardedIndex(NamedTuple):
    """One version of the index: its folder and its manifest. Small: it travels to workers with each task."""

    path: str  # of the version's folder, or its URL
    manifest: dict[str, Any]

    @property
    def n_shards(self) -> int:
        return int(self.manifest["n_shards"])

    @property
    def n_ranked(self) -> int:
        """The number of subscriptions of kind `rank`. If there are any, matches have scores."""
        return int(self.manifest["ranked"])

    @property
    def attributes(self) -> tuple[str, ...]:
        """The columns of messages that filters of subscriptions name."""
        return tuple(self.manifest.get("attributes", ()))

    @property
    def id_type(self) -> IdType:
        """The type of the subscriptions' ids."""
        return of_header(self.manifest.get("id_type", "int64")) or INT64

    def matches_schema(self, messages: pa.DataType = INT64.arrow) -> pa.Schema:
        """The schema of the matches of messages with ids of this type."""
        return matches_schema(messages, self.id_type.arrow, bool(self.n_ranked))

    @property
    def nbytes(self) -> int:
        """Bytes of all shards on disk: what a worker maps that opens every shard."""
        return sum(int(shard["bytes"]) for shard in self.manifest["shards"])

    def shard_path(self, shard: int, part: str = "index") -> str:
        folder = self.manifest["shards"][shard].get("folder", f"{shard:05d}")
        return self.part_path("shards", folder, part)

    def part_path(self, *names: str) -> str:
        return locate(self.path).child(*names).url


def open_sharded(path: str | os.PathLike[str], version: str | None = None) -> ShardedIndex:
    """The current version of a sharded index, or a named one."""
    root = locate(path)
    if version is None:
        try:
            version = root.child("CURRENT").read().decode().strip()
        except (FileNotFoundError, NotADirectoryError):
            made_by = "`nearcast pipeline build`"
            raise InvalidInput(f"{root.shown} is not an index made by {made_by}: it has no file CURRENT") from None
    folder = root.child("versions", version)
    try:
        manifest = json.loads(folder.child(_MANIFEST).read())
    except StorageError:
        raise
    except (OSError, ValueError) as error:
        raise CorruptFile(f"{folder.shown}: its manifest cannot be read: {error}") from None
    if manifest.get("format") != FORMAT:
        raise ForeignVersion(
            f"{folder.shown} has format {manifest.get('format')}; this version reads {FORMAT}: build it again"
        )
    return ShardedIndex(folder.url, manifest)


def new_version(path: str | os.PathLike[str]) -> Location:
    """An empty folder for a version, invisible before `publish`. Folders of killed builds are removed on local disk."""
    versions, unique = locate(path).child("versions"), uuid.uuid4().hex[:12]
    if not versions.is_local:
        return versions.child(_next_name(versions, unique))
    for left in Path(versions.path).glob("unfinished-*"):
        shutil.rmtree(left, ignore_errors=True)
    folder = versions.child(f"unfinished-{unique}")
    (Path(folder.path) / "shards").mkdir(parents=True)
    return folder


def publish(path: str | os.PathLike[str], folder: Location, manifest: dict[str, Any]) -> ShardedIndex:
    """Name a finished version and make it current. A reader sees the old version or the new one, never a part."""
    root, name = locate(path), folder.name
    folder.child(_MANIFEST).write(json.dumps({"format": FORMAT, **manifest}, indent=1).encode())
    if folder.is_local:
        name = _next_name(root.child("versions"), name.split("-")[1])
        os.rename(folder.path, root.child("versions", name).path)
    _make_current(root, name)
    return open_sharded(root.url)


def _make_current(root: Location, name: str) -> None:
    root.child("CURRENT").write(name.encode())


def _next_name(versions: Location, unique: str) -> str:
    numbers = [int(name.split("-")[1]) for name in versions.names() if _VERSION.fullmatch(name)]
    return f"v-{max(numbers, default=0) + 1:06d}-{unique}"


def forget_old(path: str | os.PathLike[str], hours: float = KEPT_HOURS) -> None:
    """Remove the versions that were replaced so long ago, and in a store what killed builds left.

    All times are the file system's, so the clock of this host does not matter.
    """
    root = locate(path)
    versions, current = root.child("versions"), root.child("CURRENT").read().decode().strip()
    entries = {name: versions.child(name, _MANIFEST).entry() for name in versions.names() if _VERSION.fullmatch(name)}
    made = {name: entry.time_ns for name, entry in entries.items() if entry is not None}
    in_order = sorted(made, key=lambda name: made[name])
    for name, successor in pairwise(in_order):
        if name != current and made[in_order[-1]] - made[successor] >= hours * _HOUR_NS:
            remove_quietly(versions.child(name))
    if not root.is_local:
        for name in {*abandoned_below(versions, "v-")} - {*made}:
            remove_quietly(versions.child(name))


# What workers open. A worker opens it once; those of one machine share its pages. No verification: the build checked
# indexes, routers and weights, and each worker would read every byte again.


def shard_index(sharded: ShardedIndex, shard: int) -> Index:
    """A shard's index."""
    return _opened(_open_index, sharded, sharded.shard_path(shard))


def shard_replicas(sharded: ShardedIndex, shard: int) -> Replicas:
    """Which of a shard's subscriptions other shards store too."""
    return _opened(_open_replicas, sharded, sharded.shard_path(shard, "copies"))


def shard_router(sharded: ShardedIndex) -> Router:
    return _opened(_open_router, sharded, sharded.part_path("router"))


def planned_router(folder: str) -> Router:
    """The router of an unfinished version, which lacks the keys. It has another name than the finished one: workers
    keep what they opened by its path.
    """
    return _open_router(locate(folder).child(PLANNED_ROUTER).url)


def index_weights(sharded: ShardedIndex) -> Weights:
    """The version's token weights."""
    return _opened(_open_weights, sharded, sharded.part_path("weights"))


def _opened(opens: Callable[[str], T], sharded: ShardedIndex, path: str) -> T:
    """What `opens` returns. Says so in one line if the version was removed since the handle was made."""
    try:
        return opens(path)
    except FileNotFoundError:
        version = locate(sharded.path)
        if version.is_folder():
            raise
        raise InvalidInput(f"{version.shown} was replaced and is removed by now; open the index again") from None


_open_index = lru_cache(256)(partial(open_index, verify=False))
_open_replicas = lru_cache(256)(open_replicas)
_open_router = lru_cache(8)(partial(Router.open, verify=False))
_open_weights = lru_cache(8)(partial(Weights.open, verify=False))

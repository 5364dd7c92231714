"""A sharded index on disk: a folder of versions, one of which is current.

INDEX/CURRENT                      the name of the current version; replaced in one step
INDEX/versions/<name>/manifest.json
INDEX/versions/<name>/router/      which shards store a subscription, which shards a message visits
INDEX/versions/<name>/weights/     token weights for kind `rank`, in all shards and for later changes
INDEX/versions/<name>/shards/<k>/  an ordinary index, and which of its subscriptions other shards store too
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from nearcast.arrays.bundle import write_whole
from nearcast.engine.index import Index, open_index
from nearcast.errors import CorruptFile, ForeignVersion, InvalidInput
from nearcast.sharding.routing.replicas import Replicas, open_replicas
from nearcast.sharding.routing.router import Router
from nearcast.sharding.weights import Weights
from nearcast.tables import MATCHES_SCHEMA, RANKED_SCHEMA

FORMAT = ["nearcast-shards", 3]


class ShardedIndex(NamedTuple):
    """One version of the index: its folder and its manifest. Small: it travels to workers with each task."""

    path: str  # of the version's folder
    manifest: dict[str, Any]

    @property
    def n_shards(self) -> int:
        return int(self.manifest["n_shards"])

    @property
    def n_ranked(self) -> int:
        """The number of subscriptions of kind `rank`. If there are any, matches have scores."""
        return int(self.manifest["ranked"])

    @property
    def matches_schema(self) -> pa.Schema:
        return RANKED_SCHEMA if self.n_ranked else MATCHES_SCHEMA

    @property
    def nbytes(self) -> int:
        """Bytes of all shards on disk: what a worker maps that opens every shard."""
        return sum(int(shard["bytes"]) for shard in self.manifest["shards"])

    def shard_path(self, shard: int, part: str = "index") -> str:
        return os.path.join(self.path, "shards", f"{shard:05d}", part)


def open_sharded(path: str | os.PathLike[str], version: str | None = None) -> ShardedIndex:
    """The current version of a sharded index, or a named one."""
    root = Path(path)
    current = root / "CURRENT"
    if version is None:
        if not current.is_file():
            raise InvalidInput(f"{root} is not an index made by `nearcast pipeline build`: it has no file CURRENT")
        version = current.read_text(encoding="utf-8").strip()
    folder = root / "versions" / version
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CorruptFile(f"{folder}: its manifest cannot be read: {error}") from None
    if manifest.get("format") != FORMAT:
        raise ForeignVersion(
            f"{folder} has format {manifest.get('format')}; this version reads {FORMAT}: build it again"
        )
    return ShardedIndex(str(folder), manifest)


def new_version(path: str | os.PathLike[str]) -> Path:
    """An empty folder for a version, invisible before `publish`. Folders of killed builds are removed."""
    for left in (Path(path) / "versions").glob("unfinished-*"):
        shutil.rmtree(left, ignore_errors=True)
    folder = Path(path) / "versions" / f"unfinished-{uuid.uuid4().hex[:12]}"
    (folder / "shards").mkdir(parents=True)
    return folder


def publish(path: str | os.PathLike[str], folder: Path, manifest: dict[str, Any]) -> ShardedIndex:
    """Name a finished version and make it current. A reader sees the old version or the new one, never a part."""
    root = Path(path)
    write_whole(folder / "manifest.json", json.dumps({"format": FORMAT, **manifest}, indent=1).encode())
    numbers = [int(each.name.split("-")[1]) for each in (root / "versions").glob("v-*-*")]
    name = f"v-{max(numbers, default=0) + 1:06d}-{folder.name.split('-')[1]}"
    folder.rename(root / "versions" / name)
    write_whole(root / "CURRENT", name.encode())
    return open_sharded(root)


def forget_old(path: str | os.PathLike[str], keep: int = 2) -> None:
    """Remove all but the newest versions, and the folders of failed builds."""
    versions = Path(path) / "versions"
    finished = sorted(versions.glob("v-*-*"))
    for folder in [*finished[:-keep], *versions.glob("unfinished-*")]:
        shutil.rmtree(folder, ignore_errors=True)


# What workers open. A worker opens it once; those of one machine share its pages. No verification: the build checked
# indexes, routers and weights, and each worker would read every byte again.


def shard_index(sharded: ShardedIndex, shard: int) -> Index:
    """A shard's index."""
    return _open_index(sharded.shard_path(shard))


def shard_replicas(sharded: ShardedIndex, shard: int) -> Replicas:
    """Which of a shard's subscriptions other shards store too."""
    return _open_replicas(sharded.shard_path(shard, "copies"))


def shard_router(sharded: ShardedIndex) -> Router:
    return _open_router(os.path.join(sharded.path, "router"))


def index_weights(sharded: ShardedIndex) -> Weights:
    """The version's token weights."""
    return _open_weights(os.path.join(sharded.path, "weights"))


_open_index = lru_cache(256)(partial(open_index, verify=False))
_open_replicas = lru_cache(256)(open_replicas)
_open_router = lru_cache(8)(partial(Router.open, verify=False))
_open_weights = lru_cache(8)(partial(Weights.open, verify=False))

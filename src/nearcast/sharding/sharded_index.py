"""An index in shards on disk: versions of a folder, one of them current, each with a manifest, a router and shards.

INDEX/CURRENT                      the name of the current version; replaced in one step
INDEX/versions/<name>/manifest.json
INDEX/versions/<name>/router/      which shards a message, or a subscription, concerns
INDEX/versions/<name>/weights/     what tokens weigh for kind `rank`, in all shards and for what comes later
INDEX/versions/<name>/shards/<k>/  an index of the library each, and which of its subscriptions others hold too
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pyarrow as pa

from nearcast.arrays.bundle import write_whole
from nearcast.errors import CorruptFile, ForeignVersion, InvalidInput
from nearcast.sharding.routing.replicas import Replicas, open_replicas
from nearcast.tables import MATCHES_SCHEMA, RANKED_SCHEMA

if TYPE_CHECKING:
    from nearcast.engine.index import Index
    from nearcast.sharding.routing.router import Router
    from nearcast.sharding.weights import Weights

FORMAT = ["nearcast-shards", 2]
_MOST_OPEN = 256  # folders that one worker keeps mapped; two a shard


class ShardedIndex(NamedTuple):
    """One version, as its manifest tells it. Small: it travels to workers with each task."""

    path: str  # of the version's folder
    manifest: dict[str, Any]

    @property
    def n_shards(self) -> int:
        return int(self.manifest["n_shards"])

    @property
    def router_path(self) -> str:
        return os.path.join(self.path, "router")

    @property
    def weights_path(self) -> str:
        return os.path.join(self.path, "weights")

    @property
    def n_ranked(self) -> int:
        """Subscriptions of kind `rank`: where there are any, matches have scores."""
        return int(self.manifest["ranked"])

    @property
    def matches_schema(self) -> pa.Schema:
        return RANKED_SCHEMA if self.n_ranked else MATCHES_SCHEMA

    @property
    def nbytes(self) -> int:
        """Of all shards on disk: what a worker that opens them all maps."""
        return sum(int(shard["bytes"]) for shard in self.manifest["shards"])

    def shard_folder(self, shard: int) -> str:
        return os.path.join(self.path, "shards", f"{shard:05d}")

    def shard_path(self, shard: int) -> str:
        """Of the library's index."""
        return os.path.join(self.shard_folder(shard), "index")

    def replicas_path(self, shard: int) -> str:
        return os.path.join(self.shard_folder(shard), "copies")


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
        raise ForeignVersion(f"{folder} has format {manifest.get('format')}; this version reads {FORMAT}")
    return ShardedIndex(str(folder), manifest)


def new_version(path: str | os.PathLike[str]) -> Path:
    """An empty folder for a version that nobody sees before `publish`. What a killed build left there is removed."""
    for left in (Path(path) / "versions").glob("unfinished-*"):
        shutil.rmtree(left, ignore_errors=True)
    folder = Path(path) / "versions" / f"unfinished-{uuid.uuid4().hex[:12]}"
    (folder / "shards").mkdir(parents=True)
    return folder


def publish(path: str | os.PathLike[str], folder: Path, manifest: dict[str, Any]) -> ShardedIndex:
    """Give a finished version its name and make it current. A reader sees the old one or this one, never a part."""
    root = Path(path)
    write_whole(folder / "manifest.json", json.dumps({"format": FORMAT, **manifest}, indent=1).encode())
    numbers = [int(each.name.split("-")[1]) for each in (root / "versions").glob("v-*-*")]
    name = f"v-{max(numbers, default=0) + 1:06d}-{folder.name.split('-')[1]}"
    folder.rename(root / "versions" / name)
    write_whole(root / "CURRENT", name.encode())
    return open_sharded(root)


def forget_old(path: str | os.PathLike[str], keep: int = 2) -> None:
    """Remove all but the newest versions, and what builds that failed left behind."""
    versions = Path(path) / "versions"
    finished = sorted(versions.glob("v-*-*"))
    for folder in [*finished[:-keep], *versions.glob("unfinished-*")]:
        shutil.rmtree(folder, ignore_errors=True)


_OPEN: OrderedDict[str, Any] = OrderedDict()


def shard_index(sharded: ShardedIndex, shard: int) -> Index:
    """A shard's index, mapped once a process: workers of one machine share its pages."""
    from nearcast.engine.index import open_index

    # Checked when it was built; each worker would read it all again.
    return cast("Index", _opened(sharded.shard_path(shard), lambda path: open_index(path, verify=False)))


def shard_replicas(sharded: ShardedIndex, shard: int) -> Replicas:
    """Which of a shard's subscriptions other shards hold too."""
    return cast("Replicas", _opened(sharded.replicas_path(shard), open_replicas))


def shard_router(sharded: ShardedIndex) -> Router:
    """The version's router, mapped once a process."""
    from nearcast.sharding.routing.router import Router

    return cast("Router", _opened(sharded.router_path, lambda path: Router.open(path, verify=False)))


def index_weights(sharded: ShardedIndex) -> Weights:
    """The version's weights, mapped once a process."""
    from nearcast.sharding.weights import Weights

    return cast("Weights", _opened(sharded.weights_path, lambda path: Weights.open(path, verify=False)))


def _opened(path: str, open_it: Callable[[str], Any]) -> Any:
    """What is at a path, opened once: the last ones used stay open."""
    if path not in _OPEN:
        _OPEN[path] = open_it(path)
    _OPEN.move_to_end(path)
    while len(_OPEN) > _MOST_OPEN:
        _OPEN.popitem(last=False)
    return _OPEN[path]

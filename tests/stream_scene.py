"""The folders of one stream, for tests: messages and changes go in, and what is delivered is checked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from nearcast.spark.batch.build import build_sharded
from nearcast.spark.streaming.stream import run_stream
from stream_world import World, delivered, put


class Scene:
    """Folders of one stream."""

    def __init__(self, spark: Any, root: Path, world: World, shards: int = 1) -> None:
        self.spark, self.root, self.world = spark, root, world
        put(world.table(), root / "subscriptions")
        (root / "incoming").mkdir()
        (root / "changes").mkdir()
        build_sharded(spark, str(root / "subscriptions"), str(root / "index"), shards=shards)

    def path(self, name: str) -> str:
        return str(self.root / name)

    def run(self, **options: Any) -> dict[str, Any]:
        given: dict[str, Any] = {"changes": self.path("changes"), "once": True} | options
        paths = [self.path(name) for name in ("index", "incoming", "matches", "checkpoint")]
        return run_stream(self.spark, *paths, **given)

    def say(self, n: int, name: str | None = None) -> None:
        put(self.world.messages(n), self.root / "incoming", name)

    def change(self, n: int, name: str) -> None:
        put(self.world.change(n), self.root / "changes", name)

    def check(self) -> None:
        wanted = self.world.all_expected()
        assert wanted.num_rows > 0
        assert delivered(self.root / "matches").equals(wanted)

    def batches(self) -> list[int]:
        return sorted(int(path.name.partition("=")[2]) for path in (self.root / "matches").glob("batch=*"))

    def manifest(self, batch: int) -> Any:
        return json.loads((self.root / f"matches/batch={batch}/_manifest.json").read_bytes())

"""States of shards as files: a folder for each state, whose name Spark's own state records.

FOLDER/shard-<shard>/<lineage>-<number>-<attempt>/   the state after so many micro-batches
FOLDER/rejects/<lineage>-<shard>-<number>.parquet    bad and late rows of that micro-batch
FOLDER/start-<digest>/                               the first subscriptions of each shard, and weights

A task that is repeated after a crash begins with the same state, and writes another attempt: which of them counts is
what Spark commits. A lineage is a run of one checkpoint. States that no checkpoint can need any more are removed.
"""

from __future__ import annotations

import os
import shutil
import uuid
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.arrays.packed import pack_arrays, unpack_arrays
from nearcast.errors import CorruptFile, NotSaved
from nearcast.sharding.normalise import SOURCE_REJECTS_SCHEMA
from nearcast.storage.bundles import manifest_at, read_bundle, write_bundle
from nearcast.tables import write_table

FORMAT = ("nearcast-shard-state", 1)
_KEPT = 3
"""States of a shard that stay. Spark repeats at most the newest micro-batch; one more is for inspection."""


class SnapshotName(NamedTuple):
    """Which state of a shard this is."""

    lineage: str
    number: int  # micro-batches so far
    attempt: str

    @classmethod
    def first(cls) -> SnapshotName:
        return cls(uuid.uuid4().hex[:12], 0, "none")

    @classmethod
    def of(cls, text: str) -> SnapshotName:
        try:
            lineage, number, attempt = text.split("-")
            return cls(lineage, int(number), attempt)
        except ValueError:
            raise CorruptFile(f"{text!r} is no name of a state; begin again with a new checkpoint") from None

    def next(self) -> SnapshotName:
        return SnapshotName(self.lineage, self.number + 1, uuid.uuid4().hex[:8])

    def __str__(self) -> str:
        return f"{self.lineage}-{self.number:08d}-{self.attempt}"


class Snapshots:
    """The states of one shard."""

    def __init__(self, folder: str, shard: int) -> None:
        self._root, self._shard = Path(folder), shard
        self._folder = self._root / f"shard-{shard}"

    def write(self, name: SnapshotName, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        """Write a state, and remove those that no checkpoint can need."""
        packed, entries = pack_arrays(arrays)
        write_bundle(self._folder / str(name), FORMAT, {"state": packed}, {"arrays": entries, "header": header})
        for old in self._folder.glob(f"{name.lineage}-*"):
            if SnapshotName.of(old.name).number <= name.number - _KEPT:
                shutil.rmtree(old, ignore_errors=True)

    def read(self, name: SnapshotName) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        try:
            arrays, own = read_bundle(self._folder / str(name), FORMAT, verify=False)
        except NotSaved:
            place = self._folder / str(name)
            raise NotSaved(f"{place} is gone; restore it, or begin again with a new checkpoint") from None
        return unpack_arrays(arrays["state"], own["arrays"]), own["header"]

    def write_rejects(self, name: SnapshotName, rejects: pa.Table) -> None:
        """Write the rejects of a micro-batch; a repeated one replaces its file."""
        folder = self._root / "rejects"
        folder.mkdir(parents=True, exist_ok=True)
        write_table(rejects, folder / f"{name.lineage}-{self._shard}-{name.number:08d}.parquet")


def state_rejects(folder: str | os.PathLike[str]) -> pa.Table:
    """All rejects of the jobs of a folder: source (messages, moves or changes), row, column, reason, record.

    `row` is the position in the micro-batch as it was sorted.
    """
    files = sorted((Path(folder) / "rejects").glob("*.parquet"))
    tables = (pq.read_table(file, partitioning=None).cast(SOURCE_REJECTS_SCHEMA) for file in files)
    return pa.concat_tables([SOURCE_REJECTS_SCHEMA.empty_table(), *tables])


def state_sizes(folder: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """What each shard has after its newest micro-batch: shard, micro_batches, subscriptions, messages, waiting,
    late, rejected, state_bytes and snapshot_bytes.
    """
    found = []
    for own in Path(folder).glob("shard-*"):
        states = sorted(own.iterdir(), key=lambda state: (state.stat().st_mtime_ns, state.name))
        if not states:
            continue
        header = manifest_at(states[-1], FORMAT)["header"]["header"]
        sizes = sum(file.stat().st_size for state in states for file in state.rglob("*") if file.is_file())
        number = {"shard": int(own.name.partition("-")[2]), "micro_batches": SnapshotName.of(states[-1].name).number}
        found.append({**number, **header["report"], "snapshot_bytes": sizes})
    return sorted(found, key=lambda report: report["shard"])

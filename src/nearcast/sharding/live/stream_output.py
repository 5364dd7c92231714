"""The table that a stream writes: one folder per micro-batch, which appears complete or not at all.

OUT/_stream.json                     the id of the stream that writes here; OUT/_lock is locked while it runs
OUT/batch=<id>/part-*.parquet        matches with scores (null for kind `match`), sorted within each row group
OUT/batch=<id>/_rejects-*.parquet    rejected messages and change rows, with reasons
OUT/batch=<id>/_manifest.json        counts, files, inputs, and what the batch was matched against
OUT/_staging/                        files of tasks that are not committed yet
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.arrays.bundle import sync_folder, write_whole
from nearcast.errors import InvalidInput
from nearcast.sharding.live.checkpoint import BatchInputs
from nearcast.sharding.live.ownership import FolderLock, claim
from nearcast.sharding.normalise import SOURCE_REJECTS_SCHEMA
from nearcast.tables import write_table


class StreamOutput:
    """The committed batches of one stream, in the folder `out`, which is locked until `close`."""

    def __init__(self, out: str | os.PathLike[str], stream: str) -> None:
        self.root = Path(out)
        # Batch numbers begin at 0 in every checkpoint, so two streams must not write here.
        if claim(self.root / "_stream.json", stream, "is not empty and was not written by a stream") != stream:
            raise InvalidInput(f"{self.root} holds the matches of another checkpoint; name a new folder")
        self._lock = FolderLock(self.root, "output")
        shutil.rmtree(self.root / "_staging", ignore_errors=True)  # left by runs that crashed

    def close(self) -> None:
        self._lock.close()

    def newest(self) -> int | None:
        """The newest committed batch."""
        numbers = (path.parent.name.partition("=")[2] for path in self.root.glob("batch=*/_manifest.json"))
        return max((int(number) for number in numbers if number.isdigit()), default=None)

    def folder(self, batch: int) -> Path:
        return self.root / f"batch={batch}"

    def manifest(self, batch: int) -> dict[str, Any] | None:
        """The manifest of a committed batch, or None."""
        file = self.folder(batch) / "_manifest.json"
        return json.loads(file.read_bytes()) if file.exists() else None

    def stage(self) -> Path:
        """A new folder for the files of tasks."""
        folder = self.root / "_staging" / uuid.uuid4().hex
        folder.mkdir(parents=True)
        return folder

    def commit(
        self, inputs: BatchInputs, stage: Path, parts: Sequence[Any], change_rejects: Path | None, schema: pa.Schema
    ) -> dict[str, Any]:
        """Publish the files named in `parts`, and no others, in one step; return the manifest.

        Matches have `schema`.
        """
        whole = self.root / "_staging" / f"whole-{uuid.uuid4().hex}"
        whole.mkdir()
        names = [name for part in parts for name in (part["file"], part["rejects"]) if name is not None]
        for name in names:
            (stage / name).rename(whole / name)
        n_rejected = _copy_rejects(change_rejects, whole)
        if not any(part["file"] for part in parts):  # readers find the columns even if nothing matched
            write_table(schema.empty_table(), whole / "part-none.parquet")
        manifest = {
            "batch": inputs.batch,
            "messages": sum(part["messages"] for part in parts),
            "pairs": sum(part["rows"] for part in parts),
            "rejected": sum(part["rejected"] for part in parts),
            "changes": inputs.n_changes,
            "changes_rejected": n_rejected,
            "base": inputs.base,
            "delta": inputs.delta,
            "change_files": inputs.files,
            "files": sorted(names),
            "inputs": sorted(name for part in parts for name in part["inputs"]),
            "offsets": list(inputs.offsets),
        }
        write_whole(whole / "_manifest.json", json.dumps(manifest).encode(), is_private=False)
        try:
            whole.rename(self.folder(inputs.batch))
        except OSError as error:
            if self.manifest(inputs.batch) is None:
                raise
            raise InvalidInput(f"another stream wrote batch {inputs.batch} to {self.root}: {error.strerror}") from None
        sync_folder(self.root)
        shutil.rmtree(stage, ignore_errors=True)
        return manifest


def read_stream_rejects(out: str | os.PathLike[str]) -> pa.Table:
    """All rejects of a stream: source, row, column, reason, record."""
    files = sorted(Path(out).glob("batch=*/_rejects-*.parquet"))
    return pa.concat_tables(
        [
            SOURCE_REJECTS_SCHEMA.empty_table(),
            *(pq.read_table(file, partitioning=None).cast(SOURCE_REJECTS_SCHEMA) for file in files),
        ]
    )


def _copy_rejects(file: Path | None, folder: Path) -> int:
    if file is None:
        return 0
    rejects = pq.read_table(file, partitioning=None)
    if rejects.num_rows:
        write_table(rejects, folder / "_rejects-changes.parquet")
    return int(rejects.num_rows)

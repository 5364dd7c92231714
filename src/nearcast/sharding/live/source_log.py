"""What Spark's own checkpoint says: how far each micro-batch went in its sources.

CHECKPOINT/spark/offsets/<batch>      two lines of Spark's own, then the end of the batch in each source, as JSON
CHECKPOINT/spark/sources/<k>/<entry>  the files of source k, if it reads files: path and time of change, as JSON lines

Spark begins again at batch 0 if its log is gone, and leaves out files if its list of files is gone. Both would pass
over messages in silence, since the batches of these numbers are in the table already. Nor does Spark read a name twice.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nearcast.errors import DataLoss
from nearcast.storage.location import locate

_HEAD = 2  # lines before the offsets


class SourceLog:
    """The folder that Spark has within a stream's checkpoint."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def newest(self) -> int | None:
        """The newest batch that Spark has begun."""
        log = self._folder / "offsets"
        return max((int(file.name) for file in log.glob("[0-9]*") if file.name.isdigit()), default=None)

    def offsets(self, batch: int) -> list[str]:
        """Where a batch ends in each source; none if Spark has no record of it."""
        try:
            return (self._folder / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()[_HEAD:]
        except FileNotFoundError:
            return []

    def check(self, recorded: int | None, committed: int | None) -> None:
        """Refuse to go on if our newest record, our newest output and Spark's log cannot belong together."""
        newest = self.newest()
        if committed is not None and (recorded is None or recorded < committed):
            raise self._lost(f"the output has batch {committed}, but the checkpoint has no record of it")
        if recorded is not None and (newest is None or newest < recorded):
            raise self._lost(f"Spark's log ends before batch {recorded}, which was begun")
        if newest is not None and newest > (-1 if recorded is None else recorded) + 1:
            raise self._lost(f"Spark's log has batch {newest}, but the checkpoint has no record of the one before")
        if newest is not None and not (self._folder / "metadata").exists():
            raise self._lost("Spark's file `metadata`")
        for k, offset in enumerate([] if newest is None else self.offsets(newest)):
            entry = _file_entry(offset)
            names = [] if entry is None else [str(entry), f"{entry}.compact"]
            if names and not any((self._folder / "sources" / str(k) / name).exists() for name in names):
                raise self._lost(f"Spark's list of files that were read has no entry {entry}")

    def check_files(self) -> None:
        """Refuse to go on if files were overwritten."""
        found = self.overwritten()
        if found:
            more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
            remedy = "give new content a new name, or go on without it: --skip-lost-data, fail_on_data_loss=False"
            raise DataLoss(
                f"{found[0]}{more} was changed after Spark listed it, and Spark reads no name twice; {remedy}"
            )

    def overwritten(self) -> list[str]:
        """The files of the first source that have another time of change than Spark noted."""
        noted = {entry["path"]: entry["timestamp"] for entry in self._file_entries()}
        return [path for url, time in noted.items() if _milliseconds(path := locate(url).path) not in (None, time)]

    def _file_entries(self) -> Iterator[dict[str, Any]]:
        """What Spark noted of each file. A compacted log has all entries up to its own."""
        logs = {log.name: log for log in (self._folder / "sources" / "0").glob("[0-9]*")}
        first = max((int(name.partition(".")[0]) for name in logs if name.endswith(".compact")), default=-1)
        for name, log in logs.items():
            if name == f"{first}.compact" or (name.isdigit() and int(name) > first):
                lines = log.read_text(encoding="utf-8").splitlines()
                yield from (json.loads(line) for line in lines if line.startswith("{"))

    def check_repeat(self, batch: int, manifest: dict[str, Any]) -> None:
        """Refuse to take a batch for done whose number is in the output, but with other input."""
        there = manifest.get("offsets")  # outputs of earlier versions have none
        if there is not None and there != self.offsets(batch):
            raise self._lost(f"batch {batch} of the output was made from other input than the batch that is to come")

    def _lost(self, reason: str) -> DataLoss:
        remedy = "restore the whole checkpoint, or begin with a new checkpoint and a new output"
        return DataLoss(f"{self._folder.parent}: files of this checkpoint are missing or old: {reason}; {remedy}")


def _milliseconds(path: str) -> int | None:
    """The time of the last change, or None if there is no such file."""
    try:
        return os.stat(path).st_mtime_ns // 1_000_000
    except OSError:
        return None


def _file_entry(offset: str) -> int | None:
    """The entry of the list of files at which a batch ends, or None for sources that are not files."""
    try:
        entry = json.loads(offset)["logOffset"]
    except (ValueError, TypeError, KeyError):
        return None
    return entry if isinstance(entry, int) and entry >= 0 else None

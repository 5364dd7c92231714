"""How a stateful job starts: checks its options and its first subscriptions, and writes those of each shard."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from pathlib import Path

import pyarrow as pa

from nearcast.arrays.arrow import stream_bytes
from nearcast.arrays.files import make_folder, sync_folder
from nearcast.errors import InvalidInput
from nearcast.sharding.live.ownership import mounted_folder
from nearcast.sharding.stateful.definition import StatefulJob
from nearcast.sharding.stateful.owners import owners
from nearcast.tables import Subscriptions, write_table


def start_job(job: StatefulJob, read: Subscriptions, weights: pa.Table | None) -> StatefulJob:
    """The job with the folder of its first subscriptions, which shards without a state read. They are written unless
    the same ones are there.
    """
    assert read.table is not None
    table, folder = read.table.combine_chunks(), make_state_folder(job.folder)
    digest = hashlib.sha256(stream_bytes(table))
    digest.update(json.dumps([job.kind, job.n_shards, dict(job.options)], sort_keys=True).encode())
    start = folder / f"start-{digest.hexdigest()[:16]}"
    has_names = not pa.types.is_integer(table.schema.field("id").type)
    if not start.exists():
        _write_start(start, read, weights, job.n_shards)
    return job._replace(folder=str(folder), start=str(start), has_names=has_names)


def make_state_folder(state: str | os.PathLike[str]) -> Path:
    folder = mounted_folder(state, "state")
    if folder.is_file():
        raise InvalidInput(f"{folder} is a file; name a folder for the states of shards")
    make_folder(folder)
    return folder


def _write_start(start: Path, read: Subscriptions, weights: pa.Table | None, n_shards: int) -> None:
    assert read.table is not None
    unfinished = start.with_name(f"unfinished-{uuid.uuid4().hex}")
    unfinished.mkdir()
    own = owners(read.table["id"], n_shards)
    for shard in range(n_shards):
        write_table(read.table.filter(pa.array(own == shard)), unfinished / f"shard-{shard}.parquet")
    if weights is not None:
        write_table(weights, unfinished / "weights.parquet")
    write_table(read.rejects, unfinished / "rejects.parquet")
    sync_folder(unfinished)
    try:
        unfinished.rename(start)
    except OSError:  # another driver wrote the same
        shutil.rmtree(unfinished, ignore_errors=True)
        if not start.exists():
            raise

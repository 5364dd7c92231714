"""A task that tells how much of an index its worker has in memory, and how much of that is its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from nearcast.sharding.match_shards import match_all_shards
from nearcast.sharding.sharded_index import ShardedIndex, shard_index

SCHEMA = "process long, resident long, proportional long"


def tell_pages(
    sharded: ShardedIndex, messages: dict[str, list], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Run as a barrier stage: all workers have the index in use when each looks."""
    import os

    from pyspark import BarrierTaskContext

    list(batches)
    match_all_shards(sharded, pa.table(messages))
    for array in shard_index(sharded, 0).matcher.state()[0].values():
        array.sum()
    context = BarrierTaskContext.get()
    context.barrier()
    resident, proportional = mapped(sharded.path)
    context.barrier()
    yield pa.record_batch({"process": [os.getpid()], "resident": [resident], "proportional": [proportional]})


def mapped(folder: str) -> tuple[int, int]:
    """(resident, proportional) bytes of this process's maps of files below a folder."""
    sums = {"Rss": 0, "Pss": 0}
    is_ours = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        name, _, rest = line.partition(":")
        if "-" in name.split(" ")[0]:
            is_ours = folder in line
        elif is_ours and name in sums:
            sums[name] += 1024 * int(rest.split()[0])
    return sums["Rss"], sums["Pss"]

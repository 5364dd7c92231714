"""Ten minutes of service: 8 readers, one of whom saves and opens, and 2 writers. Memory stays flat."""

from __future__ import annotations

import gc
import os
import random
import time
from pathlib import Path

import pytest

import nearcast as nc
from concurrent_world import MESSAGES, N_IDS, World, Write, as_row

SECONDS = float(os.environ.get("NEARCAST_SOAK_SECONDS", "600"))
ROUND_SECONDS = 15.0
SETTLED_SECONDS = 60.0
MAY_GROW = 0.05, 40 << 20
"""Share and bytes that memory may grow by after the first minute: what the allocator keeps varies so much."""
TABLE = {
    "id": [message["id"] for message in MESSAGES],
    "tokens": [message["tokens"] for message in MESSAGES],
    "x": [message["box"][0] for message in MESSAGES],
    "y": [message["box"][1] for message in MESSAGES],
}


def world_over(index: nc.Index, folder: Path) -> World:
    """Readers and writers of an empty index."""

    def write(write: Write) -> None:
        rows = [as_row(each) for each in write.changed.values() if each is not None]
        if rows:
            index.insert(rows)
        else:
            index.remove(list(write.changed))

    def answers(of: nc.Index) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {position: [] for position in range(len(MESSAGES))}
        for row in of.match(TABLE).to_pylist():
            found[row["message"]].append(row["subscription"])
        return found

    def read_all(rng: random.Random) -> dict[int, list[int]]:
        return answers(index)

    def read_one(rng: random.Random) -> dict[int, list[int]]:
        at = rng.randrange(len(MESSAGES))
        x, y = MESSAGES[at]["box"][:2]
        return {at: index.match_one(MESSAGES[at]["tokens"], x, y).tolist()}

    def read_saved(rng: random.Random) -> dict[int, list[int]]:
        index.save(folder)
        return answers(nc.open_index(folder))

    return World(write, [read_all, read_all, read_all, read_one, read_one, read_one, read_one, read_saved])


def resident_bytes() -> int:
    """The memory of this process."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
@pytest.mark.parametrize("method", ["auto", "ap-tree"])
def test_ten_minutes_of_service(method: str, tmp_path: Path) -> None:
    index = nc.build_index({"id": [], "tokens": [], "x": [], "y": []}, method=method)
    begun, rounds, settled = time.monotonic(), 0, 0
    while time.monotonic() - begun < SECONDS:
        world = world_over(index, tmp_path / "saved")
        writes, reads = world.run(min(ROUND_SECONDS, SECONDS), seed=rounds)
        world.expect_prefixes()
        assert min(writes, reads) >= 50
        index.remove(list(range(N_IDS)))
        del world
        rounds += 1
        if not settled and time.monotonic() - begun > min(SETTLED_SECONDS, SECONDS / 2):
            settled = resident_bytes()
    share, extra = MAY_GROW
    assert resident_bytes() <= settled * (1 + share) + extra, f"{settled >> 20} MiB after a minute"

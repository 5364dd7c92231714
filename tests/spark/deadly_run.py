"""A program: batches on a cluster of two executors on this machine, in which processes are killed.

    deadly_run.py FOLDER LAYOUT:KIND:TIMES...

FOLDER holds `index` and `messages.parquet`; each batch writes to a folder named after its number. The last
batch may kill the driver itself, so the ids of its processes come from the session.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path

from nearcast.spark.batch import match
from nearcast.spark.runtime.session import open_session
from spark.deadly_tasks import Deaths, match_pieces, match_shards


def main() -> None:
    folder = Path(sys.argv[1])
    session = open_session("local-cluster[2,1,1024]", {"spark.executor.memory": "512m", "spark.task.maxFailures": 8})
    java = session.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    for number, wanted in enumerate(sys.argv[2:]):
        layout, kind, times = wanted.split(":")
        deaths = Deaths(str(folder / f"deaths-{number}"), kind, int(times), (java, os.getpid()))
        Path(deaths.folder).mkdir()
        match.match_pieces = partial(match_pieces, deaths)
        match.match_shards = partial(match_shards, deaths)
        match.match_batch(
            session,
            str(folder / "index"),
            str(folder / "messages.parquet"),
            str(folder / f"out-{number}"),
            layout=layout,
            rows_per_task=800,
        )
    session.stop()


if __name__ == "__main__":
    main()

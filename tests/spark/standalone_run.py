"""A driver on a standalone master: build and match with a shipped package; prints what the test asks. Run by it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import nearcast as nc
from nearcast.demo.demo_subscriptions import sample_messages, subscriptions_table
from nearcast.spark.batch.build import build_sharded
from nearcast.spark.batch.match import match_batch
from nearcast.spark.runtime.session import open_session


def main(master: str, folder: Path) -> None:
    messages = sample_messages().slice(0, 2_000)
    subscriptions = subscriptions_table(messages, 500)
    pq.write_table(messages, folder / "messages.parquet")
    pq.write_table(subscriptions, folder / "subscriptions.parquet")
    spark = open_session(master)

    def files(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import nearcast

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"file": [nearcast.__file__]})

    report = {"packages": [row.file for row in spark.range(4).mapInArrow(files, "file string").collect()]}
    paths = [str(folder / name) for name in ("subscriptions.parquet", "index", "messages.parquet")]
    build_sharded(spark, paths[0], paths[1], shards=4, messages=paths[2])
    wanted = nc.build_index(subscriptions, method="pyramid").match(messages)
    for layout in ("replicated", "sharded"):
        match_batch(spark, paths[1], paths[2], str(folder / layout), layout=layout)
        found = pq.read_table(folder / layout).sort_by([("message", "ascending"), ("subscription", "ascending")])
        report[layout] = [found.equals(wanted), wanted.num_rows]
    sys.stdout.write(json.dumps(report) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))

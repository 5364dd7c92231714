"""Ids that occur more than once over all parts: the first record of each stands, the others become rejects."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.ingest.ingest_part import REJECTED_SCHEMA, AtomicParquetFile, IngestJob, part_file
from nearcast.ingest.output_folder import spark_path
from nearcast.ingest.records import printable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def reject_duplicate_ids(session: SparkSession, job: IngestJob, paths: Sequence[str]) -> int:
    """How many accepted records became rejects. Only ids and places are shuffled, 40 bytes a record."""
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    def drop(late: pa.Table) -> pa.Table:
        return reject_rows(late, job, paths)

    in_order = Window.partitionBy("id").orderBy("part", "place")
    seen = session.read.parquet(spark_path(job.seen))
    late = seen.withColumn("nth", sql.row_number().over(in_order)).where("nth > 1 and row >= 0").drop("nth")
    dropped = late.groupBy("part").applyInArrow(drop, "part int, dropped long").collect()
    for told in dropped:
        os.unlink(part_file(job.accepted, told.part))
    return sum(told.dropped for told in dropped)


def reject_rows(late: pa.Table, job: IngestJob, paths: Sequence[str]) -> pa.Table:
    """Write a part's accepted records again without the late ones, and these as rejects. Both under other names than
    what is read, so that a task that runs again finds what the first one found.
    """
    part = late["part"][0].as_py()
    late = late.sort_by("row")
    rows = late["row"].to_numpy()
    file = pq.ParquetFile(part_file(job.accepted, part))
    first = 0
    with (
        AtomicParquetFile(part_file(job.accepted, part, "-first"), file.schema_arrow) as kept,
        AtomicParquetFile(part_file(job.rejects, part, "-late"), REJECTED_SCHEMA) as rejected,
    ):
        for batch in file.iter_batches():
            here = slice(*np.searchsorted(rows, [first, first + batch.num_rows]))
            is_kept = np.ones(batch.num_rows, bool)
            is_kept[rows[here] - first] = False
            table = pa.Table.from_batches([batch])
            kept.write(table.filter(pa.array(is_kept)))
            rejected.write(_rejects(late.slice(here.start, here.stop - here.start), table.filter(~is_kept), paths))
            first += batch.num_rows
    return pa.table({"part": pa.array([part], pa.int32()), "dropped": pa.array([len(rows)], pa.int64())})


def _rejects(late: pa.Table, records: pa.Table, paths: Sequence[str]) -> pa.Table:
    """In the library's own words. The record is the clean one: the raw one was let go when it was found good."""
    told = [printable(json.dumps(record, default=str, ensure_ascii=False)) for record in records.to_pylist()]
    reasons = [duplicate_id_reason(number) for number in late["id"].to_pylist()]
    sources = [paths[source] for source in late["source"].to_pylist()]
    return pa.table(
        [sources, late["position"].combine_chunks(), ["id"] * len(told), reasons, told], schema=REJECTED_SCHEMA
    )


def duplicate_id_reason(number: int) -> str:
    return f"id {number} is already in this table; ids must differ"

"""Ids that occur more than once over all parts of an ingest: the first record is kept, the others become rejects."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.ingest.ingest_part import REJECTED_SCHEMA, IngestJob, part_file
from nearcast.ingest.output_folder import AtomicParquetFile
from nearcast.ingest.records import printable_record
from nearcast.ingest.row_groups import duplicate_id_reason
from nearcast.spark.runtime.session import SparkSession, spark_path


def reject_duplicate_ids(session: SparkSession, job: IngestJob, paths: Sequence[str]) -> int:
    """Turn accepted records with duplicate ids into rejects; return how many. 40 bytes per record are shuffled."""
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    def reject(duplicates: pa.Table) -> pa.Table:
        return reject_rows(duplicates, job, paths)

    in_order = Window.partitionBy("id").orderBy("part", "place")
    seen = session.read.parquet(spark_path(job.seen))
    duplicates = seen.withColumn("nth", sql.row_number().over(in_order)).where("nth > 1 and row >= 0").drop("nth")
    reports = duplicates.groupBy("part").applyInArrow(reject, "part int, dropped long").collect()
    for report in reports:
        os.unlink(part_file(job.accepted, report.part))
    return sum(report.dropped for report in reports)


def reject_rows(duplicates: pa.Table, job: IngestJob, paths: Sequence[str]) -> pa.Table:
    """Write a part's accepted records again without the duplicates, and the duplicates as rejects. Both files have
    other names than the file that is read, so a task that runs again finds the same input.
    """
    part = duplicates["part"][0].as_py()
    duplicates = duplicates.sort_by("row")
    rows = duplicates["row"].to_numpy()
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
            found = duplicates.slice(here.start, here.stop - here.start)
            rejected.write(_rejects(found, table.filter(~is_kept), paths))
            first += batch.num_rows
    return pa.table({"part": pa.array([part], pa.int32()), "dropped": pa.array([len(rows)], pa.int64())})


def _rejects(duplicates: pa.Table, records: pa.Table, paths: Sequence[str]) -> pa.Table:
    """The reject shows the accepted record: the raw one is no longer known."""
    shown = [printable_record(record) for record in records.to_pylist()]
    reasons = [duplicate_id_reason(number) for number in duplicates["id"].to_pylist()]
    sources = [paths[source] for source in duplicates["source"].to_pylist()]
    positions = duplicates["position"].combine_chunks()
    return pa.table([sources, positions, ["id"] * len(shown), reasons, shown], schema=REJECTED_SCHEMA)

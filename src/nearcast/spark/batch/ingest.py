"""Raw files -> a clean table and a rejects table. Every record is in one of them; the counts are checked.

Workers read the raw files themselves, in parts. Only ids are shuffled, to find duplicates. The first record of an id in
the order of the files is kept, as in a single table.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.arrays.bundle import write_whole
from nearcast.errors import InvalidInput, NearcastError
from nearcast.geo.space import Space
from nearcast.ingest.csv_records import TextFormat
from nearcast.ingest.ingest_part import (
    IngestJob,
    PartCounts,
    column_names_of,
    ingest_part,
    part_file,
    reason_kind,
    reject_rows,
)
from nearcast.ingest.lines import Surveyed, cut_at_lines, survey
from nearcast.ingest.mapping import Kind, check_mapping, resolve_columns
from nearcast.ingest.output_folder import NewFolder, check_replaceable, mounted_path
from nearcast.ingest.row_groups import duplicate_id_reason, parquet_files
from nearcast.ingest.sources import Part, Source, Split, delimiter_of, find_sources, parts_of, ranges_of, wanted_size
from nearcast.ingest.validate import IngestRules, table_schema
from nearcast.spark.runtime.session import SparkSession, cores_of, spark_path
from nearcast.spark.runtime.tasks import map_on_spark
from nearcast.storage.location import locate
from nearcast.tables import Dialect
from nearcast.tables.ids import INT64, STRING, IdType
from nearcast.text.analyser import Analyser

COUNTS = "_counts.json"


@dataclass(frozen=True)
class IngestOptions:
    """How raw files are read. By default `format` and `delimiter` follow from the ending of a file. `header` names the
    columns of CSV files without a header line. `make_ids` numbers the records instead of reading ids: (number of the
    file << 40) + line. With `id_type` "string", ids are texts.
    """

    format: str | None = None
    delimiter: str | None = None
    encoding: str = "utf-8"
    header: tuple[str, ...] | None = None
    make_ids: bool = False
    id_type: str = "int64"  # or "string"
    analyser: Analyser | str | None = None
    space: Sequence[float] | None = None
    part_bytes: int = 1 << 26

    @property
    def text_format(self) -> TextFormat:
        return TextFormat(self.delimiter, self.encoding, self.header)


_DEFAULTS = IngestOptions()


def ingest(
    session: SparkSession,
    sources: Sequence[str],
    kind: Kind,
    mapping: Mapping[str, str],
    out: str,
    rejects: str,
    *,
    options: IngestOptions = _DEFAULTS,
) -> dict[str, Any]:
    """Fill the folders `out` and `rejects`, replacing their content, and return the counts, which are also in
    `out/_counts.json`: read = accepted + rejected, and the rejects by reason.
    """
    found, rules = check_ingest(sources, kind, mapping, out, rejects, options)
    with NewFolder(out) as clean, NewFolder(rejects) as bad, NewFolder(f"{os.path.abspath(out)}.seen") as seen:
        folders = (str(clean.path), str(bad.path), str(seen.path))
        job = IngestJob(rules, options.text_format, options.make_ids, *folders)
        parts = _cut_into_parts(session, found, options)
        summary = _summary(map_on_spark(session, partial(ingest_part, job=job), parts), found, rules)
        if not options.make_ids:
            _count_repeats(summary, _reject_duplicate_ids(session, job, [source.path for source in found]))
        _reconcile(summary, job)
        write_whole(clean.path / COUNTS, json.dumps(summary, indent=1, ensure_ascii=False).encode(), is_private=False)
        bad.publish()
        clean.publish()
    return summary


def check_ingest(
    sources: Sequence[str], kind: Kind, mapping: Mapping[str, str], out: str, rejects: str, options: IngestOptions
) -> tuple[list[Source], IngestRules]:
    """(the raw files, the rules): the arguments, checked without Spark."""
    _check_apart(out, rejects)
    for place in (out, rejects):
        check_replaceable(Path(mounted_path(place)))
    _check_encoding(options.encoding)
    dialect = Dialect(Analyser.of(options.analyser), Space.of(options.space), "skip", id_type=_id_type(options))
    found = find_sources(sources, options.format)
    there = column_names_of(found, options.text_format)
    check_mapping(mapping, there, is_json=any(source.format == "jsonl" for source in found))
    columns = resolve_columns(kind, mapping, there, options.make_ids)
    return found, IngestRules(columns, dialect)


def _id_type(options: IngestOptions) -> IdType:
    types = {kind.name: kind for kind in (INT64, STRING)}
    if options.id_type not in types:
        raise InvalidInput(f"ids of a table are 'int64' or 'string', not {options.id_type!r}")
    if options.make_ids and options.id_type != INT64.name:
        raise InvalidInput("ids that are made are whole numbers; leave out --make-ids or --id-type")
    return types[options.id_type]


def _check_apart(out: str, rejects: str) -> None:
    """Refuse folders within each other: each is replaced as a whole."""
    places = [Path(os.path.abspath(place)) for place in (out, rejects)]
    if places[0].is_relative_to(places[1]) or places[1].is_relative_to(places[0]):
        raise InvalidInput(f"{out} and {rejects}: neither folder may lie within the other")


def _check_encoding(encoding: str) -> None:
    """Refuse encodings in which a line end is not the byte of ASCII: lines are cut before they are decoded."""
    try:
        if "\n".encode(encoding) == b"\n":
            return
    except LookupError:
        raise InvalidInput(f"no encoding '{encoding}'") from None
    raise InvalidInput(f"files in {encoding} cannot be cut into lines; convert them to UTF-8")


def _cut_into_parts(session: SparkSession, sources: list[Source], options: IngestOptions) -> list[Part]:
    """Parts of about the same size. Tasks survey large plain files first."""
    size = wanted_size(sources, cores_of(session), options.part_bytes)
    ranges = [found for source in sources for found in ranges_of(source, size)]

    def look(found: Split) -> Surveyed:
        delimiter = delimiter_of(found.path, options.delimiter) if found.format == "csv" else None
        assert found.stop is not None
        return survey(found.path, found.start, found.stop, delimiter)

    return parts_of(sources, size, cut_at_lines(ranges, map_on_spark(session, look, ranges)))


def _summary(counts: list[PartCounts], found: list[Source], rules: IngestRules) -> dict[str, Any]:
    reasons: Counter[str] = Counter()
    for part in counts:
        reasons.update(part.by_reason)
    return {
        "kind": rules.columns.kind,
        "read": sum(part.read for part in counts),
        "accepted": sum(part.accepted for part in counts),
        "rejected": sum(part.rejected for part in counts),
        "by_reason": dict(reasons.most_common()),
        "files": len(found),
        "bytes": sum(source.size for source in found),
        "parts": len(counts),
        "mapping": {target: "+".join(names) for target, names in rules.columns.sources.items()},
        "columns": table_schema(rules.columns).names,
        "analyser": rules.dialect.analyser.header(),
        "space": rules.dialect.space.bounds if rules.dialect.space.planar else None,
    }


def _count_repeats(summary: dict[str, Any], n_repeated: int) -> None:
    if n_repeated:
        reasons = Counter(summary["by_reason"])
        reasons[reason_kind("id", duplicate_id_reason(0))] += n_repeated
        summary["by_reason"] = dict(reasons.most_common())
        summary["accepted"] -= n_repeated
        summary["rejected"] += n_repeated


def _reject_duplicate_ids(session: SparkSession, job: IngestJob, paths: Sequence[str]) -> int:
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


def _reconcile(summary: dict[str, Any], job: IngestJob) -> None:
    """Compare the counts of the readers with the numbers of rows in the footers of the files."""
    files = (parquet_files(folder) for folder in (job.accepted, job.rejects))
    accepted, rejected = (sum(pq.read_metadata(file.path).num_rows for file in found) for found in files)
    counted = (summary["read"], summary["accepted"], summary["rejected"])
    if counted != (accepted + rejected, accepted, rejected):
        raise NearcastError(
            f"the counts do not reconcile: {counted[0]} read, {counted[1]} accepted, {counted[2]} rejected by count, "
            f"{accepted} and {rejected} in the files; nothing was published"
        )


def read_counts(table: str) -> dict[str, Any] | None:
    """The counts of the ingest that wrote a table, or None if no ingest wrote it."""
    try:
        counts: dict[str, Any] = json.loads(locate(table).child(COUNTS).read())
    except (FileNotFoundError, NotADirectoryError):
        return None
    return counts

"""Builds a sharded index: plan the shards, send each subscription to its shards, build each shard in a task, publish.

Each task writes under a unique name and returns the name; the version consists of the folders that the driver received.
A task that runs twice, or dies half way, therefore leaves nothing that counts.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.errors import InvalidInput
from nearcast.geo.space import Space
from nearcast.ingest.broker_values import as_arrow_stream
from nearcast.ingest.row_groups import sampled_rows
from nearcast.matching.method import find_method
from nearcast.sharding.normalise import served_dialect
from nearcast.sharding.planning.plan import make_router
from nearcast.sharding.routing.replicas import shard_lists
from nearcast.sharding.routing.router import Assigned, Router
from nearcast.sharding.shard_build import KEYS, SAMPLE, SHARDS, BuildSettings, BuiltShard, build_shard, no_subscriptions
from nearcast.sharding.sharded_index import ShardedIndex, index_weights, new_version, publish, shard_router
from nearcast.sharding.weights import Weights, given_weights
from nearcast.spark.batch.duplicate_ids import Source, TablePart, open_source
from nearcast.spark.batch.idf import counted_weights
from nearcast.spark.runtime.arrow_payload import NO_SHARD, ArrowPayload, join_tables, read_arrow_stream
from nearcast.spark.runtime.tasks import run_on_shards, send_payloads
from nearcast.tables import REJECTS_SCHEMA, Dialect
from nearcast.text.analyser import Analyser

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SAMPLED_SUBSCRIPTIONS, SAMPLED_MESSAGES = 100_000, 20_000
_REPORT_SCHEMA = pa.schema(
    [("shard", pa.int32()), ("attempt", pa.string()), ("subscriptions", pa.int64()), ("bytes", pa.int64())]
    + [("plan", pa.string()), ("rejects", pa.binary()), ("counts", pa.string())]
)


class BuildJob(NamedTuple):
    """What every task must know. Small: it travels to workers with each task."""

    settings: BuildSettings
    source: Source
    n_shards: int


def build_sharded(  # noqa: PLR0913  each is a choice of the user
    session: SparkSession,
    subscriptions: str,
    out: str,
    *,
    shards: int,
    messages: str | None = None,
    method: str = "auto",
    space: Sequence[float] | None = None,
    analyser: Analyser | None = None,
    weights: Any = None,
) -> ShardedIndex:
    """Divide a subscriptions table into shards, build them, and make the result the current version at `out`.

    `weights` are the token weights for kind `rank`, as in `build_index`: a table (token, weight), a vocabulary, or the
    file of either. The default is ln(1 + N/df) over all of these subscriptions. Every shard has the same weights.
    """
    if shards < 1:
        raise InvalidInput(f"an index has at least one shard, not {shards}")
    find_method("match", method)
    dialect = served_dialect(Dialect(analyser or Analyser(), Space.of(space)))
    given = weights if weights is None or isinstance(weights, Weights) else given_weights(weights)
    folder = new_version(out)
    try:
        source = open_source(session, subscriptions, folder / "duplicates")
        all_weights = given or counted_weights(session, source, dialect)
        all_weights.save(folder / "weights")
        router, sample = _make_router(folder, (subscriptions, messages), shards, dialect, all_weights)
        settings = BuildSettings(str(folder), method, None if space is None else tuple(space), dialect.analyser)
        reports = _run(session, BuildJob(settings, source, shards)) if source.tasks else []
        manifest = _assemble(settings, router, sample, reports) | {"table": os.path.abspath(subscriptions)}
        return publish(out, folder, manifest)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _make_router(
    folder: Path, sources: tuple[str, str | None], n_shards: int, dialect: Dialect, weights: Weights
) -> tuple[Router, pa.Table | None]:
    """(the router, which is saved for the tasks; the sample of messages, if there is one)."""
    subscriptions, total = sampled_rows(sources[0], SAMPLED_SUBSCRIPTIONS)
    if subscriptions is None:
        subscriptions = no_subscriptions()
    messages = None if sources[1] is None else sampled_rows(sources[1], SAMPLED_MESSAGES)[0]
    if messages is not None:
        pq.write_table(messages, folder / SAMPLE)
    scale = total / max(1, subscriptions.num_rows)
    router = make_router(subscriptions, messages, n_shards, dialect, scale, weights)
    router.save(folder / "router")
    return router, messages


def _run(session: SparkSession, job: BuildJob) -> list[Any]:
    """One Spark job: read and route, shuffle, build. The last partition gets the rejects and counts."""
    routed = send_payloads(session, len(job.source.tasks), partial(_route, job), job.n_shards + 1)
    return run_on_shards(routed, partial(_build, job), _REPORT_SCHEMA)


# -- in a task


def _route(job: BuildJob, task: int) -> Iterator[ArrowPayload]:
    unfinished = ShardedIndex(job.settings.folder, {})
    part = job.source.read(task)
    assigned = shard_router(unfinished).assign(part.table, weights=index_weights(unfinished))
    if assigned.n_ranked:
        find_method("rank", job.settings.method)  # raises an error that names the methods which can rank
    return _payloads(job.n_shards, part, assigned)


def _payloads(n_shards: int, part: TablePart, assigned: Assigned) -> Iterator[ArrowPayload]:
    never = assigned.n_good - len(np.unique(assigned.rows))
    counts = {"good": assigned.n_good, "ranked": assigned.n_ranked, "never": never}
    yield ArrowPayload(n_shards, NO_SHARD, part.all_rejects(assigned.rejects), json.dumps(counts).encode())
    table = part.table.append_column(SHARDS, shard_lists(assigned.rows, assigned.shards, part.table.num_rows))
    for shard in np.unique(assigned.shards).tolist():
        keys = assigned.filed[assigned.filed[:, 1] == shard, 0]
        yield ArrowPayload(shard, shard, table.take(pa.array(assigned.rows[assigned.shards == shard])), keys.tobytes())


def _build(job: BuildJob, shard: int, payloads: list[ArrowPayload]) -> Iterator[list[Any]]:
    """Build a shard and report it; report the rejects and counts."""
    if shard == NO_SHARD:
        for payload in payloads:
            yield _report(BuiltShard(NO_SHARD, "", 0, 0, "", payload.table), payload.note or b"{}")
        return
    keys = np.unique(np.concatenate([np.frombuffer(payload.note, np.int64) for payload in payloads]))
    yield _report(build_shard(job.settings, shard, join_tables(payloads), keys), b"{}")


def _report(built: BuiltShard, counts: bytes) -> list[Any]:
    return [*built[:-1], as_arrow_stream(built.rejects), counts.decode()]


# -- back in the driver


def _assemble(settings: BuildSettings, router: Router, sample: pa.Table | None, reports: list[Any]) -> dict[str, Any]:
    """Give the shards their final names, complete the router, and return the manifest."""
    folder = Path(settings.folder)
    built = {row.shard: row for row in reports if row.shard != NO_SHARD}
    for shard in set(range(router.n_shards)) - set(built):
        built[shard] = build_shard(settings, shard, no_subscriptions(), np.empty(0, np.int64))
    filed = []
    for shard, row in built.items():
        target = folder / "shards" / f"{shard:05d}"
        (folder / "attempts" / row.attempt).rename(target)
        keys = np.load(target / KEYS)
        filed.append(np.column_stack([keys, np.full(len(keys), shard)]))
    router = router.with_keys(np.concatenate(filed))
    router.save(folder / "router")
    for name in ("attempts", "duplicates"):
        shutil.rmtree(folder / name, ignore_errors=True)
    rejects = _rejects(folder, reports)
    return _manifest(router, settings, [built[shard] for shard in range(router.n_shards)]) | {
        **_totals(reports, rejects),
        **_visit_statistics(router, sample),
    }


def _rejects(folder: Path, reports: list[Any]) -> pa.Table:
    tables = [read_arrow_stream(row.rejects) for row in reports]
    rejects = pa.concat_tables([REJECTS_SCHEMA.empty_table(), *tables]).sort_by("row")
    if len(rejects):
        pq.write_table(rejects, folder / "rejects.parquet")
    return rejects


def _manifest(router: Router, settings: BuildSettings, built: list[Any]) -> dict[str, Any]:
    return {
        "n_shards": router.n_shards,
        "method": settings.method,
        "space": router.space.header(),
        "analyser": router.analyser.header(),
        "by_text": {
            "leaves": int(router.areas.is_divided.sum()),
            "wide": router.divides_wide,
            "keys": router.keys.size,
        },
        "shards": [{"subscriptions": row.subscriptions, "bytes": row.bytes, "plan": row.plan} for row in built],
        "copies": sum(row.subscriptions for row in built),
    }


def _totals(reports: list[Any], rejects: pa.Table) -> dict[str, Any]:
    """Counts of the whole table. `never`: good subscriptions that can match no message and are in no shard."""
    counts = [json.loads(row.counts) for row in reports if row.shard == NO_SHARD]
    good, never, ranked = (sum(count.get(name, 0) for count in counts) for name in ("good", "never", "ranked"))
    stored = good - never
    copies = sum(row.subscriptions for row in reports if row.shard != NO_SHARD)
    return {
        "subscriptions": stored,
        "ranked": ranked,
        "never": never,
        "rejected": len(rejects),
        "replication": copies / stored if stored else 1.0,
    }


def _visit_statistics(router: Router, sample: pa.Table | None) -> dict[str, Any]:
    """How many shards a sampled message visits, and how evenly the visits are spread."""
    if sample is None or not sample.num_rows:
        return {"shards_per_message": None, "messages_max_over_mean": None}
    routed = router.route(sample)
    visits = np.bincount(routed.shards, minlength=router.n_shards)
    n_messages = max(1, len(np.unique(routed.rows)))
    return {
        "shards_per_message": len(routed.rows) / n_messages,
        "messages_max_over_mean": float(visits.max() / max(visits.mean(), 1e-9)),
    }

"""The partitioned build: plan, send each subscription to its shards, build each shard in a task, publish the whole.

Tasks write under names of their own and tell them; only what the driver was told becomes part of the version. So a
task that is tried twice, or dies half way, leaves nothing behind that counts.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.arrays.ragged import starts_of
from nearcast.errors import InvalidInput
from nearcast.geo.space import Space
from nearcast.ingest.row_groups import sampled_rows
from nearcast.matching.method import find_method
from nearcast.matching.rank_method import find_rank_method
from nearcast.sharding.normalise import served_dialect
from nearcast.sharding.planning.plan import make_router
from nearcast.sharding.routing.router import Assigned, Router
from nearcast.sharding.shard_build import KEYS, SAMPLE, SHARDS, BuildSettings, BuiltShard, build_shard, no_subscriptions
from nearcast.sharding.sharded_index import ShardedIndex, index_weights, new_version, publish, shard_router
from nearcast.sharding.weights import Weights, given_weights
from nearcast.spark.batch.arrow_payload import (
    PAYLOAD_SQL,
    ArrowPayload,
    as_bytes,
    from_bytes,
    pack_payloads,
    unpack_payloads,
)
from nearcast.spark.batch.duplicate_ids import Part, Source, numbered, open_source
from nearcast.spark.batch.idf import counted_weights
from nearcast.tables import REJECTS_SCHEMA, Dialect
from nearcast.text.analyser import Analyser

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SAMPLED_SUBSCRIPTIONS, SAMPLED_MESSAGES = 100_000, 20_000
_NO_SHARD = -1  # of bad rows and counts

_BUILT_SCHEMA = "shard int, attempt string, subscriptions long, bytes long, plan string, rejects binary, counts string"
_BUILT_ARROW = pa.schema(
    [
        ("shard", pa.int32()),
        ("attempt", pa.string()),
        ("subscriptions", pa.int64()),
        ("bytes", pa.int64()),
        ("plan", pa.string()),
        ("rejects", pa.binary()),
        ("counts", pa.string()),
    ]
)


class BuildJob(NamedTuple):
    """All that a task must know."""

    settings: BuildSettings
    source: Source
    n_shards: int


def build_sharded(  # noqa: PLR0913  each is a choice of the user's
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

    `weights` say what tokens weigh for kind `rank`, as in `build_index`: a table (token, weight), a vocabulary, the
    file of either; else ln(1 + N/df) over all of these subscriptions. They are the same in every shard.
    """
    if shards < 1:
        raise InvalidInput(f"an index has at least one shard, not {shards}")
    find_method(method)
    dialect = served_dialect(Dialect(analyser or Analyser(), Space.of(space)))
    given = weights if weights is None or isinstance(weights, Weights) else given_weights(weights)
    folder = new_version(out)
    try:
        source = open_source(session, subscriptions, folder / "late")
        known = given or counted_weights(session, source, dialect)
        known.save(folder / "weights")
        router, sample = _planned(folder, (subscriptions, messages), shards, dialect, known)
        settings = BuildSettings(str(folder), method, None if space is None else tuple(space), dialect.analyser)
        told = _run(session, BuildJob(settings, source, shards)) if source.tasks else []
        manifest = _gathered(settings, router, sample, told) | {"table": os.path.abspath(subscriptions)}
        return publish(out, folder, manifest)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _planned(
    folder: Path, sources: tuple[str, str | None], n_shards: int, dialect: Dialect, weights: Weights
) -> tuple[Router, pa.Table | None]:
    """The router, saved for the tasks, and the sample of messages, where there is one."""
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
    """One job: read and route, shuffle, build. The last partition is of bad rows and counts."""
    n_tasks = len(job.source.tasks)
    tasks = session.range(0, n_tasks, 1, n_tasks)
    routed = tasks.mapInArrow(partial(_route, job), PAYLOAD_SQL)
    together = routed.repartitionById(job.n_shards + 1, routed["partition"])
    told: list[Any] = together.mapInArrow(partial(_build, job), _BUILT_SCHEMA).collect()
    return told


# -- in a task


def _route(job: BuildJob, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    unfinished = ShardedIndex(job.settings.folder, {})
    router = shard_router(unfinished)
    for batch in batches:
        for task in batch.column("id").to_pylist():
            part = job.source.read(task)
            assigned = router.assign_checked(part.table, weights=index_weights(unfinished))
            if assigned.n_ranked:
                find_rank_method(job.settings.method)  # or it says which methods serve them
            yield from pack_payloads(_payloads(job.n_shards, part, assigned))


def _payloads(n_shards: int, part: Part, assigned: Assigned) -> Iterator[ArrowPayload]:
    table = part.table
    n_copies = np.bincount(assigned.rows, minlength=table.num_rows)
    never = assigned.n_good - int(np.count_nonzero(n_copies))
    counts = {"good": assigned.n_good, "ranked": assigned.n_ranked, "never": never}
    rejects = pa.concat_tables([part.rejects, numbered(assigned.rejects, part.rows)])
    yield ArrowPayload(n_shards, _NO_SHARD, rejects, json.dumps(counts).encode())
    holders = pa.ListArray.from_arrays(
        pa.array(starts_of(n_copies).astype(np.int32)), pa.array(assigned.shards), mask=pa.array(n_copies < 2)
    )
    table = table.append_column(SHARDS, holders)
    for shard in np.unique(assigned.shards).tolist():
        keys = assigned.filed[assigned.filed[:, 1] == shard, 0]
        yield ArrowPayload(shard, shard, table.take(pa.array(assigned.rows[assigned.shards == shard])), keys.tobytes())


def _build(job: BuildJob, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Build what came for each shard, which is one unless Spark put partitions together."""
    of_shard: defaultdict[int, list[ArrowPayload]] = defaultdict(list)
    for payload in unpack_payloads(batches):
        of_shard[payload.shard].append(payload)
    for payload in of_shard.pop(_NO_SHARD, []):
        yield _told(_nothing_built(payload.table), payload.note or b"{}")
    for shard, payloads in sorted(of_shard.items()):
        keys = np.unique(np.concatenate([np.frombuffer(payload.note, np.int64) for payload in payloads]))
        table = pa.concat_tables([payload.table for payload in payloads], promote_options="permissive")
        yield _told(build_shard(job.settings, shard, table, keys), b"{}")


def _nothing_built(rejects: pa.Table) -> BuiltShard:
    return BuiltShard(_NO_SHARD, "", 0, 0, "", rejects)


def _told(built: BuiltShard, counts: bytes) -> pa.RecordBatch:
    row = [*built[:-1], as_bytes(built.rejects), counts.decode()]
    columns = [pa.array([value], field.type) for value, field in zip(row, _BUILT_ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=_BUILT_ARROW)


# -- back in the driver


def _gathered(settings: BuildSettings, router: Router, sample: pa.Table | None, told: list[Any]) -> dict[str, Any]:
    """Give the shards their names, complete the router, and return the manifest."""
    folder = Path(settings.folder)
    built = {row.shard: row for row in told if row.shard != _NO_SHARD}
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
    for each in ("attempts", "late"):
        shutil.rmtree(folder / each, ignore_errors=True)
    rejects = _rejects(folder, told)
    return _manifest(router, settings, [built[shard] for shard in range(router.n_shards)]) | {
        **_totals(told, rejects),
        **_spread(router, sample),
    }


def _rejects(folder: Path, told: list[Any]) -> pa.Table:
    tables = [from_bytes(row.rejects) for row in told]
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


def _totals(told: list[Any], rejects: pa.Table) -> dict[str, Any]:
    """`subscriptions` are in the index; `never` are good but can hold on no message, and are in no shard."""
    counts = [json.loads(row.counts) for row in told if row.shard == _NO_SHARD]
    good, never, ranked = (sum(count.get(name, 0) for count in counts) for name in ("good", "never", "ranked"))
    held = good - never
    copies = sum(row.subscriptions for row in told if row.shard != _NO_SHARD)
    return {
        "subscriptions": held,
        "ranked": ranked,
        "never": never,
        "rejected": len(rejects),
        "replication": copies / held if held else 1.0,
    }


def _spread(router: Router, sample: pa.Table | None) -> dict[str, Any]:
    """How many shards the sampled messages visit, and how evenly."""
    if sample is None or not sample.num_rows:
        return {"shards_per_message": None, "messages_max_over_mean": None}
    rows, shards = router.route(sample)
    visits = np.bincount(shards, minlength=router.n_shards)
    n_messages = max(1, len(np.unique(rows)))
    return {
        "shards_per_message": len(rows) / n_messages,
        "messages_max_over_mean": float(visits.max() / max(visits.mean(), 1e-9)),
    }

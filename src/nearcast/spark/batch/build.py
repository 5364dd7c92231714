"""Builds a sharded index: plan the shards, send each subscription to its shards, build each shard in a task, publish.

Each task writes under a unique name and reports the name; the version consists of the folders that were reported. A
task that runs twice, or dies half way, therefore leaves nothing that counts.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.errors import InvalidInput
from nearcast.geo.space import Space
from nearcast.ingest.row_groups import sampled_rows
from nearcast.matching.method import find_method
from nearcast.sharding.normalise import served_dialect
from nearcast.sharding.planning.capacity import default_shards
from nearcast.sharding.planning.plan import make_router
from nearcast.sharding.routing.replicas import shard_lists
from nearcast.sharding.routing.router import Assigned, Router
from nearcast.sharding.shard_build import KEYS, NO_SUBSCRIPTIONS, SAMPLE, SHARDS, BuildSettings, BuiltShard, build_shard
from nearcast.sharding.sharded_index import (
    PLANNED_ROUTER,
    REJECTS,
    ShardedIndex,
    index_weights,
    new_version,
    planned_router,
    publish,
)
from nearcast.sharding.weights import Weights, given_weights
from nearcast.spark.batch.duplicate_ids import Source, TablePart, open_source
from nearcast.spark.batch.idf import counted_weights
from nearcast.spark.runtime.session import SparkSession, cores_of
from nearcast.spark.runtime.tasks import NO_SHARD, ArrowPayload, join_tables, run_on_shards, send_payloads
from nearcast.storage.leftovers import remove_quietly
from nearcast.storage.location import Location, locate
from nearcast.tables import REJECTS_SCHEMA, Dialect, OnBad
from nearcast.text.analyser import Analyser

SAMPLED_SUBSCRIPTIONS, SAMPLED_MESSAGES = 100_000, 20_000
OWN_TABLE = "subscriptions"
"""In a version's folder: the table that it was built from, if the build wrote it."""

WriteTable = Callable[[Location], None]


def build_sharded(  # noqa: PLR0913  each is a choice of the user
    session: SparkSession,
    subscriptions: str | WriteTable,
    out: str | os.PathLike[str],
    *,
    shards: int | None = None,
    messages: str | pa.Table | None = None,
    method: str = "auto",
    space: Sequence[float] | None = None,
    analyser: Analyser | None = None,
    weights: Any = None,
    on_bad: OnBad = "skip",
) -> ShardedIndex:
    """Divide a subscriptions table into shards, build them, and make the result the current version at `out`.

    `subscriptions`, `messages` and `out` are paths or URLs. `subscriptions` may also be a function that writes the
    table to a folder, which then belongs to the index; `messages` may be a sample of them, as a table. By default,
    `shards` follows from the size of the table and the number of cores.
    `weights` are the token weights for kind `rank`, as in `build_index`: a table (token, weight), a vocabulary, or the
    file of either. The default is ln(1 + N/df) over all of these subscriptions. Every shard has the same weights.
    """
    if shards is not None and shards < 1:
        raise InvalidInput(f"an index has at least one shard, not {shards}")
    find_method("match", method)
    dialect = served_dialect(Dialect(analyser or Analyser(), Space.of(space)))
    given = weights if weights is None or isinstance(weights, Weights) else given_weights(weights)
    folder = new_version(out)
    try:
        table = subscriptions if isinstance(subscriptions, str) else _written_by(subscriptions, folder)
        source = open_source(session, table, folder.child("duplicates"))
        shards = shards or default_shards(source.n_rows, cores_of(session))
        all_weights = given or counted_weights(session, source, dialect)
        all_weights.save(folder.child("weights").url)
        router, sample = _make_router(folder, (table, messages), shards, dialect, all_weights)
        settings = BuildSettings(folder.url, method, None if space is None else tuple(space), dialect.analyser)
        reports = _run(session, settings, source, shards) if source.tasks else []
        manifest = _assemble(settings, router, sample, reports, on_bad)
        manifest["table"] = locate(subscriptions).shown if isinstance(subscriptions, str) else OWN_TABLE
        return publish(out, folder, manifest)
    except BaseException:
        remove_quietly(folder)
        raise


def _written_by(write: WriteTable, folder: Location) -> str:
    write(folder.child(OWN_TABLE))
    return folder.child(OWN_TABLE).url


def _make_router(
    folder: Location, sources: tuple[str, str | pa.Table | None], n_shards: int, dialect: Dialect, weights: Weights
) -> tuple[Router, pa.Table | None]:
    """(the router, which is saved for the tasks; the sample of messages, if there is one)."""
    subscriptions, total = sampled_rows(sources[0], SAMPLED_SUBSCRIPTIONS)
    if subscriptions is None:
        subscriptions = NO_SUBSCRIPTIONS
    messages = sampled_rows(sources[1], SAMPLED_MESSAGES)[0] if isinstance(sources[1], str) else sources[1]
    if messages is not None:
        _write_parquet(messages, folder.child(SAMPLE))
    scale = total / max(1, subscriptions.num_rows)
    router = make_router(subscriptions, messages, n_shards, dialect, scale, weights)
    router.save(folder.child(PLANNED_ROUTER).url)
    return router, messages


def _write_parquet(table: pa.Table, file: Location) -> None:
    content = pa.BufferOutputStream()
    pq.write_table(table, content)
    file.write(content.getvalue())


class _AllRouted(NamedTuple):
    """The report of the partition that gets the rejects and counts of all tasks that route."""

    counts: Counter[str]
    rejects: pa.Table


def _run(session: SparkSession, settings: BuildSettings, source: Source, n_shards: int) -> list[Any]:
    """One Spark job: read and route, shuffle, build. The last partition gets the rejects and counts."""
    route = partial(_route, settings, source, n_shards)
    return run_on_shards(send_payloads(session, len(source.tasks), route, n_shards + 1), partial(_build, settings))


# -- in a task


def _route(settings: BuildSettings, source: Source, n_shards: int, task: int) -> Iterator[ArrowPayload]:
    unfinished = ShardedIndex(settings.folder, {})
    part = source.read(task)
    assigned = planned_router(settings.folder).assign(part.table, weights=index_weights(unfinished))
    if assigned.n_ranked:
        find_method("rank", settings.method)  # raises an error that names the methods which can rank
    return _payloads(n_shards, part, assigned)


def _payloads(n_shards: int, part: TablePart, assigned: Assigned) -> Iterator[ArrowPayload]:
    never = assigned.n_good - len(np.unique(assigned.rows))
    counts = {"good": assigned.n_good, "ranked": assigned.n_ranked, "never": never}
    yield ArrowPayload(n_shards, NO_SHARD, part.all_rejects(assigned.rejects), json.dumps(counts).encode())
    table = part.table.append_column(SHARDS, shard_lists(assigned.rows, assigned.shards, part.table.num_rows))
    for shard in np.unique(assigned.shards).tolist():
        keys = assigned.filed[assigned.filed[:, 1] == shard, 0]
        yield ArrowPayload(shard, shard, table.take(pa.array(assigned.rows[assigned.shards == shard])), keys.tobytes())


def _build(settings: BuildSettings, shard: int, payloads: list[ArrowPayload]) -> Iterator[BuiltShard | _AllRouted]:
    table = join_tables(payloads)
    if shard == NO_SHARD:
        counts = (Counter(json.loads(payload.note)) for payload in payloads if payload.note)
        yield _AllRouted(sum(counts, Counter()), table)
    else:
        keys = np.unique(np.concatenate([np.frombuffer(payload.note, np.int64) for payload in payloads]))
        yield build_shard(settings, shard, table, keys)


# -- back in the driver


def _assemble(
    settings: BuildSettings, router: Router, sample: pa.Table | None, reports: list[Any], on_bad: OnBad
) -> dict[str, Any]:
    """Give the shards their final names, complete the router, and return the manifest."""
    folder = locate(settings.folder)
    rejects = pa.concat_tables([REJECTS_SCHEMA.empty_table(), *(report.rejects for report in reports)]).sort_by("row")
    if len(rejects):
        if on_bad == "raise":
            _raise_first(rejects)
        _write_parquet(rejects, folder.child(REJECTS))
    built = {report.shard: report for report in reports if isinstance(report, BuiltShard)}
    for shard in set(range(router.n_shards)) - set(built):
        built[shard] = build_shard(settings, shard, NO_SUBSCRIPTIONS, np.empty(0, np.int64))
    router = router.with_keys(np.concatenate([_finish_shard(folder, each) for each in built.values()]))
    router.save(folder.child("router").url)
    for name in (PLANNED_ROUTER, "duplicates"):
        folder.child(name).remove()
    counts = sum((report.counts for report in reports if isinstance(report, _AllRouted)), Counter[str]())
    counts["rejected"] = len(rejects)
    shards = [built[shard] for shard in range(router.n_shards)]
    _remove_other_attempts(folder.child("shards"), shards)
    manifest = _manifest(router, settings, shards, counts) | _visit_statistics(router, sample)
    if not folder.is_local:
        for made, entry in zip(shards, manifest["shards"], strict=True):
            entry["folder"] = made.attempt
    return manifest


def _raise_first(rejects: pa.Table) -> None:
    first = rejects.slice(0, 1).to_pylist()[0]
    more = f" (and {len(rejects) - 1} more bad rows)" if len(rejects) > 1 else ""
    raise InvalidInput(f"{first['reason']}{more}; the row is {first['record']}", column=first["column"])


def _finish_shard(folder: Location, built: BuiltShard) -> np.ndarray:
    """int64[n,2]: (key, shard) of the keys of a shard. Its folder gets its final name where folders can be renamed."""
    attempt = folder.child("shards", built.attempt)
    keys = np.frombuffer(attempt.child(KEYS).read(), np.int64)
    if folder.is_local:
        os.rename(attempt.path, folder.child("shards", f"{built.shard:05d}").path)
    return np.column_stack([keys, np.full(len(keys), built.shard)])


def _remove_other_attempts(folder: Location, shards: list[BuiltShard]) -> None:
    """Remove the shards that tasks left which failed or ran twice."""
    kept = {shard.attempt for shard in shards}
    for name in folder.names():
        if "-" in name and name not in kept:
            remove_quietly(folder.child(name))


def _manifest(
    router: Router, settings: BuildSettings, shards: list[BuiltShard], counts: Counter[str]
) -> dict[str, Any]:
    """`never`: good subscriptions that can match no message and are in no shard."""
    stored, copies = counts["good"] - counts["never"], sum(shard.subscriptions for shard in shards)
    return {
        "n_shards": router.n_shards,
        "method": settings.method,
        "space": router.dialect.space.header(),
        "analyser": router.dialect.analyser.header(),
        "by_text": {
            "leaves": int(router.areas.is_divided.sum()),
            "wide": router.divides_wide,
            "keys": router.keys.size,
        },
        "shards": [{name: getattr(shard, name) for name in ("subscriptions", "bytes", "plan")} for shard in shards],
        "copies": copies,
        "subscriptions": stored,
        "ranked": counts["ranked"],
        "never": counts["never"],
        "rejected": counts["rejected"],
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

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
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.arrays.ragged import distinct
from nearcast.errors import InvalidInput
from nearcast.geo.space import Space
from nearcast.ingest.row_groups import Source, TablePart, id_type_of, sampled_rows
from nearcast.matching.method import find_method
from nearcast.sharding.normalise import served_dialect
from nearcast.sharding.payloads import NO_SHARD, ArrowPayload, join_tables
from nearcast.sharding.planning.capacity import default_shards
from nearcast.sharding.planning.plan import make_router
from nearcast.sharding.routing.replicas import shard_lists
from nearcast.sharding.routing.router import Assigned, Router, hashes_of
from nearcast.sharding.shard_assembly import AllRouted, assemble, write_parquet
from nearcast.sharding.shard_build import NO_SUBSCRIPTIONS, SAMPLE, SHARDS, BuildSettings, BuiltShard, build_shard
from nearcast.sharding.sharded_index import (
    KEPT_HOURS,
    PLANNED_ROUTER,
    ShardedIndex,
    forget_old,
    index_weights,
    new_version,
    planned_router,
    publish,
)
from nearcast.sharding.weights import (
    TOKEN_COUNTS_SCHEMA,
    Weights,
    add_token_counts,
    count_tokens,
    given_weights,
    idf_weights,
)
from nearcast.spark.batch.duplicate_ids import open_source
from nearcast.spark.runtime.session import SparkSession, cores_of
from nearcast.spark.runtime.tasks import run_on_shards, send_payloads
from nearcast.storage.leftovers import remove_quietly
from nearcast.storage.location import Location, locate
from nearcast.tables import Dialect, OnBad
from nearcast.tables.ids import header_of
from nearcast.text.analyser import Analyser

SAMPLED_SUBSCRIPTIONS, SAMPLED_MESSAGES = 100_000, 20_000
OWN_TABLE = "subscriptions"
"""In a version's folder: the table that it was built from, if the build wrote it."""

_MOST_COUNT_PARTS = 64
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
    analyser: Analyser | str | None = None,
    weights: Any = None,
    on_bad: OnBad = "skip",
    keep_hours: float | None = KEPT_HOURS,
) -> ShardedIndex:
    """Divide a subscriptions table into shards, build them, and make the result the current version at `out`.

    `subscriptions`, `messages` and `out` are paths or URLs. `subscriptions` may also be a function that writes the
    table to a folder, which then belongs to the index; `messages` may be a sample of them, as a table. By default,
    `shards` follows from the size of the table and the number of cores.
    `weights` are the token weights for kind `rank`, as in `build_index`: a table (token, weight), a vocabulary, or the
    file of either. The default is ln(1 + N/df) over all of these subscriptions. Every shard has the same weights.
    Versions that were replaced `keep_hours` ago are removed; None keeps all.
    """
    if keep_hours is not None and not keep_hours >= 0:
        raise InvalidInput(f"keep_hours is a number of hours from 0 on, or None to keep all versions, not {keep_hours}")
    if shards is not None and shards < 1:
        raise InvalidInput(f"an index has at least one shard, not {shards}")
    find_method("match", method)
    dialect = served_dialect(Dialect(Analyser.of(analyser), Space.of(space)))
    given = weights if weights is None or isinstance(weights, Weights) else given_weights(weights)
    folder = new_version(out)
    try:
        table = subscriptions if isinstance(subscriptions, str) else _written_by(subscriptions, folder)
        source = open_source(session, table, folder.child("duplicates"))
        shards = shards or default_shards(source.n_rows, cores_of(session))
        all_weights = given or _counted_weights(session, source, dialect)
        all_weights.save(folder.child("weights").url)
        router, sample = _make_router(folder, (table, messages), shards, dialect, all_weights)
        settings = BuildSettings(folder.url, method, None if space is None else tuple(space), dialect.analyser)
        reports = _run(session, settings, source, shards) if source.tasks else []
        manifest = assemble(settings, router, sample, reports, on_bad)
        manifest["id_type"] = header_of(id_type_of(table))
        manifest["table"] = locate(subscriptions).shown if isinstance(subscriptions, str) else OWN_TABLE
        made = publish(out, folder, manifest)
    except BaseException:
        remove_quietly(folder)
        raise
    if keep_hours is not None:
        forget_old(out, keep_hours)
    return made


def _written_by(write: WriteTable, folder: Location) -> str:
    write(folder.child(OWN_TABLE))
    return folder.child(OWN_TABLE).url


def _counted_weights(session: SparkSession, source: Source, dialect: Dialect) -> Weights:
    """The default weights. The counts of the tasks are shuffled by the hash of the token."""
    n_tasks = len(source.tasks)
    n_parts = min(n_tasks, _MOST_COUNT_PARTS)
    reports: list[tuple[pa.Table, int]] = []
    if n_tasks:
        counted = send_payloads(session, n_tasks, partial(_count, source, dialect, n_parts), n_parts)
        reports = run_on_shards(counted, _add_up)
    table = pa.concat_tables([TOKEN_COUNTS_SCHEMA.empty_table(), *(counts for counts, _ in reports)])
    return idf_weights(table, sum(n_subscriptions for _, n_subscriptions in reports))


def _make_router(
    folder: Location, sources: tuple[str, str | pa.Table | None], n_shards: int, dialect: Dialect, weights: Weights
) -> tuple[Router, pa.Table | None]:
    """(the router, which is saved for the tasks; the sample of messages, if there is one)."""
    subscriptions, total = sampled_rows(sources[0], SAMPLED_SUBSCRIPTIONS)
    if subscriptions is None:
        subscriptions = NO_SUBSCRIPTIONS
    messages = sampled_rows(sources[1], SAMPLED_MESSAGES)[0] if isinstance(sources[1], str) else sources[1]
    if messages is not None:
        write_parquet(messages, folder.child(SAMPLE))
    scale = total / max(1, subscriptions.num_rows)
    router = make_router(subscriptions, messages, n_shards, dialect, scale, weights)
    router.save(folder.child(PLANNED_ROUTER).url)
    return router, messages


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
    never = assigned.n_good - len(distinct(assigned.rows))
    counts = {"good": assigned.n_good, "ranked": assigned.n_ranked, "never": never}
    yield ArrowPayload(n_shards, NO_SHARD, part.all_rejects(assigned.rejects), json.dumps(counts).encode())
    table = part.table.append_column(SHARDS, shard_lists(assigned.rows, assigned.shards, part.table.num_rows))
    for shard in np.flatnonzero(np.bincount(assigned.shards, minlength=n_shards)).tolist():
        keys = assigned.filed[assigned.filed[:, 1] == shard, 0]
        yield ArrowPayload(shard, shard, table.take(pa.array(assigned.rows[assigned.shards == shard])), keys.tobytes())


def _build(settings: BuildSettings, shard: int, payloads: list[ArrowPayload]) -> Iterator[BuiltShard | AllRouted]:
    table = join_tables(payloads)
    if shard == NO_SHARD:
        counts = (Counter(json.loads(payload.note)) for payload in payloads if payload.note)
        yield AllRouted(sum(counts, Counter()), table)
    else:
        keys = distinct(np.concatenate([np.frombuffer(payload.note, np.int64) for payload in payloads]))
        yield build_shard(settings, shard, table, keys)


def _count(source: Source, dialect: Dialect, n_parts: int, task: int) -> Iterator[ArrowPayload]:
    counted = count_tokens(source.read(task).table, task, dialect)
    parts = hashes_of(counted.table["token"].combine_chunks()) % n_parts
    for k in range(n_parts):
        n_subscriptions = counted.n_subscriptions if k == 0 else 0
        yield ArrowPayload(k, k, counted.table.filter(pa.array(parts == k)), str(n_subscriptions).encode())


def _add_up(part: int, payloads: list[ArrowPayload]) -> Iterator[tuple[pa.Table, int]]:
    """(the counts of all payloads added up, the number of subscriptions)."""
    yield add_token_counts(join_tables(payloads)), sum(int(payload.note or b"0") for payload in payloads)

"""Makes a version of a sharded index from the shards that tasks have built: names, router, rejects, manifest."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.arrays.ragged import distinct
from nearcast.errors import InvalidInput
from nearcast.sharding.routing.router import Router
from nearcast.sharding.shard_build import KEYS, NO_SUBSCRIPTIONS, BuildSettings, BuiltShard, build_shard
from nearcast.sharding.sharded_index import PLANNED_ROUTER, REJECTS
from nearcast.storage.leftovers import remove_quietly
from nearcast.storage.location import Location, locate
from nearcast.tables import REJECTS_SCHEMA, OnBad


class AllRouted(NamedTuple):
    """The report of the partition that gets the rejects and counts of all tasks that route."""

    counts: Counter[str]
    rejects: pa.Table


def assemble(
    settings: BuildSettings, router: Router, sample: pa.Table | None, reports: list[Any], on_bad: OnBad
) -> dict[str, Any]:
    """Give the shards their final names, complete the router, and return the manifest."""
    folder = locate(settings.folder)
    rejects = pa.concat_tables([REJECTS_SCHEMA.empty_table(), *(report.rejects for report in reports)]).sort_by("row")
    if len(rejects):
        if on_bad == "raise":
            _raise_first(rejects)
        write_parquet(rejects, folder.child(REJECTS))
    built = {report.shard: report for report in reports if isinstance(report, BuiltShard)}
    for shard in set(range(router.n_shards)) - set(built):
        built[shard] = build_shard(settings, shard, NO_SUBSCRIPTIONS, np.empty(0, np.int64))
    router = router.with_keys(np.concatenate([_finish_shard(folder, each) for each in built.values()]))
    router.save(folder.child("router").url)
    for name in (PLANNED_ROUTER, "duplicates"):
        folder.child(name).remove()
    counts = sum((report.counts for report in reports if isinstance(report, AllRouted)), Counter[str]())
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
        "attributes": sorted({name for shard in shards for name in shard.attributes}),
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
    n_messages = max(1, len(distinct(routed.rows)))
    return {
        "shards_per_message": len(routed.rows) / n_messages,
        "messages_max_over_mean": float(visits.max() / max(visits.mean(), 1e-9)),
    }


def write_parquet(table: pa.Table, file: Location) -> None:
    content = pa.BufferOutputStream()
    pq.write_table(table, content)
    file.write(content.getvalue())

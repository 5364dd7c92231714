"""The engine: time of `publish` and `subscribe`, in turns and by two threads, with all subscriptions in it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.bench.runs.agreement import Disagreement
from nearcast.bench.runs.case import Case, Record
from nearcast.bench.runs.table_api import expiring_ids, without
from nearcast.bench.runs.timing import timed, timed_one_by_one
from nearcast.bench.workloads.calls import publish_calls, subscribe_calls
from nearcast.bench.workloads.tables import subscription_tables
from nearcast.bench.workloads.times import DAY, FIRST_MESSAGE
from nearcast.engine.engine import Engine
from nearcast.matching.variant import Variant
from nearcast.model import Hits

_NOON_S = (FIRST_MESSAGE + DAY // 2) / 1e6
Message = tuple[int, str, tuple[float, float]]
_BATCH = 500
"""Messages of a table that a thread publishes at once."""


def engine_group(case: Case) -> str | None:
    """The group of messages that are published: the first at points."""
    return next((group for group in case.workload.groups if group.endswith("point")), None)


def run_engine(methods: Sequence[Variant], case: Case, answers: dict[str, Hits]) -> list[Record]:
    """Raw measurements by method, without methods that have options: an engine takes a name."""
    group = engine_group(case)
    if group is None:
        return []
    corpus, workload, calls = case.corpus, case.workload, case.settings.engine
    table = pa.concat_tables(subscription_tables(corpus, workload))
    expiring = expiring_ids(table)
    answer = without(answers[group], expiring)
    messages = publish_calls(corpus, workload, group, min(2 * calls, workload.messages, len(answer.starts) - 1))
    later = subscribe_calls(corpus, workload, workload.subscriptions, workload.subscriptions + calls)
    measured = []
    for variant in methods:
        case.begin(f"an engine with {variant.label}")
        if variant.options:
            continue
        engine = Engine(variant.name, space=workload.space, clock=lambda: _NOON_S)
        engine.index.insert(table)
        _require_answers(engine, messages, answer, expiring, variant.label)
        measured.append({"method": variant.label, "group": group} | _run(engine, messages, later, case))
    return measured


def _require_answers(engine: Engine, messages: list[Message], answer: Hits, expiring: np.ndarray, label: str) -> None:
    """Raise Disagreement if a message finds other subscriptions than the methods. The engine's clock stands still, so
    that the expiring ones differ.
    """
    for number, text, place in messages:
        found = np.array([match.subscription for match in engine.publish(text, at=place)], np.int64)
        wanted = answer.rows[answer.starts[number] : answer.starts[number + 1]]
        if not np.array_equal(found[~np.isin(found, expiring)], wanted):
            raise Disagreement(f"the engine with '{label}' finds others for message {number} than the method")


def _run(engine: Engine, messages: list[Message], later: list[dict[str, Any]], case: Case) -> Record:
    """The subscriptions that are added are removed again after each measurement."""
    published = [(text, place) for _, text, place in messages]
    half = len(published) // 2
    _, publish_us = timed_one_by_one(_publisher(engine), published[half:], time.thread_time)
    _, subscribe_us = timed_one_by_one(_subscriber(engine), [(call,) for call in later], time.thread_time)
    _forget(engine, later)
    pairs = list(zip(later, published[half:], strict=False))

    def alternate() -> None:
        for call, (text, place) in pairs:
            engine.subscribe(**call)
            engine.publish(text, at=place)

    _, took = timed(alternate)
    _forget(engine, later)
    tables = _tables(published)
    walls: dict[str, list[float]] = {"1": [], "2": []}
    table_walls: dict[str, list[float]] = {"1": [], "2": []}
    for _ in range(case.settings.rounds):
        for count in walls:
            walls[count].append(timed(_divided, _publish_each(engine), published, int(count))[1].wall_s)
            table_walls[count].append(timed(_divided, _publish_tables(engine), tables, int(count))[1].wall_s)
    return {
        "publish_cpu_us": publish_us,
        "subscribe_cpu_us": subscribe_us,
        "pairs": len(pairs),
        "pairs_cpu_s": took.cpu_s,
        "messages": len(published),
        "threads_wall_s": walls,
        "table_messages": sum(table.num_rows for table in tables),
        "table_threads_wall_s": table_walls,
    }


def _publisher(engine: Engine) -> Any:
    return lambda text, place: engine.publish(text, at=place)


def _subscriber(engine: Engine) -> Any:
    return lambda call: engine.subscribe(**call)


def _forget(engine: Engine, calls: list[dict[str, Any]]) -> None:
    engine.unsubscribe(*(call["id"] for call in calls))


Place = tuple[float, float]


def _publish_each(engine: Engine) -> Callable[[list[tuple[str, Place]]], None]:
    def publish_part(part: list[tuple[str, Place]]) -> None:
        for text, place in part:
            engine.publish(text, at=place)

    return publish_part


def _publish_tables(engine: Engine) -> Callable[[list[pa.Table]], None]:
    def publish_part(part: list[pa.Table]) -> None:
        for table in part:
            engine.publish_many(table)

    return publish_part


def _tables(messages: list[tuple[str, Place]]) -> list[pa.Table]:
    """The messages as tables, repeated until each of two threads has ten."""
    columns = {"id": range(len(messages)), "text": [text for text, _ in messages]}
    places = {name: [place[axis] for _, place in messages] for axis, name in enumerate(("x", "y"))}
    table = pa.table({name: pa.array(values) for name, values in (columns | places).items()})
    tables = [table.slice(first, _BATCH) for first in range(0, len(messages), _BATCH)]
    return tables * -(-20 // len(tables)) if tables else []


def _divided(publish_part: Callable[[list[Any]], None], work: list[Any], threads: int) -> None:
    """Publish messages or tables, divided over threads."""
    parts = [work[k::threads] for k in range(threads)]
    if threads == 1:
        publish_part(parts[0])
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(publish_part, parts))

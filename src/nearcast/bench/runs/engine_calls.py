"""The engine: time of `publish` and `subscribe`, in turns and by two threads, with all subscriptions in it."""

from __future__ import annotations

import time
from collections.abc import Sequence
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
    walls: dict[str, list[float]] = {"1": [], "2": []}
    for _ in range(case.settings.rounds):
        for count, rounds in walls.items():
            rounds.append(timed(_publish_by, engine, published, int(count))[1].wall_s)
    return {
        "publish_cpu_us": publish_us,
        "subscribe_cpu_us": subscribe_us,
        "pairs": len(pairs),
        "pairs_cpu_s": took.cpu_s,
        "messages": len(published),
        "threads_wall_s": walls,
    }


def _publisher(engine: Engine) -> Any:
    return lambda text, place: engine.publish(text, at=place)


def _subscriber(engine: Engine) -> Any:
    return lambda call: engine.subscribe(**call)


def _forget(engine: Engine, calls: list[dict[str, Any]]) -> None:
    engine.unsubscribe(*(call["id"] for call in calls))


def _publish_by(engine: Engine, messages: list[tuple[str, tuple[float, float]]], threads: int) -> None:
    """Publish the messages, divided over threads."""

    def publish_part(part: list[tuple[str, tuple[float, float]]]) -> None:
        for text, place in part:
            engine.publish(text, at=place)

    parts = [messages[k::threads] for k in range(threads)]
    if threads == 1:
        publish_part(parts[0])
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(publish_part, parts))

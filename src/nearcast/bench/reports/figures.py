"""Numbers computed from raw results: those that tables and pictures show, and the cost figures of `auto`."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from nearcast.bench.runs.results import Result
from nearcast.bench.runs.timing import median, percentile
from nearcast.errors import InvalidInput
from nearcast.indexes.auto.costs import Costs


class Figures(NamedTuple):
    """One line of a report: one method on one group of messages of one case. None means not measured."""

    varied: dict[str, Any]
    workload: str
    subscriptions: int
    group: str
    method: str  # with its options
    messages: int  # matched in each round
    batch_us: float | None  # CPU time a message, in a batch: median of the rounds
    single_us: float | None  # CPU time a message, one call each: median
    single_p99_us: float | None
    ratio: float | None  # the baseline's batch_us / own batch_us: above 1 is faster
    build_s: float  # CPU time
    bytes_per_subscription: float  # of the method, without the stored rows
    stored_per_subscription: float  # bytes of the stored rows, the same for all methods
    whole_per_subscription: float | None  # bytes of an index built from tables: rows, method, ids and vocabulary
    peak_bytes: int | None  # peak memory of the process in this case, all methods together
    nodes: float  # a message
    candidates: float
    matches: float
    insert_us: float | None  # CPU time a row, in batches
    remove_us: float | None
    tables: dict[str, float] | None  # through the table API: see `_tables`
    match_one: dict[str, float] | None  # see `_match_one`
    threads: dict[str, dict[str, float]] | None  # by number of threads: see `_threads`
    whole: dict[str, float] | None = None  # the whole match of a set: see `_whole`
    table_build: dict[str, float] | None = None  # from a table: see `_table_build`
    engine: dict[str, float] | None = None  # see `_engine`


def figures(result: Result, baseline: str | None = None) -> list[Figures]:
    """All lines. The ratio is against `baseline`, or against the best other method if there is no baseline."""
    lines = []
    for run in result.runs:
        for group, records in run["groups"].items():
            names = [record["method"] for record in records]
            if baseline is not None and baseline not in names:
                raise InvalidInput(f"the baseline '{baseline}' was not measured; there are {', '.join(names)}")
            for own in records:
                compared = [baseline] if baseline else [name for name in names if name != own["method"]]
                others = [other for other in records if other["method"] in compared]
                lines.append(_line(run, group, own, _ratio(own, others)))
    return lines


def _line(run: dict[str, Any], group: str, record: dict[str, Any], ratio: float | None) -> Figures:
    name, messages = record["method"], record["messages"]
    subscriptions = run["workload"]["subscriptions"]
    build = _of(run["builds"], name)
    updates = _of(run.get("updates") or run.get("arrivals", []), name)
    whole = _of(run.get("tables", []), name)
    table = whole.get("groups", {}).get(group, {})
    work = {key: value / max(1, messages) for key, value in record["work"].items()}
    return Figures(
        run["varied"],
        run["workload"]["name"],
        subscriptions,
        group,
        name,
        messages,
        batch_us(record),
        median(record["singles_cpu_us"]),
        percentile(record["singles_cpu_us"], 0.99),
        ratio,
        build["cpu_s"],
        build["bytes"] / max(1, subscriptions),
        run["stored_bytes"] / max(1, subscriptions),
        whole["bytes"] / max(1, subscriptions) if whole else None,
        run["memory"]["peak_bytes"],
        work["nodes"],
        work["candidates"],
        work["matches"],
        _update_us(updates, "insert_cpu_s"),
        _update_us(updates, "remove_cpu_s"),
        _tables(table),
        _match_one(table),
        _threads(_of(run.get("threads", {}).get(group, []), name)),
        _whole(_of(run.get("whole", {}).get(group, []), name)),
        _table_build(whole, subscriptions),
        _engine(_of([each for each in run.get("engine", []) if each["group"] == group], name)),
    )


def _of(records: list[dict[str, Any]], method: str) -> dict[str, Any]:
    return next((record for record in records if record["method"] == method), {})


def batch_us(record: dict[str, Any], messages: int | None = None) -> float | None:
    """CPU time per message of a group's record, over all of its messages or over the first `messages`."""
    n = record["messages"] if messages is None else messages
    middle = median(record["rounds_cpu_s"].get(str(n), []))
    return None if middle is None or not n else middle / n * 1e6


def _ratio(own: dict[str, Any], others: list[dict[str, Any]]) -> float | None:
    """Time of the best other method / own time. Two methods are compared on the messages that both had."""
    ratios = []
    for other in others:
        shared = min(own["messages"], other["messages"])
        mine, theirs = batch_us(own, shared), batch_us(other, shared)
        if mine and theirs:
            ratios.append(theirs / mine)
    return min(ratios, default=None)


def _update_us(record: dict[str, Any], which: str) -> float | None:
    if which not in record:
        return None
    each = [took / rows * 1e6 for took, rows in zip(record[which], record["rows"], strict=True) if rows]
    return median(each)


_SUMMED = ("read", "kernel", "order", "write")


def _tables(record: dict[str, Any]) -> dict[str, float] | None:
    """Median CPU µs per message: the whole, its parts, the rest (whole - parts), and the ratio whole / kernel."""
    if not record.get("messages"):
        return None
    scale = 1e6 / record["messages"]
    rounds = {key.removesuffix("_cpu_s"): values for key, values in record.items() if key.endswith("_cpu_s")}
    parts = {name: (median(values) or 0.0) * scale for name, values in rounds.items()}
    summed = [sum(each) for each in zip(*(rounds[name] for name in _SUMMED), strict=True)]
    rests = [whole - parts_s for whole, parts_s in zip(rounds["whole"], summed, strict=True)]
    parts["rest"] = (median(rests) or 0.0) * scale
    if parts["kernel"] > 0:
        parts["ratio"] = parts["whole"] / parts["kernel"]
    return {"messages": record["messages"], **parts}


def _match_one(record: dict[str, Any]) -> dict[str, float] | None:
    """µs of `index.match_one`: median and 99th percentile, of CPU and of wall time."""
    if not record.get("ones_cpu_us"):
        return None
    summed: dict[str, float] = {"messages": len(record["ones_cpu_us"])}
    for clock in ("cpu", "wall"):
        readings = record[f"ones_{clock}_us"]
        summed |= {f"{clock}_us": median(readings) or 0.0, f"{clock}_p99_us": percentile(readings, 0.99) or 0.0}
    return summed


def _whole(record: dict[str, Any]) -> dict[str, float] | None:
    """CPU µs per message of the method and of the whole match, and the ratio whole / kernel."""
    if not record.get("messages"):
        return None
    scale = 1e6 / record["messages"]
    kernel, whole = ((median(record[f"{name}_cpu_s"]) or 0.0) * scale for name in ("kernel", "whole"))
    ratio = {"ratio": whole / kernel} if kernel > 0 else {}
    return {"messages": record["messages"], "kernel": kernel, "whole": whole} | ratio


def _table_build(record: dict[str, Any], subscriptions: int) -> dict[str, float] | None:
    """CPU µs per subscription: the whole of `build_index`, reading the table, and the rest, which is indexing."""
    if not record.get("read_rows") or not subscriptions:
        return None
    whole, read = record["build_cpu_s"] / subscriptions * 1e6, record["read_cpu_s"] / record["read_rows"] * 1e6
    return {"whole": whole, "read": read, "index": whole - read}


def _engine(record: dict[str, Any]) -> dict[str, float] | None:
    """CPU µs of a publish, a subscribe and a pair of both; messages per second of wall time by one and two threads."""
    if not record.get("messages") or not record.get("pairs"):
        return None
    one, two = (record["messages"] / (median(record["threads_wall_s"][count]) or 1.0) for count in ("1", "2"))
    walls = record.get("table_threads_wall_s", {})
    tables = [record["table_messages"] / (median(walls[count]) or 1.0) for count in ("1", "2") if count in walls]
    of_tables = {"table_one_per_s": tables[0], "table_ratio": tables[1] / tables[0]} if tables else {}
    return of_tables | {
        "messages": len(record["publish_cpu_us"]),
        "publish": median(record["publish_cpu_us"]) or 0.0,
        "publish_p99": percentile(record["publish_cpu_us"], 0.99) or 0.0,
        "subscribe": median(record["subscribe_cpu_us"]) or 0.0,
        "both": record["pairs_cpu_s"] / record["pairs"] * 1e6,
        "one_per_s": one,
        "two_per_s": two,
        "ratio": two / one,
    }


def _threads(record: dict[str, Any]) -> dict[str, dict[str, float]] | None:
    """Messages per second of wall time, and the ratio to the first number of threads."""
    if not record.get("messages"):
        return None
    walls = {count: median(rounds) for count, rounds in record["wall_s"].items()}
    first = next(iter(walls.values()))
    return {
        count: {"messages": record["messages"], "per_s": record["messages"] / wall, "ratio": first / wall}
        for count, wall in walls.items()
        if wall and first
    } or None


def fit_costs(runs: list[dict[str, Any]]) -> dict[str, tuple[Costs, float, float]]:
    """By method: the costs of a message, term, node, candidate and match, fitted to the measurements; the smallest and
    the largest estimate as a share of the measured time.
    """
    pieces: dict[str, list[list[float]]] = {}
    times: dict[str, list[float]] = {}
    for record in (record for run in runs for group in run["groups"].values() for record in group):
        middle = median(record["rounds_cpu_s"].get(str(record["messages"]), []))
        if record["messages"] and middle:
            work = record["work"]
            counts = [record["messages"], record["terms"], work["nodes"], work["candidates"], work["matches"]]
            pieces.setdefault(record["method"], []).append(counts)
            times.setdefault(record["method"], []).append(middle * 1e9)
    return {method: _fit(np.array(pieces[method], float), np.array(times[method])) for method in pieces}


def _fit(pieces: np.ndarray, times: np.ndarray) -> tuple[Costs, float, float]:
    """Least squares of relative errors without negative costs: the best over all choices of costs that are not 0."""
    shares = pieces / times[:, None]
    best, least = np.zeros(shares.shape[1]), np.inf
    for k in range(1, shares.shape[1] + 1):
        for columns in itertools.combinations(range(shares.shape[1]), k):
            chosen = list(columns)
            costs, *_ = np.linalg.lstsq(shares[:, chosen], np.ones(len(times)), rcond=None)
            error = float(((shares[:, chosen] @ costs - 1) ** 2).sum())
            if (costs >= 0).all() and error < least:
                best, least = np.zeros(shares.shape[1]), error
                best[chosen] = costs
    estimates = shares @ best
    return Costs(*(round(float(cost), 2) for cost in best)), float(estimates.min()), float(estimates.max())

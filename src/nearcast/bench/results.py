"""Raw results with their surroundings, as a JSON file, and the figures that are read off them."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from nearcast import __version__
from nearcast.bench.measure import median, percentile
from nearcast.errors import InvalidInput

FORMAT = "nearcast-bench"
FORMAT_VERSION = 1
_PACKAGES = ("numpy", "numba", "pyarrow")


@dataclass(frozen=True)
class Result:
    """What a sweep measured: raw, so that every table and picture can be made again."""

    sweep: dict[str, Any]
    surroundings: dict[str, Any]
    runs: list[dict[str, Any]]

    def document(self) -> dict[str, Any]:
        head = {"format": FORMAT, "version": FORMAT_VERSION}
        return head | {"sweep": self.sweep, "surroundings": self.surroundings, "runs": self.runs}


class Figures(NamedTuple):
    """One line of the report: a method on one group of messages of one case. None: not measured."""

    varied: dict[str, Any]
    workload: str
    subscriptions: int
    group: str
    method: str
    messages: int  # how many were matched in each round
    batch_us: float | None  # CPU time a message, in a batch: median of the rounds
    single_us: float | None  # CPU time a message, one call each: median
    single_p99_us: float | None
    ratio: float | None  # the baseline's batch_us / own batch_us: above 1 is faster
    build_s: float  # CPU time
    bytes_per_subscription: float  # beyond the stored rows
    nodes: float  # a message
    candidates: float
    matches: float
    insert_us: float | None  # CPU time a row, in batches
    remove_us: float | None
    table_us: float | None  # CPU time a message through the table API, strings in and table out


def figures(result: Result, baseline: str | None = None) -> list[Figures]:
    """All lines. The ratio is against `baseline`, or against the best other method where none is named."""
    lines = []
    for run in result.runs:
        for group, records in run["groups"].items():
            names = [record["method"] for record in records]
            if baseline is not None and baseline not in names:
                raise InvalidInput(f"the baseline '{baseline}' was not measured; there are {', '.join(names)}")
            for own in records:
                others = [other for other in records if _is_compared(other["method"], own["method"], baseline)]
                lines.append(_line(run, group, own, _ratio(own, others)))
    return lines


def _is_compared(other: str, own: str, baseline: str | None) -> bool:
    return other != own if baseline is None else other == baseline


def _line(run: dict[str, Any], group: str, record: dict[str, Any], ratio: float | None) -> Figures:
    name, messages = record["method"], record["messages"]
    subscriptions = run["workload"]["subscriptions"]
    build = _of(run["builds"], name)
    updates = _of(run.get("updates", []), name)
    work = {key: value / max(1, messages) for key, value in record["work"].items()}
    return Figures(
        run["varied"],
        run["workload"]["name"],
        subscriptions,
        group,
        name,
        messages,
        _batch_us(record),
        median(record["singles_cpu_us"]),
        percentile(record["singles_cpu_us"], 0.99),
        ratio,
        build["cpu_s"],
        build["bytes"] / max(1, subscriptions),
        work["nodes"],
        work["candidates"],
        work["matches"],
        _update_us(updates, "insert_cpu_s"),
        _update_us(updates, "remove_cpu_s"),
        _table_us(_of(run.get("tables", []), name), group),
    )


def _of(records: list[dict[str, Any]], method: str) -> dict[str, Any]:
    return next((record for record in records if record["method"] == method), {})


def _batch_us(record: dict[str, Any], messages: int | None = None) -> float | None:
    """Over all of its messages, or over the first so many."""
    n = record["messages"] if messages is None else messages
    middle = median(record["rounds_cpu_s"].get(str(n), []))
    return None if middle is None or not n else middle / n * 1e6


def _ratio(own: dict[str, Any], others: list[dict[str, Any]]) -> float | None:
    """The time of the best of the others / own time, pair by pair on the messages that both had."""
    ratios = []
    for other in others:
        shared = min(own["messages"], other["messages"])
        mine, theirs = _batch_us(own, shared), _batch_us(other, shared)
        if mine and theirs:
            ratios.append(theirs / mine)
    return min(ratios, default=None)


def _update_us(record: dict[str, Any], which: str) -> float | None:
    if not record:
        return None
    each = [took / rows * 1e6 for took, rows in zip(record[which], record["rows"], strict=True) if rows]
    return median(each)


def _table_us(record: dict[str, Any], group: str) -> float | None:
    if not record:
        return None
    measured = record["groups"][group]
    middle = median(measured["whole_cpu_s"])
    return None if middle is None or not measured["messages"] else middle / measured["messages"] * 1e6


# -- files


def save_result(result: Result, path: str | os.PathLike[str]) -> None:
    """Write the result as JSON, whole or not at all."""
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}")
        temporary.write_text(json.dumps(result.document(), indent=1) + "\n", encoding="utf-8")
        os.replace(temporary, target)
    except OSError as error:
        raise InvalidInput(f"{target} cannot be written: {error}") from None


def load_result(path: str | os.PathLike[str]) -> Result:
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} cannot be read as a benchmark's result: {error}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InvalidInput(f"{path} is no benchmark's result; `nearcast bench run --out DIR` writes result.json")
    if document.get("version") != FORMAT_VERSION:
        raise InvalidInput(f"{path} is of version {document.get('version')}; this version reads {FORMAT_VERSION}")
    return Result(document["sweep"], document["surroundings"], document["runs"])


# -- surroundings


def surroundings() -> dict[str, Any]:
    """When, where and with what: a figure without these cannot be compared."""
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "memory_bytes": _memory(),
        "peak_memory_bytes": _peak_memory(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": dict(_versions()),
        "commit": _commit(),
    }


def _versions() -> Iterator[tuple[str, str]]:
    yield "nearcast", __version__
    for package in _PACKAGES:
        try:
            yield package, version(package)
        except PackageNotFoundError:
            yield package, "not installed"


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _peak_memory() -> int | None:
    """Most memory that this process held at once, all methods together."""
    try:
        import resource  # not on Windows
    except ImportError:
        return None
    unit = 1 if platform.system() == "Darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _commit() -> str | None:
    """The commit of the checkout that this runs from, with a + where files differ from it."""
    git = ["git", "-C", str(Path(__file__).parent)]
    try:
        head = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, timeout=10)
        if head.returncode:
            return None
        changed = subprocess.run([*git, "status", "--porcelain", "-uno"], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    return head.stdout.strip() + ("+" if changed.stdout.strip() else "")

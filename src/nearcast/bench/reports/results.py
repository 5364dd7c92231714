"""Raw results with their surroundings, as a JSON file. What is read off them is in figures.py."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

from nearcast import __version__
from nearcast.bench.runs.memory import highest, peak_bytes
from nearcast.errors import InvalidInput

FORMAT = "nearcast-bench"
FORMAT_VERSION = 2
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


# -- files


class Documented(Protocol):
    def document(self) -> dict[str, Any]: ...


def save_result(result: Documented, path: str | os.PathLike[str]) -> None:
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


def surroundings(peaks: Iterable[int | None] = ()) -> dict[str, Any]:
    """When, where and with what: a figure without these cannot be compared. `peaks`: memory held earlier."""
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "memory_bytes": _memory(),
        "peak_memory_bytes": highest((*peaks, peak_bytes())),
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

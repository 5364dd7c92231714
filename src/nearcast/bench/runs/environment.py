"""The machine, the software and the memory of a benchmark: figures cannot be compared without them."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from nearcast import __version__

_PACKAGES = ("numpy", "numba", "pyarrow")
_CPU_INFO, _STATUS, _CLEAR = map(Path, ("/proc/cpuinfo", "/proc/self/status", "/proc/self/clear_refs"))
_RESET_PEAK = "5"  # Linux resets the peak when this is written to clear_refs


def describe_environment(peaks: Iterable[int | None] = ()) -> dict[str, Any]:
    """Time, machine, memory, versions and commit. `peaks` are memory peaks that were read earlier."""
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": _first_line(_CPU_INFO, "model name") or platform.processor() or "unknown",
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


def _first_line(file: Path, name: str) -> str | None:
    """The value of the first line `name: value`; None if there is none."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), None)


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _commit() -> str | None:
    """The commit of the checkout that this file belongs to, with a + if files differ from the commit."""
    describe = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--abbrev=12", "--dirty=+"]
    try:
        done = subprocess.run([*describe, "--exclude=*"], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    return None if done.returncode else done.stdout.strip()


# -- resident memory of this process


def reset_peak() -> None:
    """Reset the peak. On systems that cannot, the peak stays that of the whole process."""
    try:
        _CLEAR.write_text(_RESET_PEAK, encoding="ascii")
    except OSError:
        pass


def resident_bytes() -> int | None:
    """The resident memory now; None if the system does not report it."""
    return _status("VmRSS")


def peak_bytes() -> int | None:
    """The largest resident memory since `reset_peak`."""
    peak = _status("VmHWM")
    return peak if peak is not None else _peak_of_process()


def highest(readings: Iterable[int | None]) -> int | None:
    """The largest reading. Linux adds up the counts of its cores only now and then, so a later peak may read lower."""
    return max((reading for reading in readings if reading is not None), default=None)


def _status(name: str) -> int | None:
    line = _first_line(_STATUS, f"{name}:")
    return None if line is None else int(line.split()[0]) * 1024


def _peak_of_process() -> int | None:
    try:
        import resource  # not on Windows
    except ImportError:
        return None
    unit = 1 if platform.system() == "Darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

"""Resident memory of this process: now, and at most since the last reset."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from pathlib import Path

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_RESET_PEAK = "5"  # what Linux takes for "forget the peak"


def reset_peak() -> None:
    """Forget the peak so far, where the system can; else it stays that of the whole process."""
    try:
        _CLEAR.write_text(_RESET_PEAK, encoding="ascii")
    except OSError:
        pass


def resident_bytes() -> int | None:
    """What is held now; None where the system does not tell."""
    return _status("VmRSS")


def peak_bytes() -> int | None:
    """The most that was held at once since `reset_peak`."""
    peak = _status("VmHWM")
    return peak if peak is not None else _peak_of_process()


def highest(readings: Iterable[int | None]) -> int | None:
    """The largest reading. Linux counts pages per core and adds up now and then: a peak read later may be lower."""
    return max((reading for reading in readings if reading is not None), default=None)


def _status(name: str) -> int | None:
    try:
        lines = _STATUS.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:")), None)


def _peak_of_process() -> int | None:
    try:
        import resource  # not on Windows
    except ImportError:
        return None
    unit = 1 if platform.system() == "Darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

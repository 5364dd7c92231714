"""Resident memory of this process: the present value, and the peak since the last reset."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from pathlib import Path

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_RESET_PEAK = "5"  # Linux resets the peak when this is written to clear_refs


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

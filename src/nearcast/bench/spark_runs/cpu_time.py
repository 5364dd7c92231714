"""CPU time of Spark on this machine: the driver, Java, and the Python workers, including those that have ended."""

from __future__ import annotations

import os
from pathlib import Path

_PROCESSES = Path("/proc")
_PARENT, _TIMES = 3, slice(13, 17)  # fields of /proc/PID/stat: user and system time, own and of ended children


def cpu_seconds() -> float | None:
    """CPU seconds of this process and all its descendants; None if the system does not report them."""
    if not _PROCESSES.joinpath("self/stat").exists():
        return None
    stats = dict(_stats())
    family = {os.getpid()}
    grown = True
    while grown:  # parents may have larger numbers than their children
        more = {pid for pid, fields in stats.items() if int(fields[_PARENT]) in family} - family
        family |= more
        grown = bool(more)
    ticks = sum(int(part) for pid in family & stats.keys() for part in stats[pid][_TIMES])
    return ticks / os.sysconf("SC_CLK_TCK")


def _stats() -> list[tuple[int, list[str]]]:
    found = []
    for folder in _PROCESSES.iterdir():
        if folder.name.isdigit():
            try:
                text = (folder / "stat").read_text(encoding="ascii", errors="replace")
            except OSError:
                continue  # the process has just ended
            name_end = text.rindex(")")  # a name may contain spaces
            found.append((int(folder.name), ["", "", *text[name_end + 2 :].split()]))
    return found

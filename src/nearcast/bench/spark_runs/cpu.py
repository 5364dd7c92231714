"""CPU time of Spark on this machine: the driver, Java, and the Python workers, dead ones included."""

from __future__ import annotations

import os
from pathlib import Path

_PROCESSES = Path("/proc")
_PARENT, _TIMES = 3, slice(13, 17)  # of a line of /proc/PID/stat: own and dead children's, user and system


def cpu_seconds() -> float | None:
    """Of this process and all below it since they started; None where the system does not tell."""
    if not _PROCESSES.joinpath("self/stat").exists():
        return None
    stats = dict(_stats())
    wanted, seconds = {os.getpid()}, 0
    grown = True
    while grown:  # parents may have larger numbers than their children
        more = {pid for pid, fields in stats.items() if int(fields[_PARENT]) in wanted} - wanted
        wanted |= more
        grown = bool(more)
    for pid in wanted & stats.keys():
        seconds += sum(int(part) for part in stats[pid][_TIMES])
    return seconds / os.sysconf("SC_CLK_TCK")


def _stats() -> list[tuple[int, list[str]]]:
    found = []
    for folder in _PROCESSES.iterdir():
        if folder.name.isdigit():
            try:
                text = (folder / "stat").read_text(encoding="ascii", errors="replace")
            except OSError:
                continue  # it has just ended
            name_end = text.rindex(")")  # a name may hold spaces
            found.append((int(folder.name), ["", "", *text[name_end + 2 :].split()]))
    return found

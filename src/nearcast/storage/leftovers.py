"""Removes what killed writers left: files that no manifest names."""

from __future__ import annotations

from nearcast.storage.location import Location

ABANDONED_SECONDS = 3600
"""Since the last file was written. Before that, another writer may still be at work."""


def remove_quietly(place: Location) -> None:
    """Remove what no manifest names. It is only in the way: a store that does not answer now is no error."""
    try:
        place.remove()
    except OSError:
        return


def abandoned_below(place: Location, prefix: str) -> list[str]:
    """The folders with this prefix whose newest file is much older than the newest file of all.

    All times are the store's, so the clock of this host does not matter.
    """
    first = len(place.path.rstrip("/")) + 1
    try:
        files = [(entry.location.path[first:].partition("/")[0], entry.time_ns) for entry in place.files()]
    except OSError:
        return []
    newest: dict[str, int] = {}
    for name, time_ns in files:
        newest[name] = max(time_ns, newest.get(name, 0))
    last = max(newest.values(), default=0)
    limit = ABANDONED_SECONDS * 1_000_000_000
    return sorted(name for name, time_ns in newest.items() if name.startswith(prefix) and last - time_ns > limit)

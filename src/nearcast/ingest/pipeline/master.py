"""Checks a master before Java starts: Spark itself needs a minute to say that no one answers."""

from __future__ import annotations

import re
import socket

from nearcast.errors import InvalidInput, MissingPart

_KNOWN = re.compile(r"local(\[[^\]]+\])?|local-cluster\[[^\]]+\]|yarn|k8s://.+|spark://.+")
_ADDRESS = re.compile(r"\[?([^\[\]]+)\]?:(\d+)")
_SECONDS = 2.0  # for each host


def check_master(master: str) -> None:
    """Raise in bounded time if this is no master of Spark, or if no host of spark://HOST:PORT answers."""
    if not _KNOWN.fullmatch(master):
        raise InvalidInput(f"'{master}' is no master of Spark; write local[*], spark://HOST:7077, yarn or k8s://...")
    if not master.startswith("spark://"):
        return
    reasons = []
    for address in master.removeprefix("spark://").split(","):
        found = _ADDRESS.fullmatch(address)
        if found is None or int(found[2]) > 65_535:
            raise InvalidInput(f"'{master}' is no master of Spark; write spark://HOST:7077")
        try:
            socket.create_connection((found[1], int(found[2])), _SECONDS).close()
            return
        except OSError as error:
            reasons.append(f"{address}: {error.strerror or error}")
    raise MissingPart(f"no master of Spark answers at {master} ({'; '.join(reasons)}); start it, or name another one")

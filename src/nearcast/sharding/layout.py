"""The two layouts of matching on a cluster: every task asks all shards, or each shard has its own tasks."""

from __future__ import annotations

import os
from typing import Literal

from nearcast.errors import InvalidInput

Layout = Literal["auto", "replicated", "sharded"]

_MOST_OF_MEMORY = 0.5  # of a machine, for an index that every worker maps


def chosen_layout(nbytes: int, layout: Layout) -> str:
    """`auto`: replicated while the whole index takes at most half of a machine's memory."""
    if layout not in ("auto", "replicated", "sharded"):
        raise InvalidInput(f"no layout '{layout}'; it is auto, replicated or sharded")
    if layout != "auto":
        return layout
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return "replicated" if nbytes <= _MOST_OF_MEMORY * memory_bytes else "sharded"

"""nearcast on Spark: DataFrames in, DataFrames out; streams with live changes; and the pipeline from raw files
to matches.

    from nearcast import spark as ncs

    index = ncs.open_index("/data/index")
    matches = ncs.match(messages_df, index)

Each public name is loaded on first use: importing this package does not import PySpark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nearcast.sharding.index_handle import open_handle
    from nearcast.sharding.stateful.snapshots import state_rejects as state_rejects
    from nearcast.sharding.stateful.snapshots import state_sizes as state_sizes
    from nearcast.spark.frames.build import build_index as build_index
    from nearcast.spark.frames.functions import register as register
    from nearcast.spark.frames.functions import tokens as tokens
    from nearcast.spark.frames.functions import vocabulary as vocabulary
    from nearcast.spark.frames.match import match as match
    from nearcast.spark.frames.match import rejects as rejects
    from nearcast.spark.frames.stateful import moving as moving
    from nearcast.spark.frames.stateful import top as top
    from nearcast.spark.streaming.stream import stream as stream

    open_index = open_handle

_PLACES = {
    "build_index": ("nearcast.spark.frames.build", "build_index"),
    "match": ("nearcast.spark.frames.match", "match"),
    "moving": ("nearcast.spark.frames.stateful", "moving"),
    "open_index": ("nearcast.sharding.index_handle", "open_handle"),
    "register": ("nearcast.spark.frames.functions", "register"),
    "rejects": ("nearcast.spark.frames.match", "rejects"),
    "state_rejects": ("nearcast.sharding.stateful.snapshots", "state_rejects"),
    "state_sizes": ("nearcast.sharding.stateful.snapshots", "state_sizes"),
    "stream": ("nearcast.spark.streaming.stream", "stream"),
    "tokens": ("nearcast.spark.frames.functions", "tokens"),
    "top": ("nearcast.spark.frames.stateful", "top"),
    "vocabulary": ("nearcast.spark.frames.functions", "vocabulary"),
}

__all__ = sorted(_PLACES)


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'nearcast.spark' has no attribute '{name}'")
    module, inner = _PLACES[name]
    return getattr(import_module(module), inner)


def __dir__() -> list[str]:
    return __all__

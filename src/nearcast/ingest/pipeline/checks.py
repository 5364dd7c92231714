"""Checks of a step's arguments and of the columns of its tables, before Spark starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

import nearcast.indexes  # noqa: F401  registers every method
from nearcast.errors import InvalidInput
from nearcast.geo.space import Space
from nearcast.ingest.mapping import Kind, resolve_columns
from nearcast.ingest.row_groups import empty_table
from nearcast.matching.method import find_method
from nearcast.sharding.live.ownership import check_own, mounted_folder
from nearcast.sharding.sharded_index import open_sharded
from nearcast.sharding.weights import given_weights
from nearcast.storage.location import locate
from nearcast.text.analyser import Analyser


def check_build(subscriptions: str, messages: str | None, out: str, options: Mapping[str, Any]) -> None:
    """Raise what a build would raise about its arguments and the columns of its tables."""
    find_method("match", options["method"])
    Space.of(options.get("space"))
    Analyser.of(options.get("analyser"))
    if options.get("weights"):
        given_weights(options["weights"])
    check_table(subscriptions, "subscriptions")
    if messages is not None:
        check_table(messages)
    if locate(out).is_file():
        raise InvalidInput(f"{out} is a file; name a folder")


def check_match(index: str, messages: str) -> None:
    open_sharded(index)
    check_table(messages, "messages")


def check_stream(index: str, messages: str | None, outputs: Sequence[str], changes: str | None = None) -> None:
    """Raise what a stream would raise about its places, without Spark."""
    if messages is not None and not mounted_folder(messages, "folder of messages").is_dir():
        raise InvalidInput(f"{messages} is no folder; a stream reads message files that are moved into one")
    if changes is not None:
        mounted_folder(changes, "change log")
    marks = ("_stream.json", "stream.json")
    for path, what, mark in zip(outputs, ("output", "checkpoint"), marks, strict=True):
        check_own(mounted_folder(path, what), mark)
    open_sharded(index)


def check_table(path: str, kind: Kind | None = None) -> None:
    """Raise if a table cannot be read or lacks columns. An empty folder is an empty table."""
    try:
        empty = empty_table(path)
    except pa.ArrowException as error:
        raise InvalidInput(f"{path} cannot be read: {error}") from None
    if empty is not None and kind is not None:
        try:
            resolve_columns(kind, {}, empty.column_names)
        except InvalidInput as error:
            raise InvalidInput(f"{path}: {error}") from None

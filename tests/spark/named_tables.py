"""The same tables with other ids: strings or UUIDs, whose order is not that of the numbers they were made from."""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa

ID_TYPES = {"string": pa.string(), "large_string": pa.large_string(), "uuid": pa.uuid(), "bytes16": pa.binary(16)}


def named(table: pa.Table, kind: str) -> pa.Table:
    """The table with ids of this type, one of ID_TYPES, or as it is for "int64"."""
    if kind == "int64":
        return table
    numbers = table["id"].to_pylist()
    made: list[Any] = [None if number is None else name_of(number, kind) for number in numbers]
    if kind == "uuid":
        storage = pa.array([None if each is None else each.bytes for each in made], pa.binary(16))
        ids = pa.ExtensionArray.from_storage(pa.uuid(), storage)
    else:
        ids = pa.array([each.bytes if isinstance(each, uuid.UUID) else each for each in made], ID_TYPES[kind])
    return table.set_column(table.column_names.index("id"), "id", ids)


def name_of(number: int, kind: str) -> Any:
    """Names of different lengths, some with letters of several bytes."""
    if "string" in kind:
        return f"{'né' * (number % 3)}{number % 7}-{number}"
    return uuid.uuid5(uuid.NAMESPACE_OID, str(number))

"""The types that ids may have, in Arrow and in Python."""

from __future__ import annotations

import uuid
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.errors import InvalidInput
from nearcast.model import Id

__all__ = ["BYTES16", "INT64", "STRING", "UUID", "UUID_BYTES", "Id", "IdType"]

UUID_BYTES = 16


class IdType(NamedTuple):
    """What the ids of a table are. Tables of results have the same Arrow type."""

    name: str  # "int64", "string" or "uuid"
    arrow: pa.DataType
    words: str  # what errors call such ids

    @property
    def is_number(self) -> bool:
        """Whether an id is its own number inside."""
        return self.name == "int64"


INT64 = IdType("int64", pa.int64(), "whole numbers")
STRING = IdType("string", pa.string(), "strings")
UUID = IdType("uuid", pa.uuid(), "UUIDs")
BYTES16 = IdType("uuid", pa.binary(UUID_BYTES), "UUIDs")
"""UUIDs as 16 bytes, as older Parquet files have them."""

_BY_HEADER = {"int64": INT64, "string": STRING, "uuid": UUID, "bytes16": BYTES16}


def type_of(kind: pa.DataType) -> IdType:
    """The type of the ids in an Arrow column. Numbers of any width are read as int64."""
    if kind == UUID.arrow:
        return UUID
    if kind == BYTES16.arrow:
        return BYTES16
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return STRING
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return INT64
    raise InvalidInput(f"ids are whole numbers, strings or UUIDs, not {kind}", column="id")


def type_of_value(value: Any) -> IdType | None:
    """The type of an id in Python; None if the value is no id."""
    if isinstance(value, bool | np.bool_):
        return None
    if isinstance(value, int | np.integer):
        return INT64
    if isinstance(value, str):
        return STRING
    return UUID if isinstance(value, uuid.UUID) else None


def header_of(kind: IdType | None) -> str | None:
    """The type as a saved header has it."""
    return next((name for name, each in _BY_HEADER.items() if kind is not None and each.arrow == kind.arrow), None)


def of_header(name: str | None) -> IdType | None:
    return None if name is None else _BY_HEADER[name]

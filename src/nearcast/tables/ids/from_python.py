"""Reads ids that are given as Python's objects or as arrays, one or many."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.arguments import is_unicode
from nearcast.errors import InvalidInput
from nearcast.tables.columns import column, whole_numbers
from nearcast.tables.faults import Faults
from nearcast.tables.ids.id_columns import IdColumn, named_column
from nearcast.tables.ids.id_types import INT64, STRING, Id, IdType, type_of, type_of_value


def id_column(given: Any, name: str = "id") -> IdColumn:
    """Ids from Python: one id, or an array, a list or any iterable of ids of one type."""
    if isinstance(given, str | uuid.UUID | int | np.integer):
        given = [given]
    if isinstance(given, pa.ChunkedArray | pa.Array):
        return _of_arrow(given, name)
    if isinstance(given, np.ndarray) and given.dtype.kind in "iu" and given.ndim == 1:
        return IdColumn(INT64, _whole(given, name), None)
    is_one = isinstance(given, np.ndarray) and given.ndim == 0
    if is_one or not isinstance(given, Iterable) or isinstance(given, dict | bytes):
        raise InvalidInput(f"ids are given as an id or a list of ids, not {type(given).__name__}", column=name)
    values = [_plain(each) for each in given]
    if not values:
        return IdColumn(INT64, np.empty(0, np.int64), None)
    kinds = [type_of_value(value) for value in values]
    for row, kind in enumerate(kinds):
        if kind is None or kind != kinds[0]:
            raise InvalidInput(_wrong_value(values[row], kind, kinds[0]), row=row, column=name)
    kind = kinds[0]
    assert kind is not None
    if kind.is_number:
        return IdColumn(INT64, _whole(values, name), None)
    return _of_arrow(_arrow_of(values, kind, name), name)


def checked_id(value: Any, name: str = "id") -> tuple[Id, IdType]:
    """(one id as Python has it, its type). A whole number of NumPy becomes one of Python."""
    kind = type_of_value(value)
    if kind is INT64 and -(2**63) <= value < 2**63:
        return int(value), kind
    if kind is None or kind is INT64 or value == "":
        raise InvalidInput(f"{name}= is a whole number within int64, a string or a UUID, not {value!r}", column=name)
    one_id(value, name)
    return value, kind


def one_id(value: Any, name: str = "id") -> IdColumn:
    """One id as a column of one row."""
    if type_of_value(value) is None:
        raise InvalidInput(_wrong_value(value, None, None), column=name)
    return id_column([value], name)


def _plain(value: Any) -> Any:
    return value.as_py() if isinstance(value, pa.Scalar) else value


def _wrong_value(value: Any, kind: IdType | None, first: IdType | None) -> str:
    if kind is None or first is None:
        return f"an id is a whole number, a string or a UUID, not {value!r}"
    return f"{value!r}: the ids before it are {first.words}; the ids of one table are of one type"


def _whole(values: Any, name: str) -> np.ndarray:
    """int64[n]"""
    try:
        made = np.array([int(value) for value in values] if isinstance(values, list) else values)
        if made.dtype == np.uint64 and len(made) and made.max() >= 2**63:
            raise OverflowError
        return made.astype(np.int64) if made.dtype.kind in "iu" else np.array(made, np.int64)
    except OverflowError:
        large = next(value for value in values if not -(2**63) <= int(value) < 2**63)
        raise InvalidInput(f"{name} {large} is not a whole number within int64", column=name) from None


def _arrow_of(values: list[Any], kind: IdType, name: str) -> pa.Array:
    try:
        return (
            pa.array(values, pa.string()) if kind is STRING else pa.array([each.bytes for each in values], kind.arrow)
        )
    except (pa.ArrowInvalid, UnicodeEncodeError):
        bad = next(value for value in values if not is_unicode(value))
        raise InvalidInput(
            f"the id {bad!r} is no valid Unicode; take the unpaired surrogate out", column=name
        ) from None


def _of_arrow(values: pa.Array | pa.ChunkedArray, name: str) -> IdColumn:
    faults = Faults(len(values), "raise")
    table = pa.table({"id": values})
    whole = column(table, "id")
    if whole is None:
        raise InvalidInput("no id; a null is not an id", column=name)
    kind = type_of(whole.type)
    ids = (
        IdColumn(INT64, whole_numbers(whole, "id", faults), None)
        if kind.is_number
        else named_column(whole, kind, faults)
    )
    faults.raise_or_reject(table)
    return ids


def id_values(values: Any) -> Any:
    """The values of a column `id` in Python, after a check that they are of one type."""
    if not isinstance(values, list | tuple):
        return values
    first: IdType | None = None
    for row, value in enumerate(values):
        kind = type_of_value(value)
        if kind is None:
            continue
        if kind is INT64 and not -(2**63) <= value < 2**63:
            raise InvalidInput(f"{value} is not a whole number within int64", row=row, column="id")
        first = first or kind
        if kind is not first:
            raise InvalidInput(_wrong_value(value, kind, first), row=row, column="id")
    return _arrow_of(list(values), first, "id") if first is STRING and None not in values else values

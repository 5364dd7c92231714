"""Reads single columns of an Arrow table as arrays, and records a fault for each value that is not valid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.arrays.arrow import filled, is_null_mask, one_array, strings
from nearcast.errors import InvalidInput
from nearcast.model import NO_TIME
from nearcast.tables.faults import Faults

NULL_WORDS = ("NA", "N/A", "NULL", "null")
"""What stands for no value in a column of numbers or times. In a column of text these are words."""


def require_one(table: pa.Table, names: tuple[str, ...], what: str) -> None:
    """Raise InvalidInput unless one of these columns exists: a misspelt name must not silently mean "no tokens"."""
    if not set(names) & set(table.column_names):
        wanted = " or ".join(f"'{name}'" for name in names)
        there = ", ".join(table.column_names) or "none"
        raise InvalidInput(f"{what} need a column {wanted}; there are {there}", column=names[0])


def column(table: pa.Table, name: str) -> pa.Array | None:
    """The column as one array, decoded if dictionary-encoded. None if the column is absent or of the null type."""
    if name not in table.column_names:
        return None
    values = table.column(name)
    if pa.types.is_null(values.type):
        return None
    values = one_array(values)
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def strings_of(table: pa.Table, name: str) -> pa.Array | None:
    """A text column, or None if the table has no such column."""
    values = column(table, name)
    if values is None:
        return None
    if pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type):
        values = _as_utf8(values, name)
    try:
        return strings(values)
    except InvalidInput:
        raise InvalidInput(f"it must hold text, not {values.type}; write its values as strings", column=name) from None


def _as_utf8(values: pa.Array, name: str) -> pa.Array:
    """Bytes as text: files with bytes that are no UTF-8 are read so."""
    for row, value in enumerate(values.to_pylist()):
        try:
            _ = value is None or value.decode()
        except UnicodeDecodeError as error:
            reason = f"byte {error.start + 1} of {value[:30]!r} is no UTF-8; save the file as UTF-8"
            raise InvalidInput(reason, row=row, column=name) from None
    return values.cast(pa.string() if pa.types.is_binary(values.type) else pa.large_string())


def cast(values: pa.Array, to: pa.DataType, name: str, faults: Faults, reason: str) -> pa.Array:
    """The values as another type. A value that cannot be converted becomes null and a fault."""
    if values.type == to:
        return values
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        values = pc.if_else(pc.is_in(values, pa.array(NULL_WORDS, values.type)), None, values)
    try:
        return values.cast(to)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        out = [_cast_one(value, to) for value in values]
        bad = np.array([made is None and value.is_valid for made, value in zip(out, values, strict=True)], bool)
        for row in np.flatnonzero(bad):
            faults.add(int(row), name, f"{shown(values[int(row)])} {reason}")
        return pa.array(out, to)


def shown(value: pa.Scalar) -> str:
    """The value for an error. Times beyond those of Python are shown as Arrow shows them."""
    try:
        return repr(value.as_py())
    except (OverflowError, ValueError):
        return str(value.cast(pa.int64()) if pa.types.is_temporal(value.type) else value)


def _cast_one(value: pa.Scalar, to: pa.DataType) -> Any:
    try:
        return value.cast(to).as_py()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def whole_numbers(values: pa.Array, name: str, faults: Faults) -> np.ndarray:
    """int64[n]: the values of column `name`; each null, NaN or unreadable value is a fault."""
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), None, values)
    whole = cast(values, pa.int64(), name, faults, "is not a whole number within int64")
    if whole.null_count:
        faults.add_where(is_null_mask(whole), name, f"no {name}; give each row a whole number")
    return np.asarray(filled(whole, 0).to_numpy(zero_copy_only=False))


def repeated_rows(values: np.ndarray, faults: Faults) -> np.ndarray:
    """The good rows whose value occurs in an earlier good row. `values` are those of the good rows."""
    order = np.argsort(values, kind="stable")
    return np.asarray(faults.good_rows[order[1:][values[order[1:]] == values[order[:-1]]]])


def floats_of(table: pa.Table, name: str, faults: Faults) -> np.ndarray | None:
    """float64[n]: a column of numbers, NaN for nulls. None if the table has no such column."""
    values = column(table, name)
    if values is None:
        return None
    numbers = cast(values, pa.float64(), name, faults, "is not a number; write digits alone, as in 3.5")
    return np.asarray(filled(numbers, np.nan).to_numpy(zero_copy_only=False))


def times_of(table: pa.Table, name: str, faults: Faults, absent: int = NO_TIME) -> np.ndarray:
    """int64[n]: microseconds since 1970 UTC, `absent` for nulls. Times and ISO strings without a zone are UTC."""
    values = column(table, name)
    if values is None:
        return np.full(table.num_rows, absent, np.int64)
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        values = _zoned(values)
    stamps = cast(values, _stamp_type(values.type), name, faults, "is not a time; write it as 2026-01-31T12:00:00Z")
    if pa.types.is_timestamp(stamps.type) and stamps.type.unit != "us":
        stamps = stamps.cast(pa.timestamp("us", stamps.type.tz), safe=False)
    micros = stamps.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
    return np.asarray(filled(micros, absent).to_numpy(zero_copy_only=False))


def _zoned(values: pa.Array) -> pa.Array:
    """ISO dates as their midnight, and times without a zone as UTC: Arrow demands both."""
    values = pc.replace_substring_regex(values, r"^([0-9]{4}-[0-9]{2}-[0-9]{2})$", r"\1T00:00:00Z")
    return pc.replace_substring_regex(values, r"^([0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]+)$", r"\1Z")


def _stamp_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz) if kind.unit in ("s", "ms") else kind
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return pa.timestamp("us", "UTC" if is_text else None)


def tokens_of(table: pa.Table, faults: Faults) -> pa.Array | None:
    """list<string>: the `tokens` column, split at white space if it has strings. A null within a list is a fault."""
    values = column(table, "tokens")
    if values is None:
        return None
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        return pc.utf8_split_whitespace(pc.utf8_trim_whitespace(values))
    if not (
        pa.types.is_list(values.type) or pa.types.is_large_list(values.type) or pa.types.is_fixed_size_list(values.type)
    ):
        raise InvalidInput(f"tokens are a list of strings, not {values.type}", column="tokens")
    flat, parents = pc.list_flatten(values), pc.list_parent_indices(values)
    if flat.null_count:
        for row in np.unique(parents.filter(flat.is_null()).to_numpy(zero_copy_only=False)):
            faults.add(int(row), "tokens", "a token is null; leave it out")
    return values

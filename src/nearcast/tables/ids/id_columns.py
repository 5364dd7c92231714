"""Reads ids from tables, and finds missing and repeated ones."""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.arrays.arrow import is_null_mask, string_buffers
from nearcast.errors import MadeIds
from nearcast.tables.columns import column, repeated_rows, require_one, whole_numbers
from nearcast.tables.faults import Faults
from nearcast.tables.ids.id_types import INT64, STRING, UUID, UUID_BYTES, Id, IdType, type_of


class IdColumn(NamedTuple):
    """The ids of some rows. Whole numbers are their own numbers; others are numbered in their order."""

    type: IdType
    numbers: np.ndarray  # int64[n]  equal ids have equal numbers, and a smaller id has a smaller number
    values: pa.Array | None  # string or binary(16) [n]; None for whole numbers

    def take(self, rows: np.ndarray) -> IdColumn:
        """The ids of these rows."""
        return IdColumn(
            self.type, self.numbers[rows], None if self.values is None else self.values.take(pa.array(rows))
        )

    def part(self, first: int, stop: int) -> IdColumn:
        """The ids of the rows first .. stop-1."""
        values = None if self.values is None else self.values.slice(first, stop - first)
        return IdColumn(self.type, self.numbers[first:stop], values)

    def python(self, rows: Sequence[int] | None = None) -> list[Id]:
        """The ids, or those of some rows, as Python has them."""
        chosen = self if rows is None else self.take(np.asarray(rows, np.int64))
        if chosen.values is None:
            return list(chosen.numbers.tolist())
        return [shown_id(value, self.type) for value in chosen.values]

    def buffers(self) -> tuple[np.ndarray, np.ndarray]:
        """(bytes, offsets int64[n+1]) of ids that are no numbers."""
        assert self.values is not None
        if pa.types.is_fixed_size_binary(self.values.type):
            raw = np.frombuffer(self.values.buffers()[1] or b"", np.uint8)[UUID_BYTES * self.values.offset :]
            offsets = np.arange(len(self.values) + 1, dtype=np.int64) * UUID_BYTES
            offsets.flags.writeable = False
            return raw, offsets
        return string_buffers(self.values)

    def arrow(self, rows: np.ndarray) -> pa.Array:
        """The ids of these rows, as tables of results have them."""
        if self.values is None:
            return pa.array(self.numbers[rows])
        return as_outside(self.values.take(pa.array(rows)), self.type)


def as_outside(values: pa.Array, kind: IdType) -> pa.Array:
    """Strings, or 16 bytes each, as the type of the ids."""
    if kind.arrow == UUID.arrow:
        return pa.ExtensionArray.from_storage(kind.arrow, values)
    return values


def read_ids(
    table: pa.Table, faults: Faults, what: str, *, may_repeat: bool = False, of: IdType | None = None
) -> IdColumn:
    """The column `id`. Missing, repeated, fractional and too large ids are faults. With `of`, ids are of that type:
    texts of whole numbers are read as these, and whole numbers as their texts.
    """
    require_one(table, ("id",), what)
    values = column(table, "id")
    if values is None:
        faults.add_where(np.ones(table.num_rows, bool), "id", "no id; give each row a whole number, a string or a UUID")
        return IdColumn(INT64, np.zeros(table.num_rows, np.int64), None)
    kind = type_of(values.type) if of is None else of
    if kind is STRING and type_of(values.type) is INT64:
        values = pa.array(whole_numbers(values, "id", faults), mask=is_null_mask(values)).cast(pa.string())
    if kind.is_number:
        numbers = whole_numbers(values, "id", faults)
        ids = IdColumn(INT64, numbers, None)
    else:
        ids = named_column(values, kind, faults)
    if may_repeat:
        return ids
    for row in repeated_rows(ids.numbers[faults.good_rows], faults):
        shown = ids.numbers[row] if ids.values is None else repr(shown_id(ids.values[int(row)], kind))
        faults.add(int(row), "id", f"id {shown} is already in this table; ids must differ")
    return ids


def id_type_in(table: pa.Table) -> IdType:
    """The type of the ids of a table, which may have no rows; whole numbers where it has no column `id`."""
    values = column(table, "id")
    return INT64 if values is None else type_of(values.type)


def made_ids(table: pa.Table, what: str) -> IdColumn | None:
    """Row numbers, with a warning, if the table has no column `id`."""
    if "id" in table.column_names:
        return None
    there = ", ".join(table.column_names) or "none"
    text = f"the {what} have no column 'id' (there are {there}); row numbers, from 0, are their ids"
    warnings.warn(text, MadeIds, stacklevel=2)
    return IdColumn(INT64, np.arange(table.num_rows), None)


def named_column(values: pa.Array, kind: IdType, faults: Faults) -> IdColumn:
    """Strings or UUIDs. A null and an empty string are faults."""
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    elif kind is STRING:
        values = values.cast(pa.large_string()) if pa.types.is_string_view(values.type) else values
        faults.add_where(np.asarray(pc.equal(values, "").fill_null(False)), "id", "the id is empty; give each row one")
    if values.null_count:
        faults.add_where(is_null_mask(values), "id", f"no id; the ids of this table are {kind.words}")
    return IdColumn(kind, ordinal_numbers(values), values)


def ordinal_numbers(values: pa.Array) -> np.ndarray:
    """int64[n]: for each value how many distinct ones are smaller. Strings are compared by their UTF-8 bytes.

    Tables in the order of their ids, the most frequent ones, are not sorted: that takes 8 ns a row instead of 1,300.
    """
    n = len(values)
    if n < 2 or (not values.null_count and pc.all(pc.less(values[:-1], values[1:])).as_py()):
        return np.arange(n)
    order = np.asarray(pc.array_sort_indices(values)).astype(np.int64)
    ordered = values.take(pa.array(order))
    is_new = np.zeros(n, bool)
    is_new[1:] = ~np.asarray(pc.equal(ordered[1:], ordered[:-1]).fill_null(True))
    numbers = np.empty(n, np.int64)
    numbers[order] = np.cumsum(is_new)
    return numbers


def as_text(ids: pa.Array) -> pa.Array:
    """The ids, with UUIDs as their usual texts: for those who have no such type."""
    storage = ids.storage if isinstance(ids, pa.ExtensionArray) else ids
    if not pa.types.is_fixed_size_binary(storage.type):
        return ids
    raw = np.frombuffer(storage.buffers()[1] or b"", np.uint8)[UUID_BYTES * storage.offset :][: UUID_BYTES * len(ids)]
    digits = np.frombuffer(raw.tobytes().hex().encode(), np.uint8).reshape(len(ids), 2 * UUID_BYTES)
    text = np.full((len(ids), 36), ord("-"), np.uint8)
    text[:, _DIGITS] = digits
    starts = np.arange(len(ids) + 1, dtype=np.int32) * 36
    return pa.StringArray.from_buffers(len(ids), pa.py_buffer(starts), pa.py_buffer(text))


_DIGITS = np.delete(np.arange(36), (8, 13, 18, 23))  # where the hexadecimal digits of a UUID stand in its text


def shown_id(value: pa.Scalar, kind: IdType) -> Id:
    """A stored value as Python has it."""
    plain = value.as_py()
    return uuid.UUID(bytes=plain) if kind.name == "uuid" and isinstance(plain, bytes) else plain

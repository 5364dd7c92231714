"""The conditions that a vocabulary knows, by column, and the terms of those that hold on a message.

A condition that holds is a term of the message, as a token is. So conditions decide which lists a method reads, and
every method serves them. The price: a message has as many more terms as conditions hold on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.arrays.arrow import one_array
from nearcast.arrays.ragged import starts_of, take
from nearcast.text.filters.condition import SORTS, Condition

_MOST_CACHED = 65_536
_NO_TERMS = np.empty(0, np.int32)
Ragged = tuple[np.ndarray, np.ndarray]


class _Column:
    """The conditions on one column, and a cache of the terms of values. One thread may add while others read."""

    def __init__(self) -> None:
        self._conditions = list[tuple[int, Condition]]()
        self._cache = dict[tuple[type, Any], np.ndarray]()

    def add(self, term: int, condition: Condition) -> None:
        self._conditions.append((term, condition))
        self._cache = {}  # after the condition: what readers still put into the old cache is not read any more

    def terms(self, value: Any) -> np.ndarray:
        """int32[k]: the terms of the conditions that hold on a value."""
        value = value.item() if isinstance(value, np.generic) else value
        if not isinstance(value, SORTS):
            return _NO_TERMS
        cache, key = self._cache, (type(value), value)
        found = cache.get(key)
        if found is None:
            holding = [term for term, condition in list(self._conditions) if condition.holds(value)]
            found = np.array(holding, np.int32)
            if len(cache) >= _MOST_CACHED:
                cache.clear()
            cache[key] = found
        return found


class KnownConditions:
    """Conditions by column. One thread may add while others read."""

    def __init__(self) -> None:
        self._columns = dict[str, _Column]()

    def add(self, term: int, condition: Condition) -> None:
        found = self._columns.get(condition.column)
        column = _Column() if found is None else found
        column.add(term, condition)
        if found is None:
            self._columns = self._columns | {condition.column: column}  # a new dict: readers may be at the old one

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that conditions name."""
        return tuple(self._columns)

    def terms(self, attributes: Mapping[str, Any]) -> np.ndarray:
        """int32[k]: the terms of the conditions that hold on these attributes, in any order."""
        columns = self._columns
        found = [columns[name].terms(value) for name, value in attributes.items() if name in columns]
        return np.concatenate(found) if found else _NO_TERMS

    def term_sets(self, attributes: pa.Table) -> Ragged:
        """(terms, starts): the same for each row of a table."""
        made = np.zeros(0, np.int32), np.zeros(attributes.num_rows + 1, np.int64)
        for name, column in self._columns.items():
            if name in attributes.column_names:
                made = side_by_side(made, _terms_of_column(column, one_array(attributes.column(name))))
        return made


def _terms_of_column(column: _Column, values: pa.Array) -> Ragged:
    """Each distinct value is compared once."""
    if pa.types.is_nested(values.type) or pa.types.is_null(values.type):
        return _NO_TERMS, np.zeros(len(values) + 1, np.int64)
    coded = values if pa.types.is_dictionary(values.type) else _without_nanoseconds(values).dictionary_encode()
    each = [column.terms(value) for value in _without_nanoseconds(coded.dictionary).to_pylist()] + [_NO_TERMS]
    codes = coded.indices.fill_null(len(each) - 1).to_numpy(zero_copy_only=False)
    return take(np.concatenate(each), starts_of(np.array([len(terms) for terms in each])), codes.astype(np.int64))


def _without_nanoseconds(values: pa.Array) -> pa.Array:
    """Times in microseconds, rounded down, which Python's times can hold."""
    if not pa.types.is_timestamp(values.type) or values.type.unit != "ns":
        return values
    return values.cast(pa.timestamp("us", values.type.tz), safe=False)


def side_by_side(first: Ragged, second: Ragged) -> Ragged:
    """The rows of both: each row of the first and then that of the second."""
    n = len(first[1]) - 1
    values, starts = np.concatenate([first[0], second[0]]), np.concatenate([first[1], second[1][1:] + first[1][-1]])
    order = np.arange(2 * n).reshape(2, n).T.reshape(-1)
    values, starts = take(values, starts, order)
    return values, starts[::2]

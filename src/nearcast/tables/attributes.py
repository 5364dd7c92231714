"""Attributes: the further columns of messages, which filters of subscriptions compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.text.filters.condition import SORTS
from nearcast.text.filters.grammar import NOT_ATTRIBUTES
from nearcast.text.vocabulary import Vocabulary


def attributes_of(table: pa.Table, vocabulary: Vocabulary) -> pa.Table | None:
    """The columns that filters of subscriptions name and the table has; None if there are none."""
    names = [name for name in vocabulary.attributes if name in table.column_names]
    return table.select(names) if names else None


def all_attributes_of(table: pa.Table) -> pa.Table | None:
    """All columns that filters may name; None if there are none."""
    names = [name for name in table.column_names if name not in NOT_ATTRIBUTES]
    return table.select(names) if names else None


def attributes_table(rows: Sequence[Mapping[str, Any]]) -> pa.Table | None:
    """The attributes of messages as a table; None if no message has any. A value that no condition holds on is null.

    Each column has one type. Rows of which a column would have several must be given in several tables.
    """
    names = {name for row in rows for name in row if name not in NOT_ATTRIBUTES}
    return pa.table({name: [_comparable(row.get(name)) for row in rows] for name in sorted(names)}) if names else None


def attribute_rows(table: pa.Table) -> list[dict[str, Any]]:
    """The attributes of each row that are not null."""
    rows: list[dict[str, Any]] = [{} for _ in range(table.num_rows)]
    for name in table.column_names:
        values = table[name]
        if pa.types.is_timestamp(values.type) and values.type.unit == "ns":
            values = values.cast(pa.timestamp("us", values.type.tz), safe=False)
        for row, value in zip(rows, values.to_pylist(), strict=True):
            if _comparable(value) is not None:
                row[name] = value
    return rows


def _comparable(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, SORTS) else None

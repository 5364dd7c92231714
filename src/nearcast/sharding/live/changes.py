"""The change log of subscriptions: files of inserts and removals.

A change file is Parquet, CSV or JSON Lines with the columns `op` ("insert" or "remove"), `id` and, for inserts, the
columns of the subscriptions table. Inserting a known id replaces it; removing an unknown id is no error. The rows of a
file take effect in their order, or in the order of the whole numbers in a column `order`. Files that are found together
take effect in the order of their names (change_folder.py finds and reads them). A file must appear complete (write it
elsewhere, then rename it). It is read once, and may be deleted when it is in effect. Bad rows are rejected one by one;
the other rows of the file take effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

import nearcast.indexes  # noqa: F401  registers every method
from nearcast.arrays.arrow import one_array
from nearcast.errors import InvalidInput
from nearcast.sharding.normalise import (
    SOURCE_REJECTS_SCHEMA,
    SUBSCRIPTIONS_SCHEMA,
    file_reject,
    ids_with_repeats,
    normalise_subscriptions,
    served_dialect,
    with_source,
)
from nearcast.tables import Dialect, read_subscriptions
from nearcast.tables.columns import column, strings_of, whole_numbers
from nearcast.tables.faults import Faults
from nearcast.tables.ids import INT64, id_column
from nearcast.text.vocabulary import Vocabulary

DELTA_METHOD = "pyramid"
"""The method for inserted subscriptions of kind `match`: for so few of them, choosing one costs more than it saves."""


class Changes(NamedTuple):
    """The effect of one or more change files: the last good operation of each id."""

    inserted: pa.Table  # as SUBSCRIPTIONS_SCHEMA, ids distinct
    removed: pa.Array  # ids, none of them in `inserted`
    rejects: pa.Table
    n_rows: int  # good rows, including those that a later row overrules

    @property
    def ids(self) -> pa.Array:
        return joined_ids([one_array(self.inserted["id"]), self.removed])


def read_changes(table: pa.Table, name: str, dialect: Dialect) -> Changes:
    """The effect of one table of changes. A fault of a whole column rejects the rows that need the column."""
    faults = Faults(table.num_rows, "skip")
    try:
        is_insert = _operations(table, faults)
        ids = ids_with_repeats(table, faults, dialect.id_type)
        given_order = column(table, "order")
        order = None if given_order is None else whole_numbers(given_order, "order", faults)
    except InvalidInput as error:
        return no_changes(file_reject(name, error.reason, error.column))
    _check_inserts(table, is_insert, dialect, faults)
    rejects = with_source(faults.raise_or_reject(table), name)
    good = faults.good_rows
    if order is not None:
        good = good[np.argsort(order[good], kind="stable")]
    kept = good[_last_of_each(ids.numbers[good])]
    inserts, removals = kept[is_insert[kept]], kept[~is_insert[kept]]
    inserted = normalise_subscriptions(table.take(pa.array(inserts)), ids.arrow(inserts).cast(ids.type.arrow), dialect)
    return Changes(inserted, ids.arrow(removals).cast(ids.type.arrow), rejects, len(good))


def join_changes(parts: list[Changes]) -> Changes:
    """The effect of several changes, one after the other."""
    if not parts:
        return no_changes(SOURCE_REJECTS_SCHEMA.empty_table())
    ids = joined_ids([part.ids for part in parts])
    is_last = np.zeros(len(ids), bool)
    is_last[_last_of_each(id_column(ids).numbers)] = True
    inserted, removed, start = [], [], 0
    for part in parts:
        middle, stop = start + part.inserted.num_rows, start + len(part.ids)
        inserted.append(part.inserted.filter(pa.array(is_last[start:middle])))
        removed.append(part.removed.filter(pa.array(is_last[middle:stop])))
        start = stop
    return Changes(
        joined_tables(inserted),
        joined_ids(removed),
        pa.concat_tables([part.rejects for part in parts]),
        sum(part.n_rows for part in parts),
    )


def no_changes(rejects: pa.Table) -> Changes:
    return Changes(SUBSCRIPTIONS_SCHEMA.empty_table(), pa.array([], pa.int64()), rejects, 0)


def joined_ids(parts: Sequence[pa.Array]) -> pa.Array:
    """The ids of all parts. Parts without ids may be of any type."""
    return pa.concat_arrays([part for part in parts if len(part)] or parts[:1])


def joined_tables(parts: Sequence[pa.Table]) -> pa.Table:
    """The rows of all tables. Tables without rows may have ids of any type."""
    return pa.concat_tables([part for part in parts if part.num_rows] or parts[:1]).combine_chunks()


def _last_of_each(ids: np.ndarray) -> np.ndarray:
    """Positions of the last occurrence of each id, in their order."""
    _, from_the_end = np.unique(ids[::-1], return_index=True)
    return np.sort(len(ids) - 1 - from_the_end)


def _operations(table: pa.Table, faults: Faults) -> np.ndarray:
    values = strings_of(table, "op")
    if values is None:
        raise InvalidInput("no column 'op'; it says 'insert' or 'remove' for each row", column="op")
    ops = values.fill_null("").to_numpy(zero_copy_only=False).astype(object)
    is_insert = np.asarray(ops == "insert", bool)
    for row in np.flatnonzero(~is_insert & ~np.asarray(ops == "remove", bool)):
        faults.add(int(row), "op", f"no operation '{ops[row]}'; it is one of insert, remove")
    return is_insert


def _check_inserts(table: pa.Table, is_insert: np.ndarray, dialect: Dialect, faults: Faults) -> None:
    """Add the faults of rows to insert. Row numbers replace the ids, which may repeat here."""
    wanted = np.flatnonzero(is_insert & ~faults.is_bad)
    if not len(wanted):
        return
    rows = table.take(pa.array(wanted))
    place = table.column_names.index("id")
    rows = rows.set_column(place, "id", pa.array(np.arange(len(wanted))))
    try:
        plain = served_dialect(dialect)._replace(has_attributes=False, id_type=INT64)
        rejects = read_subscriptions(rows, Vocabulary(), plain).rejects
    except InvalidInput as error:
        faults.add_where(is_insert, error.column or "", error.reason)
        return
    for reject in rejects.to_pylist():
        faults.add(int(wanted[reject["row"] - 1]), reject["column"], reject["reason"])

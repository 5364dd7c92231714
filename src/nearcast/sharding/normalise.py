"""Messages, subscriptions and rejects in one schema each, whatever columns the source had."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from nearcast.errors import InvalidInput
from nearcast.geo.space import BOX_COLUMNS
from nearcast.model import NO_TIME
from nearcast.tables import REJECTS_SCHEMA, Dialect
from nearcast.tables.columns import cast, column, floats_of, strings_of, times_of, tokens_of
from nearcast.tables.faults import Faults
from nearcast.tables.ids import IdColumn, IdType, read_ids
from nearcast.tables.messages import read_message_columns
from nearcast.tables.places import boxes_of
from nearcast.tables.regions.plain_regions import with_plain_regions

TIMESTAMP = pa.timestamp("us", "UTC")
_BOX = [(name, pa.float64()) for name in BOX_COLUMNS]

MESSAGES_SCHEMA = pa.schema(
    [("id", pa.int64()), ("tokens", pa.large_list(pa.large_string())), *_BOX, ("time", TIMESTAMP)]
)
"""Of messages with whole numbers as ids. Here and in SUBSCRIPTIONS_SCHEMA, the column `id` may have another type."""

SUBSCRIPTIONS_SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("tokens", pa.list_(pa.string())),
        ("expression", pa.string()),
        *_BOX,
        ("region", pa.string()),
        ("kind", pa.string()),
        ("alpha", pa.float64()),
        ("threshold", pa.float64()),
        ("k", pa.int32()),
        ("expires", TIMESTAMP),
    ]
)

SOURCE_REJECTS_SCHEMA = REJECTS_SCHEMA.insert(0, pa.field("source", pa.string()))
"""`source` is a file or a broker's entry; `row` is the position in it, or null where all of the source is rejected."""

SERVED_KINDS = ("match", "rank")
"""Kinds that shards and the stream serve. Subscriptions of other kinds are rejected with a reason."""


def served_dialect(dialect: Dialect) -> Dialect:
    """The dialect restricted to the served kinds; bad rows are skipped."""
    return dialect._replace(
        on_bad="skip", kinds=tuple(kind for kind in SERVED_KINDS if dialect.kinds is None or kind in dialect.kinds)
    )


def with_ids_of(schema: pa.Schema, kind: pa.DataType) -> pa.Schema:
    """The schema with ids of this type."""
    return schema.set(schema.get_field_index("id"), pa.field("id", kind))


def normalise_messages(table: pa.Table, dialect: Dialect) -> tuple[pa.Table, pa.Table]:
    """(good messages in MESSAGES_SCHEMA with the tokens of their text, rejects)."""
    read = read_message_columns(table, dialect._replace(on_bad="skip"))
    good, times = read.good_rows, read.times[read.good_rows]
    columns = [
        read.ids.arrow(good).cast(read.ids.type.arrow),
        read.tokens.cast(MESSAGES_SCHEMA.field("tokens").type).take(pa.array(good)),
    ]
    columns += [pa.array(np.ascontiguousarray(read.boxes[good, k])) for k in range(4)]
    columns.append(pa.array(times, mask=times == NO_TIME).cast(TIMESTAMP))
    return pa.table(columns, schema=with_ids_of(MESSAGES_SCHEMA, read.ids.type.arrow)), read.rejects


def normalise_subscriptions(table: pa.Table, ids: pa.Array, dialect: Dialect) -> pa.Table:
    """Subscriptions in SUBSCRIPTIONS_SCHEMA. All rows must be good."""
    faults = Faults(table.num_rows, "raise")
    table = with_plain_regions(table, dialect.space, faults)
    region = strings_of(table, "region")
    has_region = None if region is None else np.asarray(region.is_valid().to_numpy(zero_copy_only=False), bool)
    boxes = boxes_of(table, dialect.space, faults, has_region) if table.num_rows else np.empty((0, 4))
    columns = {"id": ids, "tokens": tokens_of(table, faults), "region": region}
    columns |= {name: _nan_as_null(boxes[:, k]) for k, name in enumerate(BOX_COLUMNS)}
    columns |= {name: strings_of(table, name) for name in ("expression", "kind")}
    for name in ("alpha", "threshold"):
        values = floats_of(table, name, faults)
        columns[name] = None if values is None else _nan_as_null(values)
    k = column(table, "k")
    columns["k"] = None if k is None else cast(k, pa.int32(), "k", faults, "is not a whole number")
    expires = times_of(table, "expires", faults)
    columns["expires"] = pa.array(expires, mask=expires == NO_TIME).cast(TIMESTAMP)
    faults.raise_or_reject(table)
    schema = with_ids_of(SUBSCRIPTIONS_SCHEMA, ids.type)
    return pa.table([_cast_or_null(columns[field.name], field.type, table.num_rows) for field in schema], schema)


def ids_with_repeats(table: pa.Table, faults: Faults, of: IdType | None = None) -> IdColumn:
    """The ids of a table. A repeated id is no fault; a missing id is, and a missing column raises."""
    if column(table, "id") is None:
        raise InvalidInput("no column 'id'; give each row a whole number, a string or a UUID", column="id")
    return read_ids(table, faults, "rows", may_repeat=True, of=of)


def with_source(rejects: pa.Table, source: str) -> pa.Table:
    """Rejects in SOURCE_REJECTS_SCHEMA, all of one source."""
    sources = pa.array([source] * rejects.num_rows, pa.string())
    return rejects.add_column(0, "source", sources).cast(SOURCE_REJECTS_SCHEMA)


def file_reject(source: str, reason: str, column: str | None = None, row: int | None = None) -> pa.Table:
    """One reject for a whole file, or for all of its rows from position `row` on."""
    record = {
        "source": source,
        "row": None if row is None else row + 1,
        "column": column,
        "reason": reason,
        "record": None,
    }
    return pa.Table.from_pylist([record], SOURCE_REJECTS_SCHEMA)


def _nan_as_null(values: np.ndarray) -> pa.Array:
    return pa.array(np.ascontiguousarray(values), mask=np.isnan(values))


def _cast_or_null(values: pa.Array | None, kind: pa.DataType, n: int) -> pa.Array:
    return pa.nulls(n, kind) if values is None else values.cast(kind)

"""Checked rows in one shape each, whatever shape they came in: messages, subscriptions, rejects."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.errors import InvalidInput
from nearcast.geo.space import BOX_COLUMNS
from nearcast.model import NO_TIME
from nearcast.tables import Dialect
from nearcast.tables.columns import cast, column, floats_of, ids_of, strings_of, times_of, tokens_of
from nearcast.tables.faults import Faults
from nearcast.tables.messages import message_tokens
from nearcast.tables.places import boxes_of

_STAMP = pa.timestamp("us", "UTC")
_TOKENS = pa.list_(pa.string())
_BOX = [(name, pa.float64()) for name in BOX_COLUMNS]

MESSAGES_SCHEMA = pa.schema([("id", pa.int64()), ("tokens", pa.large_list(pa.large_string())), *_BOX, ("time", _STAMP)])

SERVED_KINDS = ("match", "rank")
"""What shards and the stream serve; subscriptions of other kinds are rejected by name."""


def served_dialect(dialect: Dialect) -> Dialect:
    """The same for subscriptions of the kinds that are served; bad rows are skipped."""
    return dialect._replace(on_bad="skip", kinds=tuple(kind for kind in SERVED_KINDS if kind in dialect.kinds))


SUBSCRIPTIONS_SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("tokens", _TOKENS),
        ("expression", pa.string()),
        *_BOX,
        ("region", pa.string()),
        ("kind", pa.string()),
        ("alpha", pa.float64()),
        ("threshold", pa.float64()),
        ("k", pa.int32()),
        ("expires", _STAMP),
    ]
)

REJECTS_SCHEMA = pa.schema(
    [
        ("source", pa.string()),
        ("row", pa.int64()),
        ("column", pa.string()),
        ("reason", pa.string()),
        ("record", pa.string()),
    ]
)
"""`source` is a file or a broker's entry, `row` the position in it (null: all of it), `record` the row as JSON."""


def normalise_messages(table: pa.Table, dialect: Dialect) -> tuple[pa.Table, pa.Table]:
    """(good messages as MESSAGES_SCHEMA, the library's rejects); the analyser has run."""
    faults = Faults(table.num_rows, "skip")
    ids = ids_of(table, faults, "messages")
    boxes = boxes_of(table, dialect.space, faults)
    times = times_of(table, "time", faults)
    tokens = message_tokens(table, dialect.analyser, faults).cast(MESSAGES_SCHEMA.field("tokens").type)
    rejects = faults.settle(table)
    good = faults.good_rows
    columns = [pa.array(ids[good]), tokens.take(pa.array(good))]
    columns += [pa.array(np.ascontiguousarray(boxes[good, k])) for k in range(4)]
    columns.append(pa.array(times[good], mask=times[good] == NO_TIME).cast(_STAMP))
    return pa.table(columns, schema=MESSAGES_SCHEMA), rejects


def normalise_subscriptions(table: pa.Table, ids: np.ndarray, dialect: Dialect) -> pa.Table:
    """Rows that are known to be good, as SUBSCRIPTIONS_SCHEMA."""
    faults = Faults(table.num_rows, "raise")
    region = strings_of(table, "region")
    elsewhere = None if region is None else np.asarray(region.is_valid().to_numpy(zero_copy_only=False), bool)
    boxes = boxes_of(table, dialect.space, faults, elsewhere) if table.num_rows else np.empty((0, 4))
    made = {"id": pa.array(ids), "tokens": tokens_of(table, faults), "region": region}
    made |= {name: _numbers(boxes[:, k]) for k, name in enumerate(BOX_COLUMNS)}
    made |= {name: strings_of(table, name) for name in ("expression", "kind")}
    made |= {name: _optional(floats_of(table, name, faults)) for name in ("alpha", "threshold")}
    k = column(table, "k")
    made["k"] = None if k is None else cast(k, pa.int32(), "k", faults, "is no whole number")
    micros = times_of(table, "expires", faults)
    made["expires"] = pa.array(micros, mask=micros == NO_TIME).cast(_STAMP)
    faults.settle(table)
    return pa.table(
        [_as(made[field.name], field.type, table.num_rows) for field in SUBSCRIPTIONS_SCHEMA], SUBSCRIPTIONS_SCHEMA
    )


def ids_with_repeats(table: pa.Table, faults: Faults) -> np.ndarray:
    """As the library's, but an id may come again."""
    values = column(table, "id")
    if values is None:
        raise InvalidInput("no column 'id'; give each row a whole number", column="id")
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), None, values)
    whole = cast(values, pa.int64(), "id", faults, "is no whole number within int64")
    faults.add_where(whole.is_null().to_numpy(zero_copy_only=False), "id", "no id; give each row a whole number")
    return np.asarray(whole.fill_null(0).to_numpy(zero_copy_only=False))


def with_source(rejects: pa.Table, source: str) -> pa.Table:
    """The library's rejects with the file that they came from."""
    return rejects.add_column(0, "source", pa.array([source] * rejects.num_rows, pa.string())).cast(REJECTS_SCHEMA)


def file_reject(source: str, reason: str, column: str | None = None, row: int | None = None) -> pa.Table:
    """One reject for all of a file, or for what is in it from `row` on."""
    record = {"source": source, "row": row, "column": column, "reason": reason, "record": None}
    return pa.Table.from_pylist([record], REJECTS_SCHEMA)


def _numbers(values: np.ndarray) -> pa.Array:
    return pa.array(np.ascontiguousarray(values), mask=np.isnan(values))


def _optional(values: np.ndarray | None) -> pa.Array | None:
    return None if values is None else _numbers(values)


def _as(values: pa.Array | None, kind: pa.DataType, n: int) -> pa.Array:
    return pa.nulls(n, kind) if values is None else values.cast(kind)

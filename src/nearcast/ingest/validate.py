"""A block of raw records -> rows of the contract and rejects, by the library's own readers and in its own words."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.errors import InvalidInput
from nearcast.geo.space import BOX_COLUMNS, Space
from nearcast.ingest.mapping import Columns
from nearcast.ingest.records import printable
from nearcast.ingest.spelling import normalise_spelling
from nearcast.model import NEVER, NO_TIME
from nearcast.tables import Dialect, read_subscriptions
from nearcast.tables.columns import cast, ids_of, times_of, tokens_of
from nearcast.tables.faults import Faults
from nearcast.tables.messages import message_tokens
from nearcast.tables.places import boxes_of
from nearcast.text.analyser import Analyser
from nearcast.text.vocabulary import Vocabulary

_STAMP = pa.timestamp("us", "UTC")
_TYPES = {
    "id": pa.int64(),
    "text": pa.string(),
    "tokens": pa.list_(pa.string()),
    "expression": pa.string(),
    "region": pa.string(),
    "kind": pa.string(),
    "k": pa.int32(),
    "time": _STAMP,
    "expires": _STAMP,
}


class IngestRules(NamedTuple):
    """By what a raw record is judged. Small: it travels to workers with each task."""

    columns: Columns
    analyser: dict[str, Any]  # its header
    space: tuple[float, ...] | None

    def dialect(self) -> Dialect:
        return Dialect(Analyser.from_header(self.analyser), Space.of(self.space), "skip")


class Validated(NamedTuple):
    accepted: pa.Table  # of `clean_schema`
    accepted_rows: np.ndarray  # int64[...]  which rows of the block they are, ascending
    ids: np.ndarray  # int64[n]    of all rows of the block
    has_id: np.ndarray  # bool[n]     whose id can be read and is the first of its kind in the block
    rejects: list[tuple[int, str, str, str]]  # (row, column, reason, record)


def table_schema(columns: Columns) -> pa.Schema:
    """The contract's columns that these raw columns can fill. A message has its tokens, and a box or a point."""
    names = [name for name in ("id", *columns.targets) if name != "id"]
    if columns.kind == "messages":
        is_box = set(BOX_COLUMNS) <= set(names)
        place = BOX_COLUMNS if is_box else ("x", "y")
        extras = [name for name in ("time", "expires") if name in names]
        names = [*(["text"] if "text" in names else []), "tokens", *place, *extras]
    return pa.schema([(name, _TYPES.get(name, pa.float64())) for name in ["id", *names]])


def validate_records(table: pa.Table, rules: IngestRules) -> Validated:
    """Never raises for what is in the table: a block that no reader understands is rejected row by row."""
    table = normalise_spelling(table)
    try:
        return _messages(table, rules) if rules.columns.kind == "messages" else _subscriptions(table, rules)
    except InvalidInput as error:
        return _none(table, rules, error)


def _messages(table: pa.Table, rules: IngestRules) -> Validated:
    """The library's own steps in its own order (`read_messages`), without the terms, which need a vocabulary."""
    dialect = rules.dialect()
    faults = Faults(table.num_rows, "skip")
    ids = ids_of(table, faults, "messages")
    has_id = ~faults.is_bad
    boxes = boxes_of(table, dialect.space, faults)
    made = {"time": times_of(table, "time", faults)}
    tokens = message_tokens(table, dialect.analyser, faults)
    made["expires"] = times_of(table, "expires", faults)
    rejects = faults.settle(table)
    good = faults.good_rows
    made |= {"id": ids, "x": boxes[:, 0], "y": boxes[:, 1]} | dict(zip(BOX_COLUMNS, boxes.T, strict=True))
    columns = []
    for field in table_schema(rules.columns):
        if field.name in ("text", "tokens"):
            values = tokens if field.name == "tokens" else table["text"].combine_chunks()
            columns.append(values.take(pa.array(good)).cast(field.type))
        else:
            columns.append(_numbers(made[field.name][good], field.type, NO_TIME))
    return _cleaned(pa.table(columns, schema=table_schema(rules.columns)), good, (ids, has_id), rejects)


def _subscriptions(table: pa.Table, rules: IngestRules) -> Validated:
    dialect = rules.dialect()
    ids_faults = Faults(table.num_rows, "skip")
    ids = ids_of(table, ids_faults, "subscriptions")
    rejects = read_subscriptions(table, Vocabulary(dialect.analyser), dialect).rejects
    faults = Faults(table.num_rows, "skip")
    for row in rejects.to_pylist():
        faults.add(row["row"], row["column"], row["reason"])
    columns = [_subscription_column(table, field, ids, faults) for field in table_schema(rules.columns)]
    rejects = faults.settle(table)
    good = faults.good_rows
    accepted = pa.table([values.take(pa.array(good)) for values in columns], schema=table_schema(rules.columns))
    return _cleaned(accepted, good, (ids, ~ids_faults.is_bad), rejects)


def _subscription_column(table: pa.Table, field: pa.Field, ids: np.ndarray, faults: Faults) -> pa.Array:
    """Of all rows, good or bad. What the library does not read (k), or not for every kind, is at least a number."""
    if field.name == "id":
        return pa.array(ids)
    if field.name == "expires":
        return _numbers(times_of(table, "expires", faults, NEVER), field.type, NEVER)
    if field.name == "tokens":
        tokens = tokens_of(table, faults)
        return pa.nulls(table.num_rows, field.type) if tokens is None else tokens.cast(field.type)
    reason = "is no whole number" if field.name == "k" else "is no number"
    return cast(table[field.name].combine_chunks(), field.type, field.name, faults, reason)


def _numbers(values: np.ndarray, kind: pa.DataType, absent: int) -> pa.Array:
    if pa.types.is_timestamp(kind):
        return pa.array(values, mask=values == absent).cast(kind)
    return pa.array(values).cast(kind)


def _cleaned(accepted: pa.Table, good: np.ndarray, ids: tuple[np.ndarray, np.ndarray], rejects: pa.Table) -> Validated:
    told = [tuple(row.values()) for row in rejects.to_pylist()]
    return Validated(
        accepted, good, ids[0], ids[1], [(row, at, why, printable(record)) for row, at, why, record in told]
    )


def _none(table: pa.Table, rules: IngestRules, error: InvalidInput) -> Validated:
    n = table.num_rows
    records = [printable(json.dumps(record, default=str, ensure_ascii=False)) for record in table.to_pylist()]
    rejects = [(row, error.column or "", error.reason, record) for row, record in enumerate(records)]
    nothing = table_schema(rules.columns).empty_table()
    return Validated(nothing, np.empty(0, np.int64), np.zeros(n, np.int64), np.zeros(n, bool), rejects)

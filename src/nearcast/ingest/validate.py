"""Validates a block of raw records: good rows and rejects, by the same readers as the library's tables."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.errors import InvalidInput
from nearcast.geo.space import BOX_COLUMNS
from nearcast.ingest.mapping import Columns
from nearcast.ingest.records import Fault, printable, printable_record
from nearcast.model import NEVER, NO_TIME
from nearcast.sharding.normalise import TIMESTAMP, with_ids_of
from nearcast.tables import Dialect, read_subscriptions
from nearcast.tables.columns import cast, times_of, tokens_of
from nearcast.tables.faults import Faults
from nearcast.tables.ids import INT64, IdColumn, read_ids
from nearcast.tables.messages import read_message_columns
from nearcast.text.vocabulary import Vocabulary

_TYPES = {"id": pa.int64(), "tokens": pa.list_(pa.string()), "k": pa.int32(), "time": TIMESTAMP, "expires": TIMESTAMP}
_TYPES |= dict.fromkeys(("text", "expression", "region", "kind"), pa.string())

_NUMBER_COLUMNS = ("x", "y", "km", "m", "miles", "xmin", "ymin", "xmax", "ymax", "alpha", "threshold")
_WHOLE_COLUMNS = ("id", "k")
_TIME_COLUMNS = ("time", "expires")


class IngestRules(NamedTuple):
    """The rules for raw records. Small: it travels to workers with each task."""

    columns: Columns
    dialect: Dialect  # skips bad rows, and says the type of the ids

    @property
    def id_type(self) -> pa.DataType:
        return (self.dialect.id_type or INT64).arrow

    @property
    def schema(self) -> pa.Schema:
        """Of the accepted rows."""
        return with_ids_of(table_schema(self.columns), self.id_type)


class Validated(NamedTuple):
    """The good rows and the rejects of a block."""

    accepted: pa.Table  # in the schema of the rules
    accepted_rows: np.ndarray  # int64[...]  their rows in the block, ascending
    ids: pa.Array  # [n]         of all rows of the block
    has_id: np.ndarray  # bool[n]     the id can be read and no earlier row of the block has it
    rejects: list[Fault]  # by rows of the block


def table_schema(columns: Columns) -> pa.Schema:
    """The columns of the table that the raw columns can fill, with whole numbers as ids. A message has tokens, and a
    box or a point.
    """
    names = ["id", *(name for name in columns.targets if name != "id")]
    if columns.kind == "messages":
        place = BOX_COLUMNS if set(BOX_COLUMNS) <= set(names) else ("x", "y")
        made = ("id", "tokens", *place)
        names = [name for name in ("id", "text", "tokens", *place, "time", "expires") if name in (*made, *names)]
    return pa.schema([(name, _TYPES.get(name, pa.float64())) for name in names])


def validate_records(table: pa.Table, rules: IngestRules) -> Validated:
    """Never raises for the content of the table: a block that cannot be read is rejected row by row."""
    table = _normalise_spelling(table, rules.id_type == INT64.arrow)
    try:
        return _messages(table, rules) if rules.columns.kind == "messages" else _subscriptions(table, rules)
    except InvalidInput as error:
        return _all_rejected(table, rules, error)


def _messages(table: pa.Table, rules: IngestRules) -> Validated:
    read = read_message_columns(table, rules.dialect, reads_expires=True)
    good, boxes = read.good_rows, read.boxes
    numbers: dict[str, Any] = {"time": read.times, "expires": read.expires}
    ids = _all_of(read.ids, rules)
    numbers |= dict(zip(("x", "y", *BOX_COLUMNS), (*boxes.T[:2], *boxes.T), strict=True))
    columns = []
    given = {"id": ids, "tokens": read.tokens}
    for field in rules.schema:
        if field.name in ("id", "text", "tokens"):
            values = given[field.name] if field.name in given else table["text"].combine_chunks()
            columns.append(values.take(pa.array(good)).cast(field.type))
        else:
            columns.append(_numbers(numbers[field.name][good], field.type, NO_TIME))
    return _validated(pa.table(columns, schema=rules.schema), good, ids, read.rejects)


def _all_of(ids: IdColumn, rules: IngestRules) -> pa.Array:
    """The ids of all rows, good and bad."""
    return ids.arrow(np.arange(len(ids.numbers))).cast(rules.id_type)


def _subscriptions(table: pa.Table, rules: IngestRules) -> Validated:
    faults = Faults(table.num_rows, "skip")
    ids = _all_of(read_ids(table, faults, "subscriptions", of=rules.dialect.id_type), rules)
    for row in read_subscriptions(table, Vocabulary(), rules.dialect).rejects.to_pylist():
        faults.add(row["row"] - 1, row["column"], row["reason"])
    columns = [_subscription_column(table, field, ids, faults) for field in rules.schema]
    rejects = faults.raise_or_reject(table)
    good = faults.good_rows
    accepted = pa.table([values.take(pa.array(good)) for values in columns], schema=rules.schema)
    return _validated(accepted, good, ids, rejects)


def _subscription_column(table: pa.Table, field: pa.Field, ids: pa.Array, faults: Faults) -> pa.Array:
    """The column of all rows, good or bad. Columns that table readers skip (such as k) must at least be numbers."""
    if field.name == "id":
        return ids
    if field.name == "expires":
        return _numbers(times_of(table, "expires", faults, NEVER), field.type, NEVER)
    if field.name == "tokens":
        tokens = tokens_of(table, faults)
        return pa.nulls(table.num_rows, field.type) if tokens is None else tokens.cast(field.type)
    reason = "is not a whole number" if field.name == "k" else "is not a number"
    return cast(table[field.name].combine_chunks(), field.type, field.name, faults, reason)


def _numbers(values: np.ndarray, kind: pa.DataType, absent: int) -> pa.Array:
    if pa.types.is_timestamp(kind):
        return pa.array(values, mask=values == absent).cast(kind)
    return pa.array(values).cast(kind)


def _validated(accepted: pa.Table, good: np.ndarray, ids: pa.Array, rejects: pa.Table) -> Validated:
    rows = (row.values() for row in rejects.to_pylist())
    faults = [Fault(row - 1, column, reason, printable(record)) for row, column, reason, record in rows]
    has_id = np.ones(len(ids), bool)
    has_id[[fault.position for fault in faults if fault.column == "id"]] = False  # ids are read before all else
    return Validated(accepted, good, ids, has_id, faults)


def _all_rejected(table: pa.Table, rules: IngestRules, error: InvalidInput) -> Validated:
    records = map(printable_record, table.to_pylist())
    rejects = [Fault(row, error.column or "", error.reason, record) for row, record in enumerate(records)]
    nothing, n = rules.schema.empty_table(), table.num_rows
    return Validated(nothing, np.empty(0, np.int64), pa.nulls(n, rules.id_type), np.zeros(n, bool), rejects)


# -- spelling


def _normalise_spelling(table: pa.Table, has_numbers: bool) -> pa.Table:
    """Remove outer white space; read 7.0 as 7, a time without a zone as UTC, and a day as its midnight."""
    for at, name in enumerate(table.column_names):
        kind = table.schema.field(at).type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            continue
        if name in (*_NUMBER_COLUMNS, *_WHOLE_COLUMNS, *_TIME_COLUMNS):
            values = pc.utf8_trim_whitespace(table[name])
            is_whole = name in _WHOLE_COLUMNS and (has_numbers or name != "id")
            values = _whole(values) if is_whole else _zoned(values) if name in _TIME_COLUMNS else values
            table = table.set_column(at, name, pc.if_else(pc.equal(values, ""), None, values))
        elif name == "kind":
            table = table.set_column(at, name, pc.utf8_trim_whitespace(table[name]))
    return table


def _whole(values: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pc.any(pc.match_substring(values, ".")).as_py():
        return values
    return pc.replace_substring_regex(values, r"^([+-]?[0-9]+)\.0*$", r"\1")


def _zoned(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Arrow requires a zone; the real data sets have plain days, and times without a zone."""
    values = pc.replace_substring_regex(values, r"^([0-9]{4}-[0-9]{2}-[0-9]{2})$", r"\1T00:00:00")
    return pc.replace_substring_regex(values, r"^([0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]+)$", r"\1Z")

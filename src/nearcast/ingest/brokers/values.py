"""Messages as values of a broker: one JSON object per value, or one Arrow stream of many messages per value.

{"id": 7, "text": "Pizza deal", "x": -73.99, "y": 40.73, "time": "2026-01-31T12:00:00Z"}

`tokens` (a list of strings) may replace `text`, `lon`/`lat` may replace `x`/`y`, and `xmin`, `ymin`, `xmax`, `ymax` may
replace the point. Other fields are ignored. An Arrow value is a messages table in Arrow's stream format.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc

from nearcast.sharding.normalise import SOURCE_REJECTS_SCHEMA

_ARROW_MARK = b"\xff\xff\xff\xff"  # every Arrow stream begins with it; JSON cannot
_NUMBERS = ("x", "y", "xmin", "ymin", "xmax", "ymax")
_OTHER_NAMES = {"x": "lon", "y": "lat"}

VALUES_SCHEMA = pa.schema(
    [
        ("entry", pa.string()),
        ("id", pa.int64()),
        ("text", pa.string()),
        ("tokens", pa.list_(pa.string())),
        *((name, pa.float64()) for name in _NUMBERS),
        ("time", pa.string()),
    ]
)


ENTRIES_SCHEMA = pa.schema([("entry", pa.string()), ("value", pa.binary())])
"""What a source reads from a broker: the place of each entry, and its value."""
_LOST_MARK = b"\xff\xfenearcast lost: "  # neither JSON nor Arrow begins with it


def lost_entries(place: str, reason: str) -> pa.RecordBatch:
    """A row in place of entries that the broker no longer has. It becomes a reject."""
    return pa.record_batch([[place], [_LOST_MARK + reason.encode()]], schema=ENTRIES_SCHEMA)


def decode_values(batch: pa.RecordBatch) -> tuple[pa.Table, pa.Table]:
    """(messages with a column `entry`, rejects) from a batch with the columns `entry` and `value`."""
    records: list[dict[str, Any]] = []
    tables: list[pa.Table] = []
    rejects: list[dict[str, Any]] = []
    for entry, value in zip(batch.column("entry").to_pylist(), batch.column("value").to_pylist(), strict=True):
        if value is not None and value.startswith(_LOST_MARK):
            rejects.append(_reject(entry, None, value[len(_LOST_MARK) :].decode(), None))
        elif value is not None and value[:4] == _ARROW_MARK:
            _read_arrow(entry, value, tables, rejects)
        else:
            _read_json(entry, value, records, rejects)
    messages = pa.concat_tables([pa.Table.from_pylist(records, VALUES_SCHEMA), *tables], promote_options="permissive")
    return messages, pa.Table.from_pylist(rejects, SOURCE_REJECTS_SCHEMA)


def _read_json(entry: str, value: bytes | None, records: list[dict[str, Any]], rejects: list[dict[str, Any]]) -> None:
    try:
        record = json.loads(value if value is not None else b"")
        if not isinstance(record, dict):
            raise ValueError(f"an object is needed, not {type(record).__name__}")
    except (ValueError, RecursionError) as error:
        shown = None if value is None else value.decode("utf-8", "replace")
        rejects.append(_reject(entry, None, f"no JSON object: {error}", shown))
        return
    wanted = {name: record[own] for name in VALUES_SCHEMA.names[1:] if (own := _own_name(name, record)) is not None}
    fault = _first_fault(wanted)
    if fault is None:
        records.append(wanted | {"entry": entry})
    else:
        rejects.append(_reject(entry, *fault, json.dumps(record)))  # as ASCII: it may contain half a surrogate pair


def _own_name(name: str, record: Mapping[str, Any]) -> str | None:
    """The name under which a record has a field, or None."""
    return next((own for own in (name, _OTHER_NAMES.get(name)) if own and record.get(own) is not None), None)


def _first_fault(record: dict[str, Any]) -> tuple[str, str] | None:
    """(field, reason) of the first field that does not fit the type of its column, which would fail the whole batch."""
    for name, value in record.items():
        try:
            if isinstance(value, bool):
                raise ValueError("a truth value")
            pa.scalar(value, VALUES_SCHEMA.field(name).type)
        except (pa.ArrowException, ValueError, TypeError, OverflowError):
            return name, f"{value!r} does not fit; it must be {VALUES_SCHEMA.field(name).type}"
    return None


def _read_arrow(entry: str, value: bytes, tables: list[pa.Table], rejects: list[dict[str, Any]]) -> None:
    try:
        table = pa.ipc.open_stream(value).read_all()
        table.validate(full=True)
        names = {name: _own_name(name, dict.fromkeys(table.column_names, True)) for name in VALUES_SCHEMA.names[1:]}
        columns = {name: _fitted(table[own], VALUES_SCHEMA.field(name).type) for name, own in names.items() if own}
        tables.append(pa.table(columns | {"entry": pa.array([entry] * table.num_rows, pa.string())}))
    except (pa.ArrowException, OSError, ValueError) as error:
        rejects.append(_reject(entry, None, f"no Arrow stream of messages: {error}", None))


def _fitted(values: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_timestamp(values.type):
        utc = values.cast(pa.timestamp("us", "UTC"))
        return pc.strftime(utc, "%Y-%m-%dT%H:%M:%SZ")
    return values.cast(kind)


def _reject(entry: str, column: str | None, reason: str, record: str | None) -> dict[str, Any]:
    return {"source": entry, "row": None, "column": column, "reason": reason, "record": record}

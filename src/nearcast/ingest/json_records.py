"""JSON Lines -> blocks: one object per line. Numbers stay text until a table reader parses them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice, repeat
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.ingest.csv_records import join_texts
from nearcast.ingest.lines import text_lines
from nearcast.ingest.mapping import Columns
from nearcast.ingest.records import Block, Fault, printable
from nearcast.ingest.sources import Split

_LIST = pa.list_(pa.string())
_SAMPLE = 100


def json_names(path: str, encoding: str) -> list[str]:
    """The keys of the first objects of a file; keys of nested objects as `outer.inner`."""
    names: dict[str, None] = {}
    texts = (text for lines in text_lines(Split(0, path, "jsonl"), encoding) for text in lines.texts)
    for text in islice(texts, _SAMPLE):
        record, _ = _loaded(text)
        names |= dict.fromkeys(_keys(record or {}))
    return list(names)


def _keys(record: dict[str, Any], before: str = "") -> Iterator[str]:
    for key, value in record.items():
        yield before + key
        if isinstance(value, dict):
            yield from _keys(value, f"{before}{key}.")


def json_blocks(split: Split, columns: Columns, encoding: str) -> Iterator[Block]:
    for lines in text_lines(split, encoding):
        faults = list(lines.faults)
        positions: list[int] = []
        rows: list[list[Any]] = []
        for text, position in zip(lines.texts, lines.positions, strict=True):
            row, fault = _row(text, columns)
            if fault is None:
                rows.append(row)
                positions.append(position)
            else:
                faults.append(Fault(position, fault[0], fault[1], printable(text)))
        yield Block(_table(rows, columns), np.array(positions, np.int64), faults, lines.n_read)


def _row(text: str, columns: Columns) -> tuple[list[Any], tuple[str | None, str] | None]:
    """(the values in the order of the raw names, None), or ([], (column, reason))."""
    record, reason = _loaded(text)
    if record is None:
        return [], (None, reason)
    if not any(name.partition(".")[0] in record or name in record for name in columns.words):
        return [], (None, f"the object has no key '{columns.words[0]}'")  # a misspelt name must not mean "no words"
    row = []
    for target, sources in columns.sources.items():
        for name in sources:
            try:
                row.append(_plain(record, name, target, text))
            except (ValueError, TypeError) as error:
                return [], (target, str(error))
    return row, None


def _loaded(text: str) -> tuple[dict[str, Any] | None, str]:
    if not text.strip():
        return None, "an empty line"
    try:
        record = json.loads(text, parse_float=str, parse_int=str, parse_constant=str)
    except ValueError as error:
        return None, f"the line is no JSON: {error}"
    except RecursionError:
        return None, "the line is JSON nested too deeply"
    return (record, "") if isinstance(record, dict) else (None, "the line is no JSON object")


def _found(record: dict[str, Any], name: str) -> Any:
    if name in record or "." not in name:
        return record.get(name)
    outer, _, inner = name.partition(".")
    within = record.get(outer)
    return _found(within, inner) if isinstance(within, dict) else None


def _plain(record: dict[str, Any], name: str, target: str, text: str) -> Any:
    """The value as a string, a list of strings (tokens only), or None."""
    value = _found(record, name)
    if value is None or isinstance(value, bool):
        return None if value is None else str(value).lower()
    if isinstance(value, dict) and target == "region":
        return json.dumps(_found(json.loads(text), name))  # parsed again, with numbers as numbers
    if isinstance(value, list) and target == "tokens":
        return [_checked(token) for token in value]
    return _checked(value)


def _checked(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise TypeError(f"{'a list' if isinstance(value, list) else 'an object'} where one value is expected")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError("the text holds half a surrogate pair, which is no character") from None
    return value


def _table(rows: list[list[Any]], columns: Columns) -> pa.Table:
    cells = iter(zip(*rows, strict=True) if rows else repeat(()))
    made = {}
    for target, sources in columns.sources.items():
        own = islice(cells, len(sources))
        values = [_tokens(cell) if target == "tokens" else pa.array(cell, pa.string()) for cell in own]
        made[target] = join_texts(values, len(rows))
    return pa.table(made)


def _tokens(values: tuple[Any, ...]) -> pa.Array:
    """Lists of tokens; a string is split at white space, as table readers do."""
    return pa.array([value.split() if isinstance(value, str) else value for value in values], _LIST)

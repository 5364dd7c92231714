"""Numbers, ids and times as people write them -> as table readers accept them. Other values stay as they are."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_NUMBERS = ("x", "y", "xmin", "ymin", "xmax", "ymax", "alpha", "threshold")
_WHOLE = ("id", "k")
_TIMES = ("time", "expires")


def normalise_spelling(table: pa.Table) -> pa.Table:
    """Remove outer white space; read 7.0 as 7, a time without a zone as UTC, and a day as its midnight."""
    for at, name in enumerate(table.column_names):
        kind = table.schema.field(at).type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            continue
        if name in (*_NUMBERS, *_WHOLE, *_TIMES):
            values = pc.utf8_trim_whitespace(table[name])
            values = _whole(values) if name in _WHOLE else _zoned(values) if name in _TIMES else values
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

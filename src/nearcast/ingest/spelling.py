"""Numbers, ids and times as people write them -> as the library reads them. What stays wrong is its to refuse."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_NUMBERS = ("x", "y", "xmin", "ymin", "xmax", "ymax", "alpha", "threshold")
_WHOLE = ("id", "k")
_TIMES = ("time", "expires")


def normalise_spelling(table: pa.Table) -> pa.Table:
    """Outer white space goes; 7.0 is the whole number 7; a time without a zone is UTC, a day begins at midnight."""
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
    """Arrow wants a zone on each; the real data sets have days, and seconds without one."""
    values = pc.replace_substring_regex(values, r"^([0-9]{4}-[0-9]{2}-[0-9]{2})$", r"\1T00:00:00")
    return pc.replace_substring_regex(values, r"^([0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]+)$", r"\1Z")

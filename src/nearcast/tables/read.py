"""Reads tables of many forms and files as Arrow tables; writes an Arrow table to a file atomically."""

from __future__ import annotations

import json
import os
import tempfile
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from nearcast.arguments import a_path
from nearcast.errors import InvalidInput, StorageError
from nearcast.tables.ids.from_python import id_values
from nearcast.tables.input_checks.json_lines import require_shallow

if TYPE_CHECKING:
    from nearcast.storage.location import Location

_PARQUET = (".parquet", ".pq")
_CSV = (".csv", ".csv.gz")
_JSON = (".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz")
_ACCEPTED = (
    "a table is Arrow, pandas, Polars, a dict of columns, a list of dicts, or a path to .parquet, .csv or .jsonl (.gz)"
)


def as_arrow(source: Any) -> pa.Table:
    """The Arrow table of `source`: a path, columns, records or a data frame, as `_ACCEPTED` lists.

    pandas and Polars frames are read through the Arrow interface, without importing either.
    """
    table = _as_arrow(source)
    where = f"{source}: " if isinstance(source, str | os.PathLike) else ""
    try:
        names = table.column_names
    except UnicodeDecodeError:
        raise InvalidInput(f"{where}the name of a column is no valid UTF-8; save the table in UTF-8") from None
    if len({*names}) < len(names):
        name = next(name for name in names if names.count(name) > 1)
        raise InvalidInput(f"{where}several columns are named '{name}'; names must differ", column=name)
    return _without_views(table)


def _as_arrow(source: Any) -> pa.Table:
    if isinstance(source, str | os.PathLike):
        source = a_path(source, "a table")
        return _read_path(Path(source)) if not _is_url(source) else _read_url(source)
    if isinstance(source, pa.Table):
        return source
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    if type(source).__module__.partition(".")[0] == "pyspark":  # its Arrow interface would collect it
        raise InvalidInput(
            "a Spark DataFrame is matched where it is, by nearcast.spark.match(df, index); or pass df.toArrow()"
        )
    try:
        if isinstance(source, list):
            return _table_of_records(source)
        if isinstance(source, dict):
            return _table_of_columns(source)
        if hasattr(source, "__arrow_c_stream__") or _is_geodataframe(source):
            return pa.table(_with_arrow_regions(source))
    except InvalidInput:
        raise
    except (pa.ArrowException, AttributeError, TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(f"this does not make a table: {error}") from None
    raise InvalidInput(f"{type(source).__name__} is not a table; {_ACCEPTED}")


def _table_of_records(records: list[Any]) -> pa.Table:
    """A column for each key that some record has, null where a record lacks it."""
    for row, record in enumerate(records):
        if not isinstance(record, Mapping):
            raise InvalidInput(f"a list holds one dict for each row, not {type(record).__name__}", row=row)
    names = dict.fromkeys(name for record in records for name in record)
    columns = {name: [record.get(name) for record in records] for name in names}
    return _table_of_columns(columns)


def _table_of_columns(columns: Mapping[Any, Any]) -> pa.Table:
    for name in columns:
        if not isinstance(name, str):
            raise InvalidInput(f"the name of a column is text, not {name!r}")
    made = dict[str, Any]()
    for name, own in columns.items():
        try:
            values = _python_values(name, own)
            made[name] = values if _is_arrow(values) else pa.array(values)
        except (UnicodeEncodeError, OverflowError, ValueError, TypeError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput(_reason_of(error), column=name) from None
    return pa.table(made)


def _is_arrow(values: Any) -> bool:
    return isinstance(values, pa.Array | pa.ChunkedArray)


def _reason_of(error: Exception) -> str:
    """Why values make no column."""
    if isinstance(error, UnicodeEncodeError):
        return f"{error.object[:40]!r} is no valid Unicode; take the unpaired surrogate out"
    if isinstance(error, OverflowError):
        return "a number is not within int64"
    return f"the values make no column: {error}"


def _python_values(name: str, values: Any) -> Any:
    """The values of a column, where Arrow needs help: ids, and regions that are dicts or geometries."""
    if isinstance(values, str | bytes | int | float) or values is None:
        reason = f"a column is a list of values, not {values!r}; for one row write {{{name!r}: [{values!r}]}}"
        raise InvalidInput(reason, column=name)
    if name == "region":
        from nearcast.tables.regions.python_regions import region_values  # few tables have such

        return region_values(values)
    return id_values(values) if name == "id" else values


def _is_geodataframe(source: Any) -> bool:
    return hasattr(source, "to_arrow") and hasattr(source, "crs")


def _with_arrow_regions(frame: Any) -> Any:
    """The frame, with geometries as WKB or texts: pandas holds them as objects, which Arrow does not know."""
    if _is_geodataframe(frame):
        return frame.to_arrow(index=False, geometry_encoding="WKB")
    if type(frame).__module__.partition(".")[0] == "pandas" and "region" in frame:
        return frame.assign(region=_python_values("region", frame["region"].tolist()))
    return frame


def _without_views(table: pa.Table) -> pa.Table:
    """The table with strings instead of string views, which Polars produces and whose rows Arrow 26 cannot take; runs
    of equal values are written out.
    """
    for at, field in enumerate(table.schema):
        if pa.types.is_run_end_encoded(field.type):
            table = table.set_column(at, field.name, pc.run_end_decode(table.column(at)))
    kinds = [_without_view(field.type) for field in table.schema]
    if kinds == table.schema.types:
        return table
    return table.cast(pa.schema([field.with_type(kind) for field, kind in zip(table.schema, kinds, strict=True)]))


def _without_view(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner = _without_view(kind.value_type)
        return kind if inner == kind.value_type else pa.large_list(inner)
    return kind


def _read_path(path: Path) -> pa.Table:
    if not path.exists():
        raise InvalidInput(f"{path} does not exist")
    name = path.name.lower()
    try:
        if path.is_dir() or name.endswith(_PARQUET):
            return _sound(pq.read_table(path))
        if name.endswith(_CSV):
            return pyarrow.csv.read_csv(
                path,
                parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
                convert_options=pyarrow.csv.ConvertOptions(
                    null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
                ),
            )
        if name.endswith(_JSON):
            return _sound(_read_json(path))
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} cannot be read: the name of a column is no valid UTF-8") from None
    except (pa.ArrowException, OSError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}") from None
    raise InvalidInput(f"{path} has no known ending; {_ACCEPTED}")


def _sound(table: pa.Table) -> pa.Table:
    """The table, whose texts are valid UTF-8 and whose offsets are within their buffers; readers do not check that."""
    table.validate(full=True)
    return table


def _is_url(path: str | os.PathLike[str]) -> bool:
    if ":/" not in os.fspath(path):
        return False
    from nearcast.storage.location import is_url  # most engines read no tables

    return is_url(path)


def _read_url(url: str | os.PathLike[str]) -> pa.Table:
    from nearcast.storage.location import locate

    place = locate(url)
    if place.is_local:
        return _read_path(Path(place.path))
    name = place.name.lower()
    try:
        if name.endswith(_PARQUET) or place.is_folder():
            return pq.read_table(place.path, filesystem=place.filesystem)
        if not place.is_file():
            raise InvalidInput(f"{place.shown} does not exist")
        if name.endswith((*_CSV, *_JSON)):
            return _read_downloaded(place)
    except StorageError:
        raise
    except (pa.ArrowInvalid, pa.ArrowTypeError, OSError) as error:
        raise InvalidInput(f"{place.shown} cannot be read: {error}") from None
    raise InvalidInput(f"{place.shown} has no known ending; {_ACCEPTED}")


def _read_downloaded(place: Location) -> pa.Table:
    with tempfile.TemporaryDirectory(prefix="nearcast-") as folder:
        place.download(Path(folder) / place.name)
        return _read_path(Path(folder) / place.name)


def _read_json(path: Path) -> pa.Table:
    if path.stat().st_size == 0:
        return pa.table({})
    require_shallow(path)
    source = pa.CompressedInputStream(pa.OSFile(str(path)), "gzip") if path.name.endswith(".gz") else str(path)
    # The reader rejects a line longer than a block; no message has 64 MiB.
    return pyarrow.json.read_json(source, read_options=pyarrow.json.ReadOptions(block_size=1 << 26))


def write_table(table: pa.Table, path: str | os.PathLike[str]) -> None:
    """Write Parquet, CSV or JSON Lines, by the ending of the path: to a temporary file, fsynced and then renamed.

    To a URL, the file is written in one piece.
    """
    from nearcast.storage.location import locate

    place = locate(path)
    target, name = Path(place.path), place.name.lower()
    if not name.endswith((*_PARQUET, ".csv", ".jsonl")):
        raise InvalidInput(f"{path} has no known ending; results go to .parquet, .csv or .jsonl")
    if not place.is_local:
        _upload(table, place)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}")
    try:
        _write(table, temporary, name)
        with open(temporary, "rb+") as written:
            os.fsync(written.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _upload(table: pa.Table, place: Location) -> None:
    with tempfile.TemporaryDirectory(prefix="nearcast-") as folder:
        _write(table, Path(folder) / place.name, place.name.lower())
        place.upload(Path(folder) / place.name)


def _with_texts(table: pa.Table) -> pa.Table:
    """The table as CSV has it: UUIDs as texts, lists of words with spaces between them, other structures as JSON."""
    for at, field in enumerate(table.schema):
        if (
            isinstance(field.type, pa.BaseExtensionType)
            or pa.types.is_nested(field.type)
            or pa.types.is_binary(field.type)
        ):
            texts = [_text_of(value) for value in table.column(at).to_pylist()]
            table = table.set_column(at, field.name, pa.array(texts, pa.string()))
    return table


def _text_of(value: Any) -> str | None:
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return " ".join(value)
    if isinstance(value, dict | list):
        return json.dumps(value, default=str, ensure_ascii=False)
    return None if value is None else value.hex() if isinstance(value, bytes) else str(value)


def _write(table: pa.Table, path: Path, name: str) -> None:
    if name.endswith(_PARQUET):
        pq.write_table(table, path, compression="zstd")
    elif name.endswith(".csv"):
        pyarrow.csv.write_csv(_with_texts(table), path)
    else:
        with open(path, "w", encoding="utf-8") as out:
            for batch in table.to_batches(max_chunksize=65_536):
                for record in batch.to_pylist():
                    out.write(json.dumps(record, default=str, ensure_ascii=False) + "\n")

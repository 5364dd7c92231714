"""Which columns of a DataFrame hold what: selects them before they travel to Python, and checks their types."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from nearcast.arrays.jit.dispatcher import interpreted
from nearcast.errors import InvalidInput
from nearcast.geo.space import BOX_COLUMNS
from nearcast.sharding.frame_match import FrameColumns
from nearcast.sharding.match_shards import MESSAGE_COLUMNS
from nearcast.spark.runtime.session import DataFrame
from nearcast.tables.input_checks.known_columns import POINTS

MATCH_COLUMNS = ("message", "subscription", "score")
_PART = re.compile(r"`([^`]*)`|([^.`]+)")
_PLACES = (*POINTS, *BOX_COLUMNS)


class Sent(NamedTuple):
    """The columns that travel to Python, and what they mean."""

    frame: DataFrame  # of these columns only, named _0, _1, ...
    columns: FrameColumns
    fields: tuple[Any, ...]  # their StructFields, with the names of the user

    def kept_fields(self) -> list[Any]:
        """The StructFields of the kept columns."""
        from pyspark.sql.types import StructField

        return [StructField(name, self.fields[at].dataType) for name, at in self.columns.keep]

    def id_type(self) -> Any:
        """The type of the column `message`: a string, or a long for every whole number."""
        from pyspark.sql.types import LongType, StringType

        return StringType() if isinstance(self._type_of("id"), StringType) else LongType()

    def _type_of(self, name: str) -> Any:
        return self.fields[self.columns.read[name]].dataType


def select_columns(
    frame: DataFrame,
    columns: Mapping[str, Any] | None,
    keep: Sequence[Any],
    read: Callable[[pa.Table], Any],
    names: Sequence[str] = MESSAGE_COLUMNS,
) -> Sent:
    """Only the columns that the task reads and those to keep: mapInArrow would send them all to Python.

    `columns` gives columns by their names in a messages table; a column of such a name that is not given is taken as it
    is. A column is a name, with dots for nested fields, or an expression. `read` raises for columns that will not do.
    """
    require_frame(frame)
    given = _given_columns(frame, columns or {}, names)
    sources: list[Any] = []
    positions = {name: _position(sources, source) for name, source in given.items()}
    kept = tuple((_name_of(source), _position(sources, source)) for source in keep)
    _check_kept([name for name, _ in kept])
    selected, fields = _select(frame, sources)
    sent = Sent(selected, FrameColumns(positions, kept, {n: _name_of(s) for n, s in given.items()}), fields)
    _check_types(sent, read)
    return sent


def require_frame(frame: Any) -> None:
    from pyspark.sql import DataFrame as AnyFrame

    if not isinstance(frame, AnyFrame):
        raise InvalidInput(f"messages are a Spark DataFrame, not {type(frame).__name__}; match tables with index.match")


def _given_columns(frame: DataFrame, columns: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    unknown = sorted(columns.keys() - {*names})
    if unknown:
        raise InvalidInput(f"columns={{...}} has no '{unknown[0]}'; there are {', '.join(names)}")
    named = [name for name in names if name in frame.columns and not _is_replaced(name, columns)]
    given = {name: f"`{name}`" for name in named} | dict(columns)
    if "id" in names and "id" not in given:
        there = ", ".join(frame.columns) or "none"
        raise InvalidInput(f"messages need a column 'id'; there are {there}; name yours: columns={{'id': ...}}")
    return {name: given[name] for name in names if name in given}


def _is_replaced(name: str, columns: Mapping[str, Any]) -> bool:
    """Whether the user gave another column for the same thing: a text for tokens, or another pair for the place."""
    groups = (("text", "tokens"), _PLACES)
    return name in columns or any(name in group and not columns.keys().isdisjoint(group) for group in groups)


def _position(sources: list[Any], source: Any) -> int:
    """The place of a source among those that are sent; the same name is sent once."""
    for k, known in enumerate(sources):
        if known is source or (isinstance(known, str) and isinstance(source, str) and _plain(known) == _plain(source)):
            return k
    sources.append(source)
    return len(sources) - 1


def _plain(name: str) -> str:
    return name[1:-1] if name[:1] == name[-1:] == "`" and "`" not in name[1:-1] and "." not in name else name


def _name_of(source: Any) -> str:
    """The name under which a column is shown and kept: of a nested field, the last part."""
    if isinstance(source, str):
        plain = _plain(source)
        return plain if plain[:1] == "`" else plain.rpartition(".")[2]
    return _alias_of(source)


def _alias_of(column: Any) -> str:
    text = str(column)  # Column<'lower(body) AS text'>
    inner = text[len("Column<'") : -len("'>")] if text.startswith("Column<'") else text
    return inner.rpartition(" AS ")[2].strip("`")


def _check_kept(names: Sequence[str]) -> None:
    for k, name in enumerate(names):
        if name in MATCH_COLUMNS:
            raise InvalidInput(f"a kept column cannot be called '{name}'; rename it with F.col('{name}').alias(...)")
        if name in names[:k]:
            raise InvalidInput(f"two kept columns are called '{name}'; rename one with F.col(...).alias(...)")


def _select(frame: DataFrame, sources: Sequence[Any]) -> tuple[DataFrame, tuple[Any, ...]]:
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as F

    for source in sources:
        if isinstance(source, str) and not _exists(frame.schema, source):
            there = ", ".join(frame.columns) or "none"
            raise InvalidInput(f"no column {_plain(source)!r}; there are {there}")
    wanted = [F.col(source) if isinstance(source, str) else source for source in sources]
    try:
        selected = frame.select(*(column.alias(f"_{k}") for k, column in enumerate(wanted)))
        return selected, tuple(selected.schema.fields)  # Connect analyses a plan only when asked for its schema
    except AnalysisException as error:
        raise InvalidInput(f"the columns cannot be selected: {str(error).splitlines()[0]}") from None


def _exists(kind: Any, source: str) -> bool:
    """Whether a schema has this column or nested field. Spark itself would log its error with a stack of Java."""
    from pyspark.sql.types import StructType

    for quoted, plain in _PART.findall(source):
        if not isinstance(kind, StructType):
            return True  # an entry of a map or of an array: Spark knows
        found = [field for field in kind.fields if field.name.lower() == (quoted or plain).lower()]
        if not found:
            return False
        kind = found[0].dataType
    return True


def _check_types(sent: Sent, read: Callable[[pa.Table], Any]) -> None:
    """Raise what every batch would raise, and refuse types that no row can have."""
    names = sent.columns.sources
    columns: dict[str, Any] = {}
    for name, at in sent.columns.read.items():
        kind = sent.fields[at].dataType.simpleString()
        arrow = _arrow_type(kind)
        if name == "id" and kind not in (*WHOLE_TYPES, "string"):
            raise InvalidInput(f"ids are whole numbers or strings, not {kind}; cast the column", column=names[name])
        if arrow is None or (name in _PLACES and kind in _NO_NUMBERS):
            raise InvalidInput(f"it cannot be {kind}", column=names[name])
        columns[name] = pa.array([], arrow)
    try:
        interpreted(read)(pa.table(columns))  # without rows: no kernel is worth the 0.3 s in which the first one loads
    except InvalidInput as error:
        raise InvalidInput(error.reason, column=names.get(error.column or "", error.column)) from None


WHOLE_TYPES = ("tinyint", "smallint", "int", "bigint")
_ARROW = dict.fromkeys(WHOLE_TYPES, pa.int64()) | {
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "date": pa.date32(),
    "boolean": pa.bool_(),
    "void": pa.null(),
    "array<string>": pa.list_(pa.string()),
}
_NO_NUMBERS = ("timestamp", "timestamp_ntz", "date", "boolean", "array<string>")


def _arrow_type(kind: str) -> pa.DataType | None:
    """The Arrow type of a column that matching may read; None for the other types of Spark."""
    if kind.startswith("decimal"):
        return pa.decimal128(38, 18)
    return _ARROW.get("string" if kind.startswith(("char", "varchar", "string")) else kind)

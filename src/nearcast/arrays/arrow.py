"""Arrow arrays as flat NumPy arrays, without copying the values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc

from nearcast.arrays.ragged import starts_of
from nearcast.errors import CorruptFile, InvalidInput

MAX_OFFSET = np.iinfo(np.int32).max
"""The largest offset of the types `string` and `list`; longer arrays need the `large_` types."""


def one_array(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The chunks as one array. Strings and lists that would overflow int32 offsets get the `large_` type."""
    if not isinstance(array, pa.ChunkedArray):
        if not isinstance(array, pa.Array):
            raise InvalidInput(f"an array of Arrow is needed, not {type(array).__name__}")
        return array
    if array.num_chunks == 1:
        return array.chunk(0)
    if array.nbytes > MAX_OFFSET:
        array = array.cast(_large(array.type))
    return array.combine_chunks()


def filled(array: pa.Array, value: Any) -> pa.Array:
    """The array with `value` in place of nulls. Without nulls it is returned at once; `fill_null` takes 10 to 25 us."""
    return array.fill_null(value) if array.null_count else array


def strings(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One `string` or `large_string` array; dictionaries are decoded. Raises InvalidInput for other types."""
    array = one_array(array)
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return array
    value_kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_null(value_kind):
        return array.cast(pa.string())
    if not _is_text(value_kind):
        raise InvalidInput(f"strings are needed, not {kind}")
    if pa.types.is_dictionary(kind):
        return array.dictionary.cast(pa.large_string()).take(
            array.indices
        )  # large: a short array can decode to over 2 GiB
    return array.cast(pa.large_string())


def string_buffers(array: pa.Array | pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
    """(bytes uint8[...], offsets int64[n+1]): string i is bytes[offsets[i]:offsets[i+1]]; a null reads as empty.

    The bytes are Arrow's own buffer. Both arrays are always marked read-only, because Numba compiles a kernel again
    for each mix of read-only and writable arguments.
    """
    array = filled(strings(array), "")  # the bytes of a null are undefined
    _, offsets, values = array.buffers()
    width = np.int64 if pa.types.is_large_string(array.type) else np.int32
    if offsets is None or not len(array):
        return _read_only(np.zeros(0, np.uint8)), _read_only(np.zeros(len(array) + 1, np.int64))
    starts = np.frombuffer(offsets, width)[array.offset : array.offset + len(array) + 1]
    raw = np.zeros(0, np.uint8) if values is None else np.frombuffer(values, np.uint8)
    return _read_only(raw), _read_only(starts.astype(np.int64, copy=False))


def list_parts(array: pa.Array | pa.ChunkedArray) -> tuple[pa.Array, np.ndarray]:
    """(values, starts int64[n+1]): row i is values[starts[i]:starts[i+1]]; a null row is empty."""
    array = one_array(array)
    kind = array.type
    if pa.types.is_null(kind):
        return array.slice(0, 0), np.zeros(len(array) + 1, np.int64)
    if not _is_list(kind):
        raise InvalidInput(f"lists are needed, not {kind}")
    if pa.types.is_list(kind) and not array.null_count:
        starts = array.offsets.to_numpy().astype(np.int64)
        return array.flatten(), starts - starts[0]
    counts = filled(pc.list_value_length(array), 0)
    return array.flatten(), starts_of(counts.to_numpy(zero_copy_only=False))


def is_null_mask(array: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """bool[n]: where the array is null. An entry of a dictionary may be null too."""
    return np.asarray(one_array(array).is_null().to_numpy(zero_copy_only=False), bool)


def string_array(raw: np.ndarray, starts: np.ndarray) -> pa.Array:
    """A `string` array over these bytes (uint8) and starts (int32), without a copy."""
    return pa.StringArray.from_buffers(len(starts) - 1, pa.py_buffer(starts), pa.py_buffer(raw))


def large_string_array(raw: np.ndarray, starts: np.ndarray) -> pa.Array:
    """A `large_string` array over these bytes (uint8) and starts (int64), without a copy."""
    return pa.LargeStringArray.from_buffers(len(starts) - 1, pa.py_buffer(starts), pa.py_buffer(raw))


def stream_bytes(table: pa.Table) -> np.ndarray:
    """uint8[...]: a table in Arrow's stream format."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as out:
        out.write_table(table)
    return np.frombuffer(sink.getvalue(), np.uint8)


def stream_table(saved: np.ndarray) -> pa.Table:
    """The table of `stream_bytes`, without a copy."""
    try:
        with pa.ipc.open_stream(pa.py_buffer(saved)) as source:
            return source.read_all()
    except (pa.ArrowInvalid, OSError) as error:
        raise CorruptFile(f"a saved table cannot be read: {error}") from None


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _large(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string(kind):
        return pa.large_string()
    return pa.large_list(_large(kind.value_type)) if pa.types.is_list(kind) else kind


def _read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from nearcast.arrays.arrow import is_null_mask, list_parts, string_buffers
from nearcast.errors import InvalidInput

STRINGS = ["", "a", None, "né\0", "漢字", "a"]


def read(array: pa.Array | pa.ChunkedArray) -> list[str]:
    raw, offsets = string_buffers(array)
    assert raw.dtype == np.uint8 and offsets.dtype == np.int64
    assert not raw.flags.writeable and not offsets.flags.writeable
    return [raw[offsets[i] : offsets[i + 1]].tobytes().decode() for i in range(len(offsets) - 1)]


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
)
def test_strings_of_every_type_read_the_same(kind: pa.DataType) -> None:
    array = (
        pa.array(STRINGS, pa.string()).cast(kind) if "dict" not in str(kind) else pa.array(STRINGS).dictionary_encode()
    )
    expected = [text or "" for text in STRINGS]
    assert read(array) == expected
    assert read(array.slice(1, 4)) == expected[1:5]
    assert read(pa.chunked_array([array.slice(2), array.slice(0, 2)])) == expected[2:] + expected[:2]
    assert is_null_mask(array).tolist() == [text is None for text in STRINGS]


def test_empty_arrays_have_one_offset() -> None:
    for array in (
        pa.array([], pa.string()),
        pa.chunked_array([], pa.string()),
        pa.nulls(0),
        pa.array(["a"]).slice(1),
    ):
        assert read(array) == []


def test_a_null_reads_as_empty_even_with_bytes_under_it() -> None:
    validity = pa.py_buffer(bytes([0b101]))
    offsets = pa.py_buffer(np.array([0, 1, 3, 4], np.int32))
    array = pa.StringArray.from_buffers(3, offsets, pa.py_buffer(b"abcd"), validity, 1)
    assert read(array) == ["a", "", "d"]


def test_the_bytes_are_not_copied() -> None:
    array = pa.array(["abc", "def"])
    assert string_buffers(array)[0].ctypes.data == array.buffers()[2].address


def test_arrays_of_other_types_are_refused() -> None:
    for array in (pa.array([1]), pa.array([b"a"]), pa.array([["a"]]), pa.array([1]).dictionary_encode()):
        with pytest.raises(InvalidInput, match="strings are needed"):
            string_buffers(array)


LISTS = [["a", "b"], None, ["c", None]]


@pytest.mark.parametrize("kind", [pa.list_(pa.string()), pa.large_list(pa.string()), pa.list_(pa.string(), 2)])
def test_lists_of_every_type_read_the_same(kind: pa.DataType) -> None:
    array = pa.array(LISTS, kind)
    for whole in (array, pa.chunked_array([array.slice(0, 1), array.slice(1)])):
        values, starts = list_parts(whole)
        assert values.to_pylist() == ["a", "b", "c", None]
        assert starts.tolist() == [0, 2, 2, 4]
    values, starts = list_parts(array.slice(1))
    assert (values.to_pylist(), starts.tolist()) == (["c", None], [0, 0, 2])


def test_a_null_list_is_empty_even_with_values_under_it() -> None:
    mask = pa.array([False, True, False])
    array = pa.ListArray.from_arrays(pa.array([0, 1, 3, 4], pa.int32()), pa.array(list("abcd")), mask=mask)
    values, starts = list_parts(array)
    assert (values.to_pylist(), starts.tolist()) == (["a", "d"], [0, 1, 1, 2])


def test_null_arrays_are_empty_and_other_types_are_refused() -> None:
    assert list_parts(pa.nulls(2))[1].tolist() == [0, 0, 0]
    assert list_parts(pa.array([], pa.list_(pa.string())))[1].tolist() == [0]
    with pytest.raises(InvalidInput, match="lists are needed"):
        list_parts(pa.array(["a"]))

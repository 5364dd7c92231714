from __future__ import annotations

import math
import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import xxhash

from nearcast.errors import CorruptFile, ForeignVersion, InvalidInput
from nearcast.text import vocabulary_file
from nearcast.text.analyser import Analyser
from nearcast.text.vocabulary import Vocabulary


def make(*tokens: str, analyser: Analyser | None = None) -> Vocabulary:
    vocabulary = Vocabulary(analyser)
    vocabulary.add(pa.array(tokens, pa.string()))
    return vocabulary


def test_terms_are_dense_in_order_of_first_appearance() -> None:
    vocabulary = Vocabulary()
    assert vocabulary.add(pa.array(["b", "a", "b", ""])).tolist() == [0, 1, 0, 2]
    assert vocabulary.add(pa.array(["c", "a"])).tolist() == [3, 1]
    assert len(vocabulary) == 4
    assert [vocabulary.token(term) for term in range(4)] == ["b", "a", "", "c"]
    assert vocabulary.tokens(np.array([3, 0, 3])).to_pylist() == ["c", "b", "c"]


def test_an_empty_vocabulary_knows_nothing() -> None:
    vocabulary = Vocabulary()
    assert len(vocabulary) == 0
    assert vocabulary.lookup(pa.array(["a", ""])).tolist() == [-1, -1]
    assert vocabulary.add(pa.array([], pa.string())).tolist() == []
    assert vocabulary.term("a") == -1
    assert vocabulary.weights().tolist() == []


def test_tokens_of_any_string_type_are_found() -> None:
    tokens = pa.array(["x", "b", None, "a", "né", "b"])
    vocabulary = make("a", "b", "né")
    expected = [-1, 1, -1, 0, 2, 1]
    chunked = pa.chunked_array([tokens[:2], tokens[2:]])
    for array in (
        tokens,
        tokens.cast(pa.large_string()),
        tokens.dictionary_encode(),
        chunked,
        chunked.dictionary_encode(),
    ):
        assert vocabulary.lookup(array).tolist() == expected
        assert vocabulary.lookup(array.slice(1, 4)).tolist() == expected[1:5]
    assert vocabulary.lookup(pa.nulls(2)).tolist() == [-1, -1]
    assert len(vocabulary) == 3


def test_adding_a_dictionary_takes_only_the_entries_in_use() -> None:
    tokens = pa.DictionaryArray.from_arrays(pa.array([2, 0, 2]), pa.array(["a", "unused", "c"]))
    vocabulary = Vocabulary()
    assert vocabulary.add(tokens).tolist() == [0, 1, 0]
    assert vocabulary.tokens(np.arange(2)).to_pylist() == ["c", "a"]


def test_a_batch_with_a_null_is_refused_and_adds_nothing() -> None:
    vocabulary = make("a")
    with pytest.raises(InvalidInput, match="row 2") as caught:
        vocabulary.add(pa.array(["b", None]))
    assert caught.value.row == 2
    assert len(vocabulary) == 1


def test_single_lookups_agree_with_batches_while_it_grows() -> None:
    vocabulary = make("a", "b", "c")
    assert [vocabulary.term(token) for token in ("a", "b", "c", "d", "", "\ud800")] == [0, 1, 2, -1, -1, -1]
    vocabulary.add(pa.array(["d"]))
    assert vocabulary.term("d") == 3


def test_the_terms_of_a_message_are_sorted_and_distinct() -> None:
    vocabulary = make("b", "a", "", "two\nlines", "\0", "né", "ÿ", "\n", "東京")
    assert vocabulary.terms(["a", "b", "unknown", "a"]).tolist() == [0, 1]
    assert vocabulary.terms([]).tolist() == []
    assert vocabulary.terms([""]).tolist() == [2]
    assert vocabulary.terms(["two", "lines"]).tolist() == []
    assert vocabulary.terms(["ÿ", "two\nlines", "\0", "", "\n"]).tolist() == [2, 3, 4, 6, 7]
    assert vocabulary.terms(["\udcff", "a", "\udcc3\udca9", "東京"]).tolist() == [1, 8]
    assert vocabulary.terms(token for token in ("né", "b\n")).tolist() == [5]
    assert vocabulary.terms(["a"]).dtype == np.int32
    with pytest.raises(InvalidInput, match="tokens are a list of strings"):
        vocabulary.terms([b"a"])  # type: ignore[list-item]


def test_a_message_of_thousands_of_tokens_is_looked_up_whole() -> None:
    vocabulary = make(*(f"t{i}" for i in range(500)))
    tokens = [f"t{(i * 7919) % 1000}" for i in range(2000)]
    assert vocabulary.terms(tokens).tolist() == list(range(500))


def test_an_unknown_term_is_an_error() -> None:
    vocabulary = make("a")
    for term in (-1, 1):
        with pytest.raises(IndexError):
            vocabulary.token(term)
        with pytest.raises(InvalidInput):
            vocabulary.tokens(np.array([0, term]))
    with pytest.raises(InvalidInput):
        vocabulary.count_documents(np.array([1], np.int32), np.array([0, 1]))


def test_documents_count_once_for_each_distinct_term() -> None:
    vocabulary = make("a", "b", "c")
    vocabulary.count_documents(np.array([0, 0, 1, -1, 0], np.int32), np.array([0, 4, 4, 5]))
    assert vocabulary.frequencies.tolist() == [2, 1, 0]
    assert vocabulary.n_documents == 3
    vocabulary.add(pa.array(["d"]))
    assert vocabulary.frequencies.tolist() == [2, 1, 0, 0]
    weights = [math.log(1 + 3 / 2), math.log(1 + 3), math.log(1 + 3), math.log(1 + 3)]
    assert vocabulary.weights() == pytest.approx(weights)


def test_a_saved_vocabulary_can_be_opened_and_grow(tmp_path: Path) -> None:
    analyser = Analyser(stem="english")
    vocabulary = make("a", "b", "x" * 1000, "", analyser=analyser)
    vocabulary.count_documents(np.array([0, 1, 1], np.int32), np.array([0, 2, 3]))
    path = tmp_path / "vocabulary"
    vocabulary.save(path)
    before = path.read_bytes()
    opened = Vocabulary.open(path)
    assert (opened.analyser, opened.n_documents, len(opened)) == (analyser, 2, 4)
    assert opened.frequencies.tolist() == [1, 2, 0, 0]
    many = pa.array([f"t{i}" for i in range(300)])
    assert opened.add(many).tolist() == vocabulary.add(many).tolist() == list(range(4, 304))
    opened.count_documents(np.array([0], np.int32), np.array([0, 1]))
    assert opened.frequencies[0] == 2
    assert path.read_bytes() == before
    opened.save(path)
    assert len(Vocabulary.open(path)) == 304
    assert [entry.name for entry in tmp_path.iterdir()] == ["vocabulary"]


def test_an_empty_vocabulary_can_be_saved(tmp_path: Path) -> None:
    Vocabulary().save(tmp_path / "v")
    opened = Vocabulary.open(tmp_path / "v")
    assert (len(opened), opened.analyser, opened.lookup(pa.array(["a"])).tolist()) == (0, None, [-1])


def test_a_truncated_or_changed_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "v"
    make("a", "b", analyser=Analyser()).save(path)
    whole = path.read_bytes()
    for size in {0, 1, 8, 63, 64, 65, len(whole) // 2, len(whole) - 1}:
        path.write_bytes(whole[:size])
        with pytest.raises(CorruptFile):
            Vocabulary.open(path)
    path.write_bytes(whole + b"\0")
    with pytest.raises(CorruptFile):
        Vocabulary.open(path)
    for byte in range(0, len(whole), 5):
        path.write_bytes(whole[:byte] + bytes([whole[byte] ^ 4]) + whole[byte + 1 :])
        with pytest.raises(CorruptFile):
            Vocabulary.open(path)


def test_another_version_of_the_file_the_vocabulary_or_the_analyser_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "v"
    vocabulary = make("a", analyser=Analyser())
    vocabulary.save(path)
    whole = bytearray(path.read_bytes())
    whole[8:12] = struct.pack("<I", vocabulary_file.FILE_VERSION + 1)
    whole[56:64] = struct.pack("<Q", xxhash.xxh3_64_intdigest(bytes(whole[:56])))
    path.write_bytes(whole)
    with pytest.raises(ForeignVersion, match="file version 2"):
        Vocabulary.open(path)
    for change in ({"version": 3}, {"analyser": {"version": 3}}):
        vocabulary_file.write_file(path, {**vocabulary.header(), **change}, vocabulary.arrays())
        with pytest.raises(ForeignVersion, match="version 3"):
            Vocabulary.open(path)


def test_an_unreadable_header_is_an_error_even_without_verifying(tmp_path: Path) -> None:
    path = tmp_path / "v"
    make("a").save(path)
    whole = bytearray(path.read_bytes())
    whole[64:66] = b"!!"
    path.write_bytes(whole)
    with pytest.raises(CorruptFile, match="header"):
        Vocabulary.open(path, verify=False)


def test_arrays_that_do_not_fit_together_are_refused() -> None:
    vocabulary = make("a", "b")
    arrays = vocabulary.arrays()
    changes = (
        {"slots": np.zeros(3, np.uint64)},
        {"slots": np.zeros(2, np.uint64)},
        {"slots": np.zeros(0, np.uint64)},
        {"frequencies": np.zeros(1, np.int64)},
        {"token_bytes": np.zeros(1, np.uint8)},
        {"token_starts": np.zeros(3, np.int32)},
    )
    for change in changes:
        with pytest.raises(CorruptFile):
            Vocabulary.from_arrays({**arrays, **change}, vocabulary.header())
    assert len(Vocabulary.from_arrays(arrays, vocabulary.header())) == 2


def test_a_failed_save_leaves_only_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "v"
    make("a").save(path)

    def fail(*args: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(vocabulary_file.os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        make("a", "b").save(path)
    monkeypatch.undo()
    assert len(Vocabulary.open(path)) == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["v"]

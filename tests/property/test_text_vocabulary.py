"""A vocabulary assigns the same terms as a dict, for any tokens added in any batches."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nearcast.arrays.jit import JIT_DISABLED
from nearcast.text.analyser import Analyser
from nearcast.text.token_table import hash_of, is_same
from nearcast.text.vocabulary import Vocabulary

EXAMPLES = settings(max_examples=40 if JIT_DISABLED else 200, deadline=None)

# Lengths around 4, 8 and 16 bytes, where the loads of the hash change, over two letters so that similar tokens occur
short = st.text("ab", max_size=18)
tokens = short | st.text(max_size=6).map(lambda text: text.encode("utf-8", "ignore").decode())


@EXAMPLES
@given(st.lists(st.lists(tokens, max_size=40), max_size=6), st.lists(tokens, max_size=20))
def test_a_vocabulary_is_a_dictionary(batches: list[list[str]], looked_up: list[str]) -> None:
    vocabulary = Vocabulary()
    terms: dict[str, int] = {}
    for batch in batches:
        added = vocabulary.add(pa.array(batch, pa.string()))
        assert added.tolist() == [terms.setdefault(token, len(terms)) for token in batch]
    expected = [terms.get(token, -1) for token in looked_up]
    assert vocabulary.lookup(pa.array(looked_up, pa.string())).tolist() == expected
    assert [vocabulary.term(token) for token in looked_up] == expected
    assert vocabulary.terms(looked_up).tolist() == sorted(set(expected) - {-1})
    assert vocabulary.tokens(np.arange(len(terms))).to_pylist() == list(terms)
    assert len(vocabulary) == len(terms)


@EXAMPLES
@given(st.lists(st.lists(st.integers(-1, 3), max_size=6), max_size=6))
def test_document_frequencies_are_counted_by_hand(documents: list[list[int]]) -> None:
    vocabulary = Vocabulary()
    vocabulary.add(pa.array(list("abcd")))
    starts = np.cumsum([0, *map(len, documents)])
    vocabulary.count_documents(np.array(sum(documents, []), np.int32), starts)
    assert vocabulary.frequencies.tolist() == [sum(term in document for document in documents) for term in range(4)]
    assert vocabulary.n_documents == len(documents)


@EXAMPLES
@given(st.binary(max_size=20), st.binary(max_size=20), st.integers(0, 3))
def test_hash_and_comparison_see_all_bytes_and_nothing_else(a: bytes, b: bytes, shift: int) -> None:
    first = np.frombuffer(a, np.uint8)
    moved = np.frombuffer(bytes(shift) + a + b"\xff", np.uint8)
    assert hash_of(first, 0, len(a)) == hash_of(moved, shift, shift + len(a))
    assert is_same(first, 0, moved, shift, len(a))
    for i in range(len(a)):
        changed = first.copy()
        changed[i] ^= 1
        changed.flags.writeable = False
        assert not is_same(changed, 0, moved, shift, len(a))
        assert hash_of(changed, 0, len(a)) != hash_of(first, 0, len(a))
    if len(a) == len(b):
        assert is_same(first, 0, np.frombuffer(b, np.uint8), 0, len(a)) == (a == b)


def test_ten_thousand_tokens_with_long_probes_are_all_found() -> None:
    n = 500 if JIT_DISABLED else 10_000
    added = pa.array([f"token number {i}" for i in range(n)])
    vocabulary = Vocabulary()
    assert vocabulary.add(added).tolist() == list(range(n))
    assert vocabulary.lookup(added).tolist() == list(range(n))
    assert (vocabulary.lookup(pa.array([f"token number -{i}" for i in range(n)])) == -1).all()


@given(st.text(st.sampled_from("aB1'.,-_#@ \n\0é漢"), max_size=12), st.booleans(), st.sampled_from([None, "english"]))
@example("", False, None)
@example("#a@b a'b a.b 1,2 aB AB", False, None)
def test_the_terms_of_a_text_are_those_of_its_tokens(text: str, fold_accents: bool, stem: str | None) -> None:
    analyser = Analyser(fold_accents=fold_accents, stem=stem)
    vocabulary = Vocabulary()
    vocabulary.add(pa.array(["a", "b", "#a", "@b", "a'b", "ab", "1,2", "é", "e", "漢"]))
    assert vocabulary.terms_of_text(text, analyser).tolist() == vocabulary.terms(analyser.tokens(text)).tolist()

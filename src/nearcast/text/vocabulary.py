"""The vocabulary: maps tokens to terms and back, and counts in how many documents each term occurs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.arrays.arrow import is_null_mask, one_array, string_array, string_buffers
from nearcast.arrays.growable import grown
from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import drop_repeats, sort_in_place, sorted_sets, take
from nearcast.errors import CorruptFile, ForeignVersion, InvalidInput
from nearcast.text.analyser import Analyser
from nearcast.text.character_table import character_table
from nearcast.text.simple_tokens import append_ascii_tokens
from nearcast.text.token_table import (
    MAX_LOAD,
    add_tokens,
    fill_slots,
    hash_of,
    lookup_message,
    lookup_tokens,
    term_from,
)
from nearcast.text.vocabulary_file import read_file, write_file

VOCABULARY_VERSION = 1
"""Increased when the meaning of the arrays or the hash function changes."""

_TERM = np.dtype(np.int32)  # created once: np.empty takes twice as long if NumPy must look up the dtype

_DTYPES = {"token_bytes": np.uint8, "token_starts": np.int64, "slots": np.uint64, "frequencies": np.int64}


class Vocabulary:
    """All tokens, each with its term: an int32, numbered from 0 in order of first appearance, that never changes.

    Any number of threads may read, one may add. `analyser` is the analyser that produced the tokens, or None; it is
    saved with them.
    """

    def __init__(self, analyser: Analyser | None = None) -> None:
        self.analyser = analyser
        self.n_documents = 0
        self._n = 0
        self._bytes = np.empty(0, np.uint8)
        self._starts = np.zeros(1, np.int64)
        self._slots = np.zeros(16, np.uint64)
        self._frequencies = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return self._n

    def add(self, tokens: pa.Array | pa.ChunkedArray) -> np.ndarray:
        """int32[n]: the term of each token; an unknown token gets the next term."""
        nulls = is_null_mask(tokens)
        if nulls.any():
            raise InvalidInput("a token is null", row=int(nulls.argmax()))
        return self._add(*string_buffers(tokens))

    def add_strings(self, tokens: Sequence[str]) -> np.ndarray:
        """The same as `add`, for the few tokens of one subscription: 5 us instead of 25."""
        encoded = [token.encode() for token in tokens]
        offsets = np.fromiter(accumulate(map(len, encoded), initial=0), np.int64, len(encoded) + 1)
        offsets.flags.writeable = False  # as in `string_buffers`
        return self._add(np.frombuffer(b"".join(encoded), np.uint8), offsets)

    def _add(self, raw: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        terms = np.empty(len(offsets) - 1, np.int32)
        done = 0
        while done < len(terms):
            args = (self._n, raw, offsets[done:], terms[done:])
            n_added, self._n = add_tokens(self._slots, self._starts, self._bytes, *args)
            done += n_added
            if done < len(terms):
                self._make_room(int(offsets[done + 1] - offsets[done]))
        self._frequencies = grown(self._frequencies, self._n, fill=0)
        return terms

    @property
    def _table(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Slots, starts and bytes of the present terms. Lookups pass over terms that another thread is adding."""
        n = self._n  # read first: the arrays that are read after it have these terms
        return self._slots, self._starts[: n + 1], self._bytes

    def lookup(self, tokens: pa.Array | pa.ChunkedArray) -> np.ndarray:
        """int32[n]: the term of each token; -1 if it is unknown or null."""
        tokens = one_array(tokens)
        if pa.types.is_dictionary(tokens.type):
            return self._lookup_dictionary(tokens)
        raw, offsets = string_buffers(tokens)
        terms = np.empty(len(offsets) - 1, np.int32)
        lookup_tokens(*self._table, raw, offsets, terms)
        if tokens.null_count:
            terms[is_null_mask(tokens)] = -1
        return terms

    def term(self, token: str) -> int:
        """The term of one token, or -1."""
        found = self.terms((token,))
        return int(found[0]) if len(found) else -1

    def terms(self, tokens: Iterable[str]) -> np.ndarray:
        """int32[k]: the known terms of one message, sorted and distinct."""
        tokens = tokens if type(tokens) is list else [*tokens]
        terms = np.empty(len(tokens), _TERM)
        try:
            joined = "\n".join(tokens).encode()
            n = lookup_message(*self._table, joined, 0x0A, terms)
        except UnicodeEncodeError:
            n = -1
        if n < 0:  # a token has a line feed or an unpaired surrogate; no UTF-8 has the byte 0xFF
            joined = b"\xff".join([token.encode("utf-8", "surrogatepass") for token in tokens])
            n = lookup_message(*self._table, joined, 0xFF, terms)
        return terms[:n]

    def terms_of_text(self, text: str, analyser: Analyser) -> np.ndarray:
        """int32[k]: the known terms of one text, sorted and distinct. ASCII texts take 2 us instead of 17."""
        if not text or not text.isascii() or analyser.stop_words is not None or analyser.stem is not None:
            return self.terms(analyser.tokens(text))
        raw, table = np.frombuffer(bytearray(text, "ascii"), np.uint8), character_table(analyser.fold_accents)
        terms = np.empty((len(raw) + 1) // 2, _TERM)
        return terms[: lookup_ascii_text(*self._table, raw, table, terms)]

    def token(self, term: int) -> str:
        if not 0 <= term < self._n:
            raise IndexError(f"term {term} of {self._n}")
        return self._bytes[self._starts[term] : self._starts[term + 1]].tobytes().decode()

    def tokens(self, terms: np.ndarray) -> pa.StringArray:
        terms = np.asarray(terms, np.int64)
        self._check(terms, lowest=0)
        raw, starts = take(self._bytes, self._starts, terms)
        if starts[-1] > np.iinfo(np.int32).max:
            raise InvalidInput("more than 2 GiB of tokens at once; request fewer terms at a time")
        return string_array(raw, starts.astype(np.int32))

    @property
    def frequencies(self) -> np.ndarray:
        """int64[n]: the number of counted documents in which each term occurs."""
        return self._frequencies[: self._n]

    def count_documents(self, terms: np.ndarray, term_starts: np.ndarray) -> None:
        """Add 1 to the frequency of each distinct term of each document. Negative (unknown) terms are ignored."""
        terms = np.ascontiguousarray(terms, np.int32)
        self._check(terms, lowest=np.iinfo(np.int32).min)
        distinct, _ = sorted_sets(terms, np.ascontiguousarray(term_starts, np.int64))
        _add_one_each(distinct, self._frequencies)
        self.n_documents += len(term_starts) - 1

    def weights(self) -> np.ndarray:
        """float64[n]: ln(1 + N / df). A term that occurs in no document weighs as much as one of a single document."""
        return np.asarray(np.log1p(self.n_documents / np.maximum(self.frequencies, 1)))

    @property
    def nbytes(self) -> int:
        return self._bytes.nbytes + self._starts.nbytes + self._slots.nbytes + self._frequencies.nbytes

    def header(self) -> dict[str, Any]:
        return {
            "version": VOCABULARY_VERSION,
            "n_documents": self.n_documents,
            "analyser": None if self.analyser is None else self.analyser.header(),
        }

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays of the vocabulary, not copied; `from_arrays` restores it."""
        return {
            "token_bytes": self._bytes[: self._starts[self._n]],
            "token_starts": self._starts[: self._n + 1],
            "slots": self._slots,
            "frequencies": self.frequencies,
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> Vocabulary:
        """The vocabulary of a result of `arrays` and `header`. It keeps the arrays and writes to them when it grows."""
        if header.get("version") != VOCABULARY_VERSION:
            raise ForeignVersion(
                f"vocabulary version {header.get('version')}; this is version {VOCABULARY_VERSION}: rebuild it"
            )
        _check_arrays(arrays)
        analyser = header["analyser"]
        self = cls(None if analyser is None else Analyser.from_header(analyser))
        self.n_documents = int(header["n_documents"])
        self._n = len(arrays["frequencies"])
        self._bytes, self._starts = arrays["token_bytes"], arrays["token_starts"]
        self._slots, self._frequencies = arrays["slots"], arrays["frequencies"]
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one file atomically: a reader sees the old file or the new one, never a part."""
        write_file(path, self.header(), self.arrays())

    @classmethod
    def open(cls, path: str | os.PathLike[str], verify: bool = True) -> Vocabulary:
        """The vocabulary of a saved file, memory-mapped copy-on-write: it can grow, and the file does not change."""
        header, arrays = read_file(path, verify)
        return cls.from_arrays(arrays, header)

    def _lookup_dictionary(self, tokens: pa.Array) -> np.ndarray:
        of_entry = np.append(self.lookup(tokens.dictionary), np.int32(-1))  # the last entry stands for nulls
        entries = tokens.indices.fill_null(len(of_entry) - 1).to_numpy(zero_copy_only=False)
        return np.asarray(of_entry[entries])

    def _make_room(self, n_bytes: int) -> None:
        """Grow the arrays so that at least one more term of `n_bytes` bytes fits."""
        self._starts = grown(self._starts, self._n + 2)
        self._bytes = grown(self._bytes, int(self._starts[self._n]) + n_bytes)
        if self._n >= len(self._slots) * MAX_LOAD:
            slots = np.zeros(2 * len(self._slots), np.uint64)
            fill_slots(slots, self._starts, self._bytes, self._n)
            self._slots = slots  # filled before other threads see it

    def _check(self, terms: np.ndarray, lowest: int) -> None:
        if len(terms) and (terms.max() >= self._n or terms.min() < lowest):
            raise InvalidInput(f"a term that is not in this vocabulary of {self._n}")


@kernel
def lookup_ascii_text(slots, starts, arena, raw, table, out_terms):
    """Write the known terms of one ASCII text, sorted and distinct; return their number."""
    tokens, token_starts = np.empty(len(raw), np.uint8), np.zeros(len(raw) + 1, np.int32)
    n = 0
    for k in range(append_ascii_tokens(raw, 0, len(raw), table, tokens, token_starts, 0)):
        first, stop = token_starts[k], token_starts[k + 1]
        term = term_from(slots, starts, arena, hash_of(tokens, first, stop), tokens, first, stop)[0]
        if term >= 0:
            out_terms[n] = term
            n += 1
    sort_in_place(out_terms, 0, n)
    return drop_repeats(out_terms, 0, n)


@kernel
def _add_one_each(terms, out_frequencies):
    for term in terms:
        out_frequencies[term] += 1


def _check_arrays(arrays: dict[str, np.ndarray]) -> None:
    for name, dtype in _DTYPES.items():
        if name not in arrays or arrays[name].dtype != dtype or arrays[name].ndim != 1:
            raise CorruptFile(f"a vocabulary without its array '{name}'")
    starts, n_slots = arrays["token_starts"], len(arrays["slots"])
    is_whole = len(starts) == len(arrays["frequencies"]) + 1 and starts[-1] == len(arrays["token_bytes"])
    has_slots = n_slots > 0 and n_slots & (n_slots - 1) == 0 and len(starts) - 1 <= n_slots * MAX_LOAD
    if not (is_whole and has_slots):
        raise CorruptFile("a vocabulary whose arrays do not fit together")

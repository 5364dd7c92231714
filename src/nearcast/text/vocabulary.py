"""The vocabulary: maps tokens to terms and back, and counts in how many documents each term occurs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.arguments import a_flag, a_text, an_instance, some_tokens
from nearcast.arrays.arrow import is_null_mask, one_array, string_array, string_buffers
from nearcast.arrays.checked import checked_column, require_starts
from nearcast.arrays.growable import grown
from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import distinct, drop_repeats, sort_in_place, sorted_sets, starts_of, take
from nearcast.errors import CorruptFile, ForeignVersion, InvalidInput, UnknownTerm
from nearcast.text.analyser import Analyser
from nearcast.text.character_table import character_table
from nearcast.text.derived.atoms import MARK, members, phrase_words, plain_tokens
from nearcast.text.derived.derived_terms import DerivedTerms
from nearcast.text.filters.known_conditions import side_by_side
from nearcast.text.simple_tokens import append_ascii_tokens
from nearcast.text.string_table import StringTable, encoded, require_array
from nearcast.text.token_table import hash_of, lookup_message, term_from
from nearcast.text.vocabulary_file import read_file, write_file

VOCABULARY_VERSION = 1
"""Increased when the meaning of the arrays or the hash function changes."""

_WHAT = "a vocabulary"
_TERM = np.dtype(np.int32)  # created once: np.empty takes twice as long if NumPy must look up the dtype


class Vocabulary(StringTable):
    """All tokens, each with its term: an int32, numbered from 0 in order of first appearance, that never changes.

    Any number of threads may read, one may add. `analyser` is the analyser that produced the tokens, or None; it is
    saved with them.
    """

    def __init__(self, analyser: Analyser | None = None) -> None:
        super().__init__()
        self.analyser = analyser if analyser is None else an_instance(analyser, Analyser, "analyser")
        self.n_documents = 0
        self._frequencies = np.zeros(0, np.int64)
        self._derived: DerivedTerms | None = None  # from the first prefix, phrase or group on

    def add(self, tokens: pa.Array | pa.ChunkedArray) -> np.ndarray:
        """int32[n]: the term of each token; an unknown token gets the next term."""
        nulls = is_null_mask(tokens)
        if nulls.any():
            raise InvalidInput("a token is null", row=int(nulls.argmax()))
        return self._add(*string_buffers(tokens))

    def add_strings(self, tokens: Sequence[str]) -> np.ndarray:
        """The same as `add`, for the few tokens of one subscription: 5 us instead of 25."""
        return self._add(*encoded(tokens))

    def add_atoms(self, atoms: Sequence[str]) -> np.ndarray:
        """The same for the atoms of clauses. From then on, messages have the derived terms among them."""
        terms = self.add_strings(atoms)
        if any(atom.startswith(MARK) for atom in atoms):
            if self._derived is None:
                self._derived = DerivedTerms()
            self._derived.add(self, atoms, terms)
        return terms

    def add_atoms_of(self, atoms: pa.Array) -> np.ndarray:
        """The same for a column of atoms."""
        terms = self.add(atoms)
        is_derived = pc.starts_with(atoms, MARK)
        if pc.any(is_derived).as_py():
            self.add_atoms(atoms.filter(is_derived).to_pylist())
        return terms

    @property
    def n_derived(self) -> int:
        """The number of derived terms."""
        return 0 if self._derived is None else len(self._derived.terms)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The columns of messages that conditions name."""
        return () if self._derived is None else self._derived.conditions.columns

    def _add(self, raw: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        terms = super()._add(raw, offsets)
        self._frequencies = grown(self._frequencies, self._n, fill=0)
        return terms

    def lookup(self, tokens: pa.Array | pa.ChunkedArray) -> np.ndarray:
        """int32[n]: the term of each token; -1 if it is unknown or null."""
        tokens = one_array(tokens)
        if pa.types.is_dictionary(tokens.type):
            return self._lookup_dictionary(tokens)
        raw, offsets = string_buffers(tokens)
        terms = self._lookup(raw, offsets)
        if tokens.null_count:
            terms[is_null_mask(tokens)] = -1
        return terms

    def term_sets(
        self, tokens: pa.Array | pa.ChunkedArray, starts: np.ndarray, attributes: pa.Table | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """(the terms of messages, each a sorted set with its derived terms; their starts). The tokens of message i are
        tokens[starts[i]:starts[i+1]], in order; its attributes are a row of a table.
        """
        return self.term_sets_of(self.lookup(tokens), tokens, starts, attributes)

    def term_sets_of(
        self, terms: np.ndarray, tokens: pa.Array | pa.ChunkedArray, starts: np.ndarray, attributes: pa.Table | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The same, of tokens whose terms (or -1) were looked up. `terms` is not changed."""
        derived = self._derived
        if derived is None:
            return sorted_sets(terms, starts)
        found = derived.term_sets(self._table, *string_buffers(tokens), terms.copy(), starts)
        if attributes is None or not derived.conditions.columns:
            return found
        return sorted_sets(*side_by_side(found, derived.conditions.term_sets(attributes)))

    def term(self, token: str) -> int:
        """The term of one token, or -1."""
        token = a_text(token, "token")
        raw = np.frombuffer(bytearray(token.encode("utf-8", "surrogatepass")), np.uint8)
        return int(self._lookup(raw, np.array((0, len(raw)), np.int64))[0])

    def with_attributes_of(
        self, terms: np.ndarray, starts: np.ndarray, attributes: Sequence[Mapping[str, Any]]
    ) -> tuple[np.ndarray, np.ndarray]:
        """`with_attributes` for each message: the terms of message i are terms[starts[i]:starts[i+1]]."""
        if self._derived is None:
            return terms, starts
        more = [self._derived.conditions.terms(row) for row in attributes]
        own = np.concatenate([*more, terms[:0]]), starts_of(np.array([len(each) for each in more], np.int64))
        return sorted_sets(*side_by_side((terms, starts), own))

    def with_attributes(self, terms: np.ndarray, attributes: Mapping[str, Any]) -> np.ndarray:
        """int32[k]: the terms of a message, and those of the conditions that hold on its attributes; a sorted set."""
        if self._derived is None or not attributes:
            return terms
        return distinct(np.concatenate([terms, self._derived.conditions.terms(attributes)]))

    def terms(self, tokens: Iterable[str]) -> np.ndarray:
        """int32[k]: the known terms of one message, sorted and distinct."""
        tokens = tokens if type(tokens) is list else some_tokens(tokens)
        if self._derived is not None:
            return self._derived.terms_of_tokens(self._table, tokens)
        terms = np.empty(len(tokens), _TERM)
        try:
            joined = "\n".join(tokens).encode()
            n = lookup_message(*self._table, joined, 0x0A, terms)
        except UnicodeEncodeError:
            n = -1
        except TypeError:
            raise InvalidInput("tokens are a list of strings", column="tokens") from None
        if n < 0:  # a token has a line feed or an unpaired surrogate; no UTF-8 has the byte 0xFF
            joined = b"\xff".join([token.encode("utf-8", "surrogatepass") for token in tokens])
            n = lookup_message(*self._table, joined, 0xFF, terms)
        return terms[:n]

    def terms_of_text(self, text: str, analyser: Analyser) -> np.ndarray:
        """int32[k]: the known terms of one text, sorted and distinct. ASCII texts take 2 us instead of 17."""
        if type(text) is not str or type(analyser) is not Analyser:
            a_text(text, "text"), an_instance(analyser, Analyser, "analyser")
        if not text or not text.isascii() or analyser.stop_words is not None or analyser.stem is not None:
            return self.terms(analyser.tokens(text))
        if self._derived is not None:
            return self._derived.terms_of_ascii_text(self._table, text, analyser.fold_accents)
        raw, table = np.frombuffer(bytearray(text, "ascii"), np.uint8), character_table(analyser.fold_accents)
        terms = np.empty((len(raw) + 1) // 2, _TERM)
        return terms[: lookup_ascii_text(*self._table, raw, table, terms)]

    def token(self, term: int) -> str:
        (term,) = checked_column([term], np.int64, "term", 1).tolist()
        if not 0 <= term < self._n:
            raise UnknownTerm(f"term {term} of {self._n}", column="term")
        return self._bytes[self._starts[term] : self._starts[term + 1]].tobytes().decode()

    def tokens(self, terms: np.ndarray) -> pa.StringArray:
        terms = checked_column(terms, np.int64, "terms")
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
        terms, starts = checked_column(terms, np.int32, "terms"), checked_column(term_starts, np.int64, "term_starts")
        require_starts(starts, len(terms), "term_starts")
        self._check(terms, lowest=np.iinfo(np.int32).min)
        distinct, _ = sorted_sets(terms, starts)
        _add_one_each(distinct, self._frequencies)
        self.n_documents += len(term_starts) - 1

    def weights(self) -> np.ndarray:
        """float64[n]: ln(1 + N / df). A term that occurs in no document weighs as much as one of a single document."""
        return np.asarray(np.log1p(self.n_documents / np.maximum(self.frequencies, 1)))

    @property
    def nbytes(self) -> int:
        derived = 0 if self._derived is None else self._derived.nbytes
        return super().nbytes + self._frequencies.nbytes + derived

    def header(self) -> dict[str, Any]:
        return {
            "version": VOCABULARY_VERSION,
            "n_documents": self.n_documents,
            "analyser": None if self.analyser is None else self.analyser.header(),
        }

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays of the vocabulary, not copied; `from_arrays` restores it."""
        arrays = self._string_arrays("token") | {"frequencies": self.frequencies}
        if self._derived is not None:
            arrays["derived"] = np.array(self._derived.terms, np.int32)
        return arrays

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> Vocabulary:
        """The vocabulary of a result of `arrays` and `header`. It keeps the arrays and writes to them when it grows."""
        if header.get("version") != VOCABULARY_VERSION:
            raise ForeignVersion(
                f"vocabulary version {header.get('version')}; this is version {VOCABULARY_VERSION}: rebuild it"
            )
        analyser = header["analyser"]
        self = cls(None if analyser is None else Analyser.from_header(analyser))
        self.n_documents = int(header["n_documents"])
        self._take_arrays(arrays, "token", _WHAT)
        require_array(arrays, "frequencies", np.int64, _WHAT)
        self._frequencies = arrays["frequencies"]
        if len(self._frequencies) != self._n:
            raise CorruptFile(f"{_WHAT} whose arrays do not fit together")
        if "derived" in arrays:
            known = arrays["derived"]
            if len(known) and not 0 <= known.min() <= known.max() < self._n:
                raise CorruptFile(f"{_WHAT} with derived terms that it does not have")
            self.add_atoms(self.tokens(arrays["derived"]).to_pylist())
        return self

    def take_counts(self, frequencies: np.ndarray, n_documents: int) -> None:
        """Take these counts (int64, by term) over, in place of none."""
        if len(frequencies) and int(frequencies.min()) < 0:
            raise InvalidInput("a token occurs in fewer than no document")
        self._frequencies[: self._n], self.n_documents = frequencies, n_documents

    def with_plain_terms(
        self, terms: np.ndarray, starts: np.ndarray, only_certain: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """(the terms of rows, with those of tokens in place of derived ones; their starts). Each row is a sorted set.

        With `only_certain`, only tokens that a message of the row must have: not those of an OR.
        """
        if self._derived is None:
            return terms, starts
        tokens_of = phrase_words if only_certain else plain_tokens
        counts, known = np.ones(self._n, np.int64), self._derived.terms
        each = [self._lookup(*encoded(tokens_of(atom))) for atom in self.tokens(np.array(known)).to_pylist()]
        counts[known] = [len(found) for found in each]
        own_starts = starts_of(counts)
        values = np.empty(own_starts[-1], np.int32)
        values[own_starts[:-1][counts == 1]] = np.flatnonzero(counts == 1)
        for term, found in zip(known, each, strict=True):
            values[own_starts[term] : own_starts[term + 1]] = found
        flat, flat_starts = take(values, own_starts, terms)
        return sorted_sets(flat, flat_starts[starts])

    def mark_members(self, is_used: np.ndarray) -> None:
        """Set is_used (bool[n]) for the terms that used derived terms are made of."""
        atoms = self._used_atoms(is_used)
        named = list({member for atom in atoms for member in members(atom)})
        named += list({token for member in named for token in members(member)})
        is_used[self._lookup(*encoded(named))] = True

    def part(self, is_used: np.ndarray) -> tuple[Vocabulary, np.ndarray]:
        """(a vocabulary of these terms, int32[n]: their new numbers or -1). Terms keep their order. `is_used` is
        bool[n] as `mark_members` leaves it.
        """
        used, numbers, made = np.flatnonzero(is_used), np.full(len(is_used), -1, np.int32), Vocabulary(self.analyser)
        numbers[used] = made.add(self.tokens(used))
        made.add_atoms(self._used_atoms(is_used))
        return made, numbers

    def _used_atoms(self, is_used: np.ndarray) -> list[str]:
        derived = [] if self._derived is None else [term for term in self._derived.terms if is_used[term]]
        return list(self.tokens(np.array(derived, np.int64)).to_pylist())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one file atomically: a reader sees the old file or the new one, never a part."""
        write_file(path, self.header(), self.arrays())

    @classmethod
    def open(cls, path: str | os.PathLike[str], verify: bool = True) -> Vocabulary:
        """The vocabulary of a saved file, memory-mapped copy-on-write: it can grow, and the file does not change."""
        header, arrays = read_file(path, a_flag(verify, "verify"))
        return cls.from_arrays(arrays, header)

    def _lookup_dictionary(self, tokens: pa.Array) -> np.ndarray:
        of_entry = np.append(self.lookup(tokens.dictionary), np.int32(-1))  # the last entry stands for nulls
        entries = tokens.indices.fill_null(len(of_entry) - 1).to_numpy(zero_copy_only=False)
        return np.asarray(of_entry[entries])

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

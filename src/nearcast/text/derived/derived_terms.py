"""The prefixes, phrases, groups and conditions of a vocabulary, and the arrays by which messages find theirs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.ragged import distinct
from nearcast.text.character_table import character_table
from nearcast.text.derived.atoms import (
    GROUP,
    PHRASE,
    PREFIX,
    content,
    is_derived,
    is_filter,
    members,
)
from nearcast.text.derived.kernels import (
    DERIVED,
    HEADER,
    NO_MEMBERSHIP,
    DerivedArrays,
    Tokens,
    add_pairs,
    term_sets_of_batch,
    terms_of_ascii_text,
    terms_of_tokens,
)
from nearcast.text.filters.grammar import read_condition
from nearcast.text.filters.known_conditions import KnownConditions

if TYPE_CHECKING:
    from nearcast.text.vocabulary import Vocabulary

_PAIR_BITS = 32
"""Bits of `pairs` for each phrase: three pairs of a hundred that begin no phrase pass."""

_SMALLEST_PAIRS = 64
_ROOM = 64
Table = tuple[np.ndarray, np.ndarray, np.ndarray]


class DerivedTerms:
    """Derived terms of one vocabulary. One thread may add while others read: arrays grow by copies, and what an array
    refers to is written first.
    """

    def __init__(self) -> None:
        self.terms = list[int]()  # in the order in which they were added
        self.conditions = KnownConditions()
        self._known = set[int]()
        self._firsts, self._seconds = list[int](), list[int]()  # the first two terms of each phrase
        self._flags = np.zeros(0, np.uint8)
        self._phrase_lengths = np.zeros(0, np.uint64)
        self._pairs = np.zeros(_SMALLEST_PAIRS, np.uint64)
        self._heads = np.empty(0, np.int32)
        self._groups, self._nexts = np.empty((2, 0), np.int32)
        self._n_memberships = 0
        self._first_bytes = np.zeros(1024, np.uint64)
        self._prefix_lengths = np.empty(0, np.int32)
        self._key = np.zeros(HEADER, np.uint8)

    @property
    def arrays(self) -> DerivedArrays:
        """What readers use. They may see more than their version has: terms that are in no row of theirs."""
        return DerivedArrays(
            self._flags,
            self._phrase_lengths,
            self._pairs,
            self._heads,
            self._groups,
            self._nexts,
            self._first_bytes,
            self._prefix_lengths,
            self._key,
        )

    @property
    def nbytes(self) -> int:
        return sum(int(array.nbytes) for array in self.arrays) + 64 * len(self.terms)

    # -- adding

    def add(self, vocabulary: Vocabulary, atoms: Sequence[str], terms: np.ndarray) -> None:
        """Learn these atoms, of which the vocabulary has the terms. Plain tokens and known atoms are skipped."""
        new = {term: atom for atom, term in zip(atoms, terms.tolist(), strict=True) if is_derived(atom)}
        new = {term: atom for term, atom in new.items() if term not in self._known}
        if not new:
            return
        longest = max((len(atom.encode()) for atom in new.values() if not atom.startswith(GROUP)), default=0)
        named = list(dict.fromkeys(member for atom in new.values() for member in members(atom)))
        term_of = dict(zip(named, vocabulary.add_atoms(named).tolist(), strict=True))  # members of groups first
        self._make_room(len(vocabulary), longest)
        for term, atom in new.items():
            if atom.startswith(PREFIX):
                self._add_prefix(content(atom).encode())
            elif atom.startswith(GROUP):
                self._add_group(term, [term_of[member] for member in members(atom)])
            elif is_filter(atom):
                self.conditions.add(term, read_condition(content(atom)))
        phrases = [members(atom) for atom in new.values() if atom.startswith(PHRASE)]
        self._add_phrases([[term_of[token] for token in tokens] for tokens in phrases])
        self._flags[list(new)] |= DERIVED
        self.terms += new
        self._known |= new.keys()

    def _make_room(self, n_terms: int, longest: int) -> None:
        self._flags = grown(self._flags, n_terms, fill=0)
        self._phrase_lengths = grown(self._phrase_lengths, n_terms, fill=0)
        self._heads = grown(self._heads, n_terms, fill=NO_MEMBERSHIP)
        if longest > len(self._key):
            self._key = np.zeros(longest, np.uint8)

    def _add_prefix(self, start: bytes) -> None:
        self._prefix_lengths = distinct(np.append(self._prefix_lengths, np.int32(len(start))))
        both = start[0] | start[1] << 8
        self._first_bytes[both >> 6] |= np.uint64(1 << (both & 63))

    def _add_group(self, term: int, of: list[int]) -> None:
        first, stop = self._n_memberships, self._n_memberships + len(of)
        self._groups, self._nexts = grown(self._groups, stop), grown(self._nexts, stop)
        self._groups[first:stop] = term
        self._nexts[first:stop] = self._heads[of]
        self._heads[of] = np.arange(first, stop, dtype=np.int32)  # written last: readers may be following the heads
        self._n_memberships = stop

    def _add_phrases(self, phrases: list[list[int]]) -> None:
        if not phrases:
            return
        self._firsts += [terms[0] for terms in phrases]
        self._seconds += [terms[1] for terms in phrases]
        fresh = slice(len(self._firsts) - len(phrases), None)
        if len(self._firsts) * _PAIR_BITS > 64 * len(self._pairs):
            size = 1 << (len(self._firsts) * _PAIR_BITS // 64).bit_length()
            pairs, fresh = np.zeros(2 * size, np.uint64), slice(0, None)
        else:
            pairs = self._pairs
        add_pairs(np.array(self._firsts[fresh], np.int32), np.array(self._seconds[fresh], np.int32), pairs)
        self._pairs = pairs
        for terms in phrases:
            self._phrase_lengths[terms[0]] |= np.uint64(1 << len(terms))

    # -- reading messages

    def term_sets(
        self, table: Table, raw: np.ndarray, offsets: np.ndarray, terms: np.ndarray, starts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """(terms of messages as sorted sets, their starts). `terms` are those of the tokens, or -1; written to."""
        derived, tokens = self.arrays, Tokens(raw, offsets[:-1], offsets[1:])
        out, out_starts = np.empty(2 * len(terms) + _ROOM, np.int32), np.full(len(starts), -1, np.int64)
        out_starts[0] = 0
        while term_sets_of_batch(table, derived, tokens, terms, starts, out, out_starts) < len(starts) - 1:
            out = grown(out, 2 * len(out))
        return out[: out_starts[-1]], out_starts

    def terms_of_tokens(self, table: Table, tokens: list[str]) -> np.ndarray:
        """int32[k]: the terms of one message, a sorted set."""
        if not tokens:
            return np.empty(0, np.int32)
        begins = np.zeros(len(tokens), np.int64)
        joined, end = "\n".join(tokens).encode("utf-8", "surrogatepass"), 0x0A
        if joined.count(b"\n") != len(tokens) - 1:  # a token has a line feed; no UTF-8 has the byte 0xFF
            joined, end = b"\xff".join([token.encode("utf-8", "surrogatepass") for token in tokens]), 0xFF
        raw, derived, out = (
            np.frombuffer(bytearray(joined), np.uint8),
            self.arrays,
            np.empty(4 * len(tokens) + _ROOM, np.int32),
        )
        while (n := terms_of_tokens(table, derived, raw, end, begins, out)) < 0:
            out = np.empty(4 * len(out), np.int32)
        return out[:n]

    def terms_of_ascii_text(self, table: Table, text: str, fold_accents: bool) -> np.ndarray:
        """The same, of a text that is not empty."""
        raw, characters = np.frombuffer(bytearray(text, "ascii"), np.uint8), character_table(fold_accents)
        derived, out = self.arrays, np.empty(2 * len(raw) + _ROOM, np.int32)
        while (n := terms_of_ascii_text(table, derived, raw, characters, out)) < 0:
            out = np.empty(4 * len(out), np.int32)
        return out[:n]

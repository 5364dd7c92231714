"""Kernels that find the derived terms of messages. Prefixes and phrases are looked up in the vocabulary's own table,
under the bytes of their atoms.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import drop_repeats, sort_in_place
from nearcast.text.simple_tokens import append_ascii_tokens
from nearcast.text.token_table import hash_of, term_from

DERIVED = 1  # the term is no token: a token of the same bytes does not give it
HEADER = 4  # bytes before the content of an atom: U+FFFF and the sort
NO_MEMBERSHIP = -1
FULL = -2


class DerivedArrays(NamedTuple):
    """What the kernels read. Arrays by term may be shorter than the vocabulary: later terms have nothing."""

    flags: np.ndarray  # uint8[n_terms]  DERIVED
    phrase_lengths: np.ndarray  # uint64[n_terms]  bit c: a phrase of c tokens begins with this term
    pairs: np.ndarray  # uint64[...]  hashed bits of the first two terms of each phrase; a power of two long
    heads: np.ndarray  # int32[n_terms]  the term's last membership in a group, or NO_MEMBERSHIP
    groups: np.ndarray  # int32[...]  by membership: the group
    nexts: np.ndarray  # int32[...]  by membership: the term's membership before it, or NO_MEMBERSHIP
    first_bytes: np.ndarray  # uint64[1024]  a bit for each pair of bytes with which a prefix begins
    prefix_lengths: np.ndarray  # int32[...]  in bytes, ascending
    key: np.ndarray  # uint8[...]  as long as the longest atom; copied for scratch


class Tokens(NamedTuple):
    """The bytes of tokens: token k is raw[begins[k]:ends[k]]."""

    raw: np.ndarray
    begins: np.ndarray
    ends: np.ndarray


@kernel
def pair_bit(first, second, n_words):
    """(word, bit) of two terms among the hashed pairs."""
    mixed = (np.uint64(first) << np.uint64(32) | np.uint64(second)) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(32)
    return mixed & np.uint64(n_words - 1), (mixed >> np.uint64(40)) & np.uint64(63)


@kernel
def add_pairs(firsts, seconds, pairs):
    """Set the bits of these pairs of terms."""
    for i in range(len(firsts)):
        word, bit = pair_bit(firsts[i], seconds[i], len(pairs))
        pairs[word] |= np.uint64(1) << bit


@kernel
def put(derived, term, out, n):
    """Append a term and the groups that it is in; return the new n, or FULL."""
    if n < 0 or n >= len(out):
        return FULL
    out[n] = term
    n += 1
    at = derived.heads[term] if term < len(derived.heads) else NO_MEMBERSHIP
    while at != NO_MEMBERSHIP:
        if n >= len(out):
            return FULL
        out[n] = derived.groups[at]
        n += 1
        at = derived.nexts[at]
    return n


@kernel
def lookup_key(table, key, n):
    """The term of the atom in key[:n], or -1."""
    return term_from(table[0], table[1], table[2], hash_of(key, 0, n), key, 0, n)[0]


@kernel
def put_prefixes(table, derived, tokens, k, key, out, n):
    """Append the prefixes of token k; return the new n, or FULL."""
    begin, end = tokens.begins[k], tokens.ends[k]
    if end - begin < 2:
        return n
    both = np.int64(tokens.raw[begin]) | np.int64(tokens.raw[begin + 1]) << 8
    if derived.first_bytes[both >> 6] >> np.uint64(both & 63) & np.uint64(1) == 0:
        return n
    key[3] = 0x2A
    done = 0
    for length in derived.prefix_lengths:
        if length > end - begin:
            break
        while done < length:
            key[HEADER + done] = tokens.raw[begin + done]
            done += 1
        term = lookup_key(table, key, HEADER + length)
        if term >= 0:
            n = put(derived, term, out, n)
    return n


@kernel
def put_phrases(table, derived, tokens, terms, k, key, out):
    """Put the phrases that begin with token k into `out`; return their number, or FULL.

    All words of all phrases are in the vocabulary, so an unknown token ends the search.
    """
    n = 0
    first, second = terms[k], terms[k + 1]
    lengths = derived.phrase_lengths[first] if first < len(derived.phrase_lengths) else np.uint64(0)
    if lengths == 0 or second < 0:
        return n
    word, bit = pair_bit(first, second, len(derived.pairs))
    if derived.pairs[word] >> bit & np.uint64(1) == 0:
        return n
    key[3] = 0x22
    size, count = HEADER, 0
    while count < 63 and count + k < len(terms) and terms[k + count] >= 0 and lengths >> np.uint64(count + 1) != 0:
        length = tokens.ends[k + count] - tokens.begins[k + count]
        if size + length + 3 > len(key):
            break
        if count:
            key[size], key[size + 1], key[size + 2] = 0xEF, 0xBF, 0xBF
            size += 3
        for i in range(length):
            key[size + i] = tokens.raw[tokens.begins[k + count] + i]
        size += length
        count += 1
        if lengths >> np.uint64(count) & np.uint64(1):
            term = lookup_key(table, key, size)
            if term >= 0:
                n = put(derived, term, out, n)
    return n


@kernel
def term_set(table, derived, tokens, terms, key, out, n):
    """Append the terms of one message to out[:n], derived ones included, sorted and distinct; return the new n, or
    FULL. `terms` are those of the tokens, in order, or -1; what is no token's term becomes -1.
    """
    first = n
    for k in range(len(terms)):
        if 0 <= terms[k] < len(derived.flags) and derived.flags[terms[k]] & DERIVED:
            terms[k] = -1
    for k in range(len(terms)):
        if terms[k] >= 0:
            n = put(derived, terms[k], out, n)
            if n >= 0 and k + 1 < len(terms):
                added = put_phrases(table, derived, tokens, terms, k, key, out[n:])
                n = n + added if added >= 0 else FULL
        if n >= 0:
            n = put_prefixes(table, derived, tokens, k, key, out, n)
        if n < 0:
            return FULL
    sort_in_place(out, first, n)
    return drop_repeats(out, first, n)


@kernel
def new_key(derived):
    """Scratch for atoms, U+FFFF written."""
    key = derived.key.copy()
    key[0], key[1], key[2] = 0xEF, 0xBF, 0xBF
    return key


@kernel
def term_sets_of_batch(table, derived, tokens, terms, starts, out, out_starts):
    """Write the term sets of messages, from the first that has no out_starts yet (-1); return how many are done.

    Stops early when `out` is full.
    """
    key = new_key(derived)
    for m in range(len(starts) - 1):
        if out_starts[m + 1] >= 0:
            continue
        first, stop = starts[m], starts[m + 1]
        own = Tokens(tokens.raw, tokens.begins[first:stop], tokens.ends[first:stop])
        n = term_set(table, derived, own, terms[first:stop], key, out, out_starts[m])
        if n < 0:
            return m
        out_starts[m + 1] = n
    return len(starts) - 1


@kernel
def terms_of_tokens(table, derived, joined, end, begins, out):
    """Write the term set of one message, as `term_set`; return its size, FULL, or -1 if splitting `joined` at the byte
    `end` does not give len(begins) tokens.
    """
    ends = np.empty(len(begins), np.int64)
    n = 0
    for i in range(len(joined)):
        if joined[i] == end:
            if n + 1 >= len(begins):
                return -1
            ends[n], begins[n + 1] = i, i + 1
            n += 1
    if n + 1 != len(begins):
        return -1
    begins[0], ends[n] = 0, len(joined)
    return _terms_of_one(table, derived, Tokens(joined, begins, ends), out)


@kernel
def _terms_of_one(table, derived, tokens, out):
    terms = np.empty(len(tokens.begins), np.int32)
    for k in range(len(terms)):
        begin, end = np.int64(tokens.begins[k]), np.int64(tokens.ends[k])
        hashed = hash_of(tokens.raw, begin, end)
        terms[k] = term_from(table[0], table[1], table[2], hashed, tokens.raw, begin, end)[0]
    return term_set(table, derived, tokens, terms, new_key(derived), out, 0)


@kernel
def terms_of_ascii_text(table, derived, raw, characters, out):
    """Write the term set of one ASCII text; return its size, or FULL."""
    tokens, starts = np.empty(len(raw), np.uint8), np.zeros(len(raw) + 1, np.int64)
    n = append_ascii_tokens(raw, 0, len(raw), characters, tokens, starts, 0)
    return _terms_of_one(table, derived, Tokens(tokens, starts[:n], starts[1 : n + 1]), out)

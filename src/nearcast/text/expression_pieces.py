"""Kernels that cut many expressions into pieces and write the pattern of each.

The pattern of an expression is the expression with a number in place of each token: `road AND (ice OR snow-fall)`
becomes `0 AND ( 1 OR ( 2 3 ) )`. Equal tokens have equal numbers. Expressions of one pattern have the same clauses but
for the names of their tokens.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.text.simple_tokens import decode, width_if_valid

WORD, AND, OR, NOT, OPEN, CLOSE = range(6)
"""The kinds of pieces."""

UNREADABLE = -1
"""The number of pieces of a text that only the parser can read."""


class Pieces(NamedTuple):
    """The pieces of many texts."""

    kinds: np.ndarray  # uint8[...]
    starts: np.ndarray  # int64[n+1]  the pieces of text i are kinds[starts[i]:starts[i+1]]
    words: np.ndarray  # int32[...]  the number of each WORD, in order


class WordTokens(NamedTuple):
    """The tokens of each distinct word."""

    tokens: np.ndarray  # int32[...]  numbers of tokens
    starts: np.ndarray  # int64[n_words+1]


class Patterns(NamedTuple):
    """The pattern of each text, and the tokens that its numbers stand for."""

    raw: np.ndarray  # uint8[...]  the patterns, as ASCII
    raw_starts: np.ndarray  # int64[n+1]
    tokens: np.ndarray  # int32[...]  token k of text i is tokens[token_starts[i] + k]
    token_starts: np.ndarray  # int64[n+1]
    is_readable: np.ndarray  # bool[n]  False: the pattern is empty, the parser must read the text


@kernel
def is_space(byte):
    """Whether this ASCII character is white space to the parser."""
    return byte == 0x20 or 0x09 <= byte <= 0x0D or 0x1C <= byte <= 0x1F


@kernel
def is_wide_space(point):
    """Whether this character beyond ASCII is white space to the parser."""
    if point < 0x1680:
        return point == 0x85 or point == 0xA0
    if point < 0x2000:
        return point == 0x1680
    if point <= 0x200A:
        return True
    return point == 0x2028 or point == 0x2029 or point == 0x202F or point == 0x205F or point == 0x3000


@kernel
def count_pieces(raw, offsets, most_bytes, out_counts):
    """Write the number of pieces of each text.

    It is UNREADABLE for a text with a quote or a brace, with white space beyond ASCII, with invalid UTF-8 or of more
    than `most_bytes` bytes.
    """
    for row in range(len(out_counts)):
        i, stop = offsets[row], offsets[row + 1]
        n = 0 if stop - i <= most_bytes else UNREADABLE
        in_word = False
        while n >= 0 and i < stop:
            byte = raw[i]
            width = 1
            if byte == 0x22 or byte == 0x7B or byte == 0x7D:
                n = UNREADABLE
            elif byte == 0x28 or byte == 0x29:
                n += 1
                in_word = False
            elif is_space(byte):
                in_word = False
            else:
                if byte >= 0x80:
                    width = width_if_valid(raw, i, stop)
                    if width == 0 or is_wide_space(decode(raw, i)[0]):
                        n = UNREADABLE
                        break
                if not in_word:
                    n += 1
                in_word = True
            i += width
        out_counts[row] = n


@kernel
def word_kind(raw, start, stop):
    """AND, OR, NOT or WORD."""
    first, second = raw[start], raw[min(start + 1, stop - 1)]
    if stop - start == 2:
        return OR if first == 0x4F and second == 0x52 else WORD
    if stop - start != 3:
        return WORD
    third = raw[start + 2]
    if first == 0x41 and second == 0x4E and third == 0x44:
        return AND
    return NOT if first == 0x4E and second == 0x4F and third == 0x54 else WORD


@kernel
def write_pieces(raw, offsets, starts, out_kinds, out_raw, out_word_starts):
    """Write the kinds of all pieces and the bytes of all words; return the number of words.

    starts[i] is the first piece of text i. A text without pieces is skipped.
    """
    n_words = 0
    out_word_starts[0] = 0
    for row in range(len(starts) - 1):
        i, stop = offsets[row], offsets[row + 1]
        for piece in range(starts[row], starts[row + 1]):
            while is_space(raw[i]):
                i += 1
            if raw[i] == 0x28 or raw[i] == 0x29:
                out_kinds[piece] = OPEN if raw[i] == 0x28 else CLOSE
                i += 1
                continue
            first = i
            n = out_word_starts[n_words]
            while i < stop and raw[i] != 0x28 and raw[i] != 0x29 and not is_space(raw[i]):
                out_raw[n + i - first] = raw[i]
                i += 1
            kind = word_kind(raw, first, i)
            out_kinds[piece] = kind
            if kind == WORD:
                n_words += 1
                out_word_starts[n_words] = n + i - first
    return n_words


@kernel
def write_patterns(pieces, words, numbers, out):
    """Write the patterns of all texts. `numbers` is int64[n_tokens,2] of -1: scratch.

    A text with a word without tokens becomes unreadable; other texts with `is_readable` False are skipped.
    """
    n, n_tokens, word = np.int64(0), np.int64(0), np.int64(0)
    out.raw_starts[0] = 0
    out.token_starts[0] = 0
    for row in range(len(pieces.starts) - 1):
        for piece in range(pieces.starts[row], pieces.starts[row + 1]):
            kind = pieces.kinds[piece]
            if kind != WORD:
                n = append_operator(kind, out.raw, n)
                continue
            first, stop = words.starts[pieces.words[word]], words.starts[pieces.words[word] + 1]
            word += 1
            if first == stop:
                out.is_readable[row] = False
            if stop - first > 1:
                n = append_operator(OPEN, out.raw, n)
            for k in range(first, stop):
                token = words.tokens[k]
                if numbers[token, 0] != row:
                    numbers[token, 0] = row
                    numbers[token, 1] = n_tokens - out.token_starts[row]
                    out.tokens[n_tokens] = token
                    n_tokens += 1
                n = append_number(numbers[token, 1], out.raw, n)
            if stop - first > 1:
                n = append_operator(CLOSE, out.raw, n)
        if not out.is_readable[row]:
            n, n_tokens = out.raw_starts[row], out.token_starts[row]
        out.raw_starts[row + 1] = n
        out.token_starts[row + 1] = n_tokens


@kernel
def append_operator(kind, out, n):
    """Write an operator or a parenthesis and a space at out[n]; return the position after them."""
    if kind == AND:
        out[n], out[n + 1], out[n + 2] = 0x41, 0x4E, 0x44
        n += 3
    elif kind == NOT:
        out[n], out[n + 1], out[n + 2] = 0x4E, 0x4F, 0x54
        n += 3
    elif kind == OR:
        out[n], out[n + 1] = 0x4F, 0x52
        n += 2
    else:
        out[n] = 0x28 if kind == OPEN else 0x29
        n += 1
    out[n] = 0x20
    return n + 1


@kernel
def append_number(number, out, n):
    """Write a number and a space at out[n]; return the position after them."""
    width = 1
    rest = number // 10
    while rest > 0:
        width += 1
        rest //= 10
    for k in range(width - 1, -1, -1):
        out[n + k] = 0x30 + number % 10
        number //= 10
    out[n + width] = 0x20
    return n + width + 1

"""The fast twin of `words` for plain texts, over Arrow's UTF-8 bytes.

A character is plain when its normal form is one character whatever stands beside it, and when it takes part only in the
simple rules: letters and numbers join, a mid character joins two letters or two numbers. All of ASCII is plain, and so are
Latin, Greek, Cyrillic, Arabic, Hangul and most pictures. Marks, joiners, Hebrew and CJK are not. A text with one
character that is not plain goes to `words` as a whole, so both ways must agree only on plain texts; tests hold them together.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import regex

from nearcast.arrays.arrow import MAX_OFFSET, string_array, string_buffers
from nearcast.arrays.jit import kernel
from nearcast.errors import InvalidInput
from nearcast.text import words

LETTER, NUMBER, CONNECTOR, MID_LETTER, MID_NUMBER, SIGN, COUNTS, HARD = (1 << bit for bit in range(8))
"""What a character does. MID_LETTER and MID_NUMBER lie three bits above what they join. COUNTS: is a letter or a number."""

JOINS = LETTER | NUMBER
IN_WORD = LETTER | NUMBER | CONNECTOR
IN_TOKEN = IN_WORD | COUNTS

TABLE_SIZE = 0x20000
"""Code points beyond are never plain: they are rare Han, tags and private use."""

JOINED_BYTES = 1 << 20
"""Texts that are not plain are cut together, up to this many bytes at a time, to bound the memory of the list of matches."""

_CLASSES = {
    LETTER: words.WORD_LETTER,
    NUMBER: words.NUMBER,
    CONNECTOR: words.CONNECTOR,
    MID_LETTER: words.MID_LETTER,
    MID_NUMBER: words.MID_NUMBER,
    SIGN: words.SIGNS,
    COUNTS: words.LETTER_OR_NUMBER,
    # jamo compose with each other, combining marks with what precedes them
    HARD: rf"{words.EXTENDS}{words.CJK}{words.HEBREW}\p{{WB=Format}}\u1100-\u11FF\P{{ccc=0}}",
}


class Tokens(NamedTuple):
    """Where a kernel writes tokens: token k is bytes[starts[k]:starts[k+1]]."""

    bytes: np.ndarray  # uint8[...]
    starts: np.ndarray  # int32[...]


def words_of_array(texts: pa.Array | pa.ChunkedArray, fold_accents: bool) -> tuple[pa.Array, np.ndarray]:
    """(tokens, starts): the tokens of text i are tokens[starts[i]:starts[i+1]]. A null text has none."""
    raw, offsets = string_buffers(texts)
    table = plain_table(fold_accents)
    is_hard = np.zeros(len(offsets) - 1, np.bool_)
    find_hard(raw, offsets, table, is_hard)
    rest = np.frombuffer(_hard_words(raw, offsets, np.flatnonzero(is_hard), fold_accents), np.uint8)
    size = int(offsets[-1] - offsets[0])
    # Casefold makes a character at most half as long again (2 bytes to 3); two tokens have a byte between them.
    most_bytes = size + size // 2 + len(rest)
    if most_bytes > MAX_OFFSET:
        raise InvalidInput(f"{size:,} bytes of text are too many for one batch; give them in parts of under 1 GB")
    out = Tokens(np.empty(most_bytes, np.uint8), np.empty(size + len(rest) // 2 + 1, np.int32))
    starts = np.empty(len(offsets), np.int64)
    n_bytes, n_tokens = fill_rows(raw, offsets, is_hard, table, rest, out, starts)
    return string_array(out.bytes[:n_bytes], out.starts[: n_tokens + 1]), starts


@functools.cache
def plain_table(fold_accents: bool) -> np.ndarray:
    """int32[TABLE_SIZE]: normal form << 8 | class, for each code point. Built from the definition, in about 0.1 s."""
    points = [c for c in range(TABLE_SIZE) if not 0xD800 <= c < 0xE000 and chr(c) != words.SEPARATOR]
    text = words.SEPARATOR.join(map(chr, points))
    classes = np.zeros(TABLE_SIZE, np.int32)
    for bit, pattern in _CLASSES.items():
        found = "".join(regex.findall(f"[{pattern}]", text, regex.V1))
        classes[np.frombuffer(found.encode("utf-32-le"), np.uint32)] |= bit
    table = np.full(TABLE_SIZE, HARD, np.int32)
    table[ord(words.SEPARATOR)] = ord(words.SEPARATOR) << 8
    for point, form in zip(points, words.normal_form(text, fold_accents).split(words.SEPARATOR), strict=True):
        if len(form) == 1 and ord(form) < TABLE_SIZE and not (classes[point] | classes[ord(form)]) & HARD:
            table[point] = ord(form) << 8 | classes[ord(form)]
    return table


def _hard_words(raw: np.ndarray, offsets: np.ndarray, rows: np.ndarray, fold_accents: bool) -> bytes:
    """The tokens of `rows` by the general way, as `words_of_many` writes them."""
    parts = []
    ends = np.cumsum(offsets[rows + 1] - offsets[rows] + 1)
    first = 0
    while first < len(rows):
        done = ends[first - 1] if first else 0
        stop = max(first + 1, int(np.searchsorted(ends, done + JOINED_BYTES, "right")))
        joined = np.empty(ends[stop - 1] - done, np.uint8)
        join_rows(raw, offsets, rows[first:stop], joined)
        text = joined.tobytes().decode("utf-8", "replace")
        parts.append(words.words_of_many(text, fold_accents).encode())
        first = stop
    return b"".join(parts)


@kernel
def decode(raw, i):  # type: ignore[no-untyped-def]
    """(code point, width in bytes) of the character at i. Trusts the bytes: `find_hard` has checked them."""
    lead = np.int64(raw[i])
    if lead < 0x80:
        return lead, 1
    second = np.int64(raw[i + 1]) & 0x3F
    if lead < 0xE0:
        return (lead & 0x1F) << 6 | second, 2
    third = np.int64(raw[i + 2]) & 0x3F
    if lead < 0xF0:
        return (lead & 0x0F) << 12 | second << 6 | third, 3
    return (lead & 0x07) << 18 | second << 12 | third << 6 | np.int64(raw[i + 3]) & 0x3F, 4


@kernel
def encode(point, out, n):  # type: ignore[no-untyped-def]
    """Write a code point at out[n]; return where the next one goes."""
    if point < 0x80:
        out[n] = point
        return n + 1
    if point < 0x800:
        out[n] = 0xC0 | point >> 6
        out[n + 1] = 0x80 | point & 0x3F
        return n + 2
    if point < 0x10000:
        out[n] = 0xE0 | point >> 12
        out[n + 1] = 0x80 | point >> 6 & 0x3F
        out[n + 2] = 0x80 | point & 0x3F
        return n + 3
    out[n] = 0xF0 | point >> 18
    out[n + 1] = 0x80 | point >> 12 & 0x3F
    out[n + 2] = 0x80 | point >> 6 & 0x3F
    out[n + 3] = 0x80 | point & 0x3F
    return n + 4


@kernel
def width_if_valid(raw, i, stop):  # type: ignore[no-untyped-def]
    """The width of the UTF-8 sequence whose lead byte, not ASCII, is at i; 0 if the sequence is malformed."""
    lead = raw[i]
    width = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    if lead < 0xC2 or lead > 0xF4 or i + width > stop:
        return 0
    for k in range(i + 1, i + width):
        if raw[k] & 0xC0 != 0x80:
            return 0
    point = decode(raw, i)[0]
    is_overlong = (width == 3 and point < 0x800) or (width == 4 and point < 0x10000)
    return 0 if is_overlong else width


@kernel
def is_hard_text(raw, start, stop, table):  # type: ignore[no-untyped-def]
    """Whether a character of raw[start:stop] is not plain, or is not UTF-8 at all."""
    i = start
    while i < stop:
        if raw[i] < 0x80:
            i += 1
            continue
        width = width_if_valid(raw, i, stop)
        if width == 0:
            return True
        point = decode(raw, i)[0]
        if point >= TABLE_SIZE or table[point] & HARD:
            return True
        i += width
    return False


@kernel
def find_hard(raw, offsets, table, out_is_hard):  # type: ignore[no-untyped-def]
    for row in range(len(offsets) - 1):
        out_is_hard[row] = is_hard_text(raw, offsets[row], offsets[row + 1], table)


@kernel
def word_end(raw, i, stop, table):  # type: ignore[no-untyped-def]
    """(where the word that starts at i ends, all classes seen in it)."""
    seen = 0
    last = 0
    while i < stop:
        point, width = decode(raw, i)
        found = table[point] & 0xFF
        if found & IN_WORD == 0:
            joins = last & (found >> 3) & JOINS
            if joins == 0 or i + width >= stop:
                break
            point, next_width = decode(raw, i + width)
            found = table[point] & 0xFF
            if not found & joins:
                break
            width += next_width
        i += width
        last = found
        seen |= found
    return i, seen


@kernel
def tokens_of_plain(raw, i, stop, table, out, out_starts, n_tokens):  # type: ignore[no-untyped-def]
    """Append the tokens of the plain text raw[i:stop]; return the number of tokens written so far."""
    signed = 0  # 1 while the byte just before is a sign that starts a word
    after_word = False
    while i < stop:
        point, width = decode(raw, i)
        entry = table[point]
        if entry & IN_TOKEN == 0:
            signed = 1 if entry & SIGN and not after_word else 0
            after_word = False
            i += width
            continue
        end, seen = i + width, np.int64(entry)
        if entry & IN_WORD:
            end, seen = word_end(raw, i, stop, table)
        if seen & COUNTS:
            n = put_form(raw, i - signed, end, table, out, out_starts[n_tokens])
            n_tokens += 1
            out_starts[n_tokens] = n
        signed = 0
        after_word = True
        i = end
    return n_tokens


@kernel
def put_form(raw, i, stop, table, out, n):  # type: ignore[no-untyped-def]
    """Write the normal form of raw[i:stop] at out[n]; return where it ends."""
    while i < stop:
        if raw[i] < 0x80:
            out[n] = table[raw[i]] >> 8
            i += 1
            n += 1
        else:
            point, width = decode(raw, i)
            n = encode(table[point] >> 8, out, n)
            i += width
    return n


@kernel
def tokens_of_rest(rest, at, out, n_bytes, n_tokens):  # type: ignore[no-untyped-def]
    """Append the tokens of the text at rest[at], as `words_of_many` wrote them; return (next text, bytes, tokens)."""
    while rest[at] != 10:
        while rest[at] != 0:
            out.bytes[n_bytes] = rest[at]
            n_bytes += 1
            at += 1
        n_tokens += 1
        out.starts[n_tokens] = n_bytes
        at += 1
    return at + 2, n_bytes, n_tokens


@kernel
def fill_rows(raw, offsets, is_hard, table, rest, out, out_row_starts):  # type: ignore[no-untyped-def]
    """Write the tokens of every row in order; return (bytes, tokens) written."""
    at = 0
    n_bytes = 0
    n_tokens = 0
    out.starts[0] = 0
    out_row_starts[0] = 0
    for row in range(len(offsets) - 1):
        if is_hard[row]:
            at, n_bytes, n_tokens = tokens_of_rest(rest, at, out, n_bytes, n_tokens)
        else:
            first, stop = offsets[row], offsets[row + 1]
            n_bytes, n_tokens = tokens_of_text(raw, first, stop, table, out, n_bytes, n_tokens)
        out_row_starts[row + 1] = n_tokens
    return n_bytes, n_tokens

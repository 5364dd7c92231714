"""Tokens of many texts at once. Each text takes the fastest of three ways that give the same tokens.

ASCII texts and other plain texts (see `plain_table`) go through kernels over Arrow's bytes; a text with one
character that is not plain goes, whole, through the definition in `words`, many such texts in one pass.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from nearcast.arrays.arrow import MAX_OFFSET, string_array, string_buffers
from nearcast.arrays.jit import kernel
from nearcast.errors import InvalidInput
from nearcast.text import words
from nearcast.text.ascii_words import tokens_of_ascii
from nearcast.text.plain_table import plain_table
from nearcast.text.plain_words import is_hard_text, tokens_of_plain

ASCII, PLAIN, GENERAL = range(3)
"""The way a text goes."""

JOINED_BYTES = 1 << 20
"""Texts that are not plain are cut together, up to this many bytes at a time, to bound the memory of the list
of matches.
"""


def words_of_array(texts: pa.Array | pa.ChunkedArray, fold_accents: bool) -> tuple[pa.Array, np.ndarray]:
    """(tokens, starts): the tokens of text i are tokens[starts[i]:starts[i+1]]. A null text has none."""
    raw, offsets = string_buffers(texts)
    table = plain_table(fold_accents)
    texts_at = np.empty((len(offsets) - 1, 3), np.int64)
    find_ways(raw, offsets, table, texts_at)
    rest = np.frombuffer(_general_words(raw, texts_at[texts_at[:, 2] == GENERAL], fold_accents), np.uint8)
    size = int(offsets[-1] - offsets[0])
    # Casefold makes a character at most half as long again (2 bytes to 3); two tokens have a byte between them.
    most_bytes = size + size // 2 + len(rest)
    if most_bytes > MAX_OFFSET:
        raise InvalidInput(f"{size:,} bytes of text are too many for one batch; give them in parts of under 1 GB")
    out, out_starts = np.empty(most_bytes, np.uint8), np.empty(size + len(rest) // 2 + 1, np.int32)
    starts = np.empty(len(offsets), np.int64)
    n_tokens = fill_rows(raw, texts_at, table, rest, out, out_starts, starts)
    return string_array(out[: out_starts[n_tokens]], out_starts[: n_tokens + 1]), starts


def _general_words(raw: np.ndarray, texts_at: np.ndarray, fold_accents: bool) -> bytes:
    """The tokens of these texts by the definition, as `words_of_many` writes them."""
    parts = []
    ends = np.cumsum(texts_at[:, 1] - texts_at[:, 0] + 1)
    first = done = 0
    while first < len(texts_at):
        stop = max(first + 1, int(np.searchsorted(ends, done + JOINED_BYTES, "right")))
        joined = np.empty(ends[stop - 1] - done, np.uint8)
        join_texts(raw, texts_at[first:stop], joined)
        text = joined.tobytes().decode("utf-8", "replace")
        parts.append(words.words_of_many(text, fold_accents).encode())
        first, done = stop, ends[stop - 1]
    return b"".join(parts)


@kernel
def find_ways(raw, offsets, table, out_texts_at):
    """Write (start, stop, way) of each text."""
    for row in range(len(offsets) - 1):
        start, stop = offsets[row], offsets[row + 1]
        high = np.uint8(0)
        for i in range(start, stop):  # no early exit: this form is vectorised
            high |= raw[i]
        way = ASCII
        if high >= 0x80:
            way = GENERAL if is_hard_text(raw, start, stop, table) else PLAIN
        out_texts_at[row, 0] = start
        out_texts_at[row, 1] = stop
        out_texts_at[row, 2] = way


@kernel
def join_texts(raw, texts_at, out):
    """Copy the texts one after another, each followed by a line feed; line feeds within become carriage returns."""
    n = 0
    for row in range(len(texts_at)):
        for i in range(texts_at[row, 0], texts_at[row, 1]):
            out[n] = 13 if raw[i] == 10 else raw[i]
            n += 1
        out[n] = 10
        n += 1


@kernel
def tokens_of_rest(rest, at, out, out_starts, n_tokens):
    """Append the tokens of the text at rest[at], as `words_of_many` wrote them; return (next text, tokens so far)."""
    n = out_starts[n_tokens]
    while rest[at] != 10:
        while rest[at] != 0:
            out[n] = rest[at]
            n += 1
            at += 1
        n_tokens += 1
        out_starts[n_tokens] = n
        at += 1
    return at + 2, n_tokens


@kernel
def fill_rows(raw, texts_at, table, rest, out, out_starts, out_row_starts):
    """Write the tokens of every text in order; return their number."""
    at = 0
    n_tokens = 0
    out_starts[0] = 0
    out_row_starts[0] = 0
    for row in range(len(texts_at)):
        start, stop, way = texts_at[row, 0], texts_at[row, 1], texts_at[row, 2]
        if way == ASCII:
            n_tokens = tokens_of_ascii(raw, start, stop, table, out, out_starts, n_tokens)
        elif way == PLAIN:
            n_tokens = tokens_of_plain(raw, start, stop, table, out, out_starts, n_tokens)
        else:
            at, n_tokens = tokens_of_rest(rest, at, out, out_starts, n_tokens)
        out_row_starts[row + 1] = n_tokens
    return n_tokens

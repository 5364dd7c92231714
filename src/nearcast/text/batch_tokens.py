"""Tokens of many texts at once. Three tokenisers give the same tokens; each text gets the fastest that can read it.

Kernels over Arrow's bytes read ASCII texts and texts of simple characters (see `character_table`). A text with a
complex character is read by the reference tokeniser in `unicode_tokens`, many such texts in one pass.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from nearcast.arrays.arrow import MAX_OFFSET, string_array, string_buffers
from nearcast.arrays.jit import kernel
from nearcast.errors import InvalidInput
from nearcast.text.character_table import character_table
from nearcast.text.languages.segmentation import NONE
from nearcast.text.simple_tokens import append_ascii_tokens, append_simple_tokens, has_complex_character
from nearcast.text.unicode_tokens import tokens_of_joined_texts

ASCII, SIMPLE, GENERAL = range(3)
"""The tokeniser of a text: one of the two of `simple_tokens`, or `unicode_tokens`."""

JOINED_BYTES = 1 << 20
"""The most bytes of texts that the reference tokeniser reads in one pass. Bounds the memory of its list of matches."""


def tokens_of_texts(
    texts: pa.Array | pa.ChunkedArray, fold_accents: bool, emoji: bool = True, segmentation: str = NONE
) -> tuple[pa.Array, np.ndarray]:
    """(tokens, starts): the tokens of text i are tokens[starts[i]:starts[i+1]]. A null text has none."""
    raw, offsets = string_buffers(texts)
    table = character_table(fold_accents, emoji)
    texts_at = np.empty((len(offsets) - 1, 3), np.int64)
    choose_tokenisers(raw, offsets, table, texts_at)
    read = functools.partial(tokens_of_joined_texts, fold_accents=fold_accents, emoji=emoji, segmentation=segmentation)
    general = np.frombuffer(_general_tokens(raw, texts_at[texts_at[:, 2] == GENERAL], read), np.uint8)
    size = int(offsets[-1] - offsets[0])
    # Casefolding makes a character at most half as long again (2 bytes to 3). Between two tokens is at least one byte.
    most_bytes = size + size // 2 + len(general)
    if most_bytes > MAX_OFFSET:
        raise InvalidInput(f"{size:,} bytes of text are too many for one batch; split it into batches of under 1 GB")
    out, out_starts = np.empty(most_bytes, np.uint8), np.empty(size + len(general) // 2 + 1, np.int32)
    starts = np.empty(len(offsets), np.int64)
    n_tokens = fill_rows(raw, texts_at, table, general, out, out_starts, starts)
    return string_array(out[: out_starts[n_tokens]], out_starts[: n_tokens + 1]), starts


def _general_tokens(raw: np.ndarray, texts_at: np.ndarray, read: Callable[[str], str]) -> bytes:
    """The tokens of these texts by the reference tokeniser, in the form of `tokens_of_joined_texts`."""
    parts = []
    ends = np.cumsum(texts_at[:, 1] - texts_at[:, 0] + 1)
    first = done = 0
    while first < len(texts_at):
        stop = max(first + 1, int(np.searchsorted(ends, done + JOINED_BYTES, "right")))
        joined = np.empty(ends[stop - 1] - done, np.uint8)
        join_texts(raw, texts_at[first:stop], joined)
        text = joined.tobytes().decode("utf-8", "replace")
        parts.append(read(text).encode())
        first, done = stop, ends[stop - 1]
    return b"".join(parts)


@kernel
def choose_tokenisers(raw, offsets, table, out_texts_at):
    """Write (start, stop, tokeniser) of each text."""
    for row in range(len(offsets) - 1):
        start, stop = offsets[row], offsets[row + 1]
        high = np.uint8(0)
        for i in range(start, stop):  # no early exit: this form is vectorised
            high |= raw[i]
        tokeniser = ASCII
        if high >= 0x80:
            tokeniser = GENERAL if has_complex_character(raw, start, stop, table) else SIMPLE
        out_texts_at[row, 0] = start
        out_texts_at[row, 1] = stop
        out_texts_at[row, 2] = tokeniser


@kernel
def join_texts(raw, texts_at, out):
    """Copy the texts, a line feed after each; line feeds within a text become carriage returns."""
    n = 0
    for row in range(len(texts_at)):
        for i in range(texts_at[row, 0], texts_at[row, 1]):
            out[n] = 13 if raw[i] == 10 else raw[i]
            n += 1
        out[n] = 10
        n += 1


@kernel
def append_general_tokens(general, at, out, out_starts, n_tokens):
    """Append the tokens of one text of `tokens_of_joined_texts`; return (start of the next text, tokens so far)."""
    n = out_starts[n_tokens]
    while general[at] != 10:
        while general[at] != 0:
            out[n] = general[at]
            n += 1
            at += 1
        n_tokens += 1
        out_starts[n_tokens] = n
        at += 1
    return at + 2, n_tokens


@kernel
def fill_rows(raw, texts_at, table, general, out, out_starts, out_row_starts):
    """Write the tokens of all texts in order; return their number."""
    at = 0
    n_tokens = 0
    out_starts[0] = 0
    out_row_starts[0] = 0
    for row in range(len(texts_at)):
        start, stop, tokeniser = texts_at[row, 0], texts_at[row, 1], texts_at[row, 2]
        if tokeniser == ASCII:
            n_tokens = append_ascii_tokens(raw, start, stop, table, out, out_starts, n_tokens)
        elif tokeniser == SIMPLE:
            n_tokens = append_simple_tokens(raw, start, stop, table, out, out_starts, n_tokens)
        else:
            at, n_tokens = append_general_tokens(general, at, out, out_starts, n_tokens)
        out_row_starts[row + 1] = n_tokens
    return n_tokens

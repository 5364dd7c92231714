"""The tokeniser of ASCII texts: one pass, one table lookup per byte."""

from __future__ import annotations

from nearcast.arrays.jit import kernel
from nearcast.text.character_table import IN_WORD, JOINS, LETTER_OR_NUMBER, SIGN


@kernel
def append_ascii_tokens(raw, i, stop, table, out, out_starts, n_tokens):
    """Append the tokens of the ASCII text raw[i:stop]; return the number of tokens written so far.

    One loop scans and writes: with two kernels called for each word it took 7 ns per byte instead of 2.5.
    """
    n = first = int(out_starts[n_tokens])
    signed = False  # the byte before is a # or @ that starts a token
    after_word = False
    while i < stop:
        found = table[raw[i]] & 0xFF
        if found & IN_WORD == 0:
            signed = found & SIGN != 0 and not after_word
            after_word = False
            i += 1
            continue
        if signed:
            out[n] = raw[i - 1]
            n += 1
        last = seen = 0
        while i < stop:
            found = table[raw[i]] & 0xFF
            if found & IN_WORD == 0:
                joins = last & found >> 3 & JOINS
                if joins == 0 or i + 1 >= stop or table[raw[i + 1]] & joins == 0:
                    break
            out[n] = table[raw[i]] >> 8
            n += 1
            i += 1
            last = found
            seen |= found
        if seen & LETTER_OR_NUMBER:
            n_tokens += 1
            out_starts[n_tokens] = n
            first = n
        n = first
        signed = False
        after_word = True
    return n_tokens

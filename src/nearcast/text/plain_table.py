"""The classes of plain characters: what each does at a word boundary, and its normal form, in one table.

A character is plain when its normal form is one character whatever stands beside it, and when it takes part only in the
simple rules: letters and numbers join, a mid character joins two letters or two numbers. All of ASCII is
plain, and so are Latin, Greek, Cyrillic, Arabic, Hangul and most pictures. Marks, joiners, Hebrew and CJK are
not.
"""

from __future__ import annotations

import functools

import numpy as np
import regex

from nearcast.text import words

LETTER, NUMBER, CONNECTOR, MID_LETTER, MID_NUMBER, SIGN, COUNTS, HARD = (1 << bit for bit in range(8))
"""What a character does. MID_LETTER and MID_NUMBER lie three bits above what they join. COUNTS: is a letter
or a number.
"""

JOINS = LETTER | NUMBER
IN_WORD = LETTER | NUMBER | CONNECTOR
IN_TOKEN = IN_WORD | COUNTS

TABLE_SIZE = 0x20000
"""Code points beyond are never plain: they are rare Han, tags and private use."""

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


@functools.cache
def plain_table(fold_accents: bool) -> np.ndarray:
    """int32[TABLE_SIZE]: normal form << 8 | class, for each code point. Built from the definition, in 0.25 s."""
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

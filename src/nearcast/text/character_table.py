"""A table of all simple characters: the class of each in the rules of word boundaries, and its normal form.

A character is simple if its normal form is one character in any context, and if only two rules concern it: letters and
numbers join, and a mid character joins two letters or two numbers. All ASCII, Latin, Greek, Cyrillic, Arabic and Hangul
characters and most emoji are simple. Combining marks, joiners, flags, skin tones, Hebrew, CJK, Thai, Lao, Khmer and
Burmese are complex.
"""

from __future__ import annotations

import functools

import numpy as np
import regex

from nearcast.text import unicode_tokens as unicode

LETTER, NUMBER, CONNECTOR, MID_LETTER, MID_NUMBER, SIGN, LETTER_OR_NUMBER, COMPLEX = (1 << bit for bit in range(8))
"""The bits of a character's class. MID_LETTER and MID_NUMBER are three bits above LETTER and NUMBER, which they join.
LETTER_OR_NUMBER is set for all letters and numbers, also for those that do not join: a token needs at least one.
"""

PICTURE = SIGN | LETTER_OR_NUMBER
"""An emoji: a token by itself, to which no sign belongs and after which a sign belongs to the next word."""

JOINS = LETTER | NUMBER
IN_WORD = LETTER | NUMBER | CONNECTOR
IN_TOKEN = IN_WORD | LETTER_OR_NUMBER

TABLE_SIZE = 0x20000
"""Code points from here on count as complex: rare Han characters, tags and private use."""

_CLASSES = {
    LETTER: unicode.WORD_LETTER,
    NUMBER: unicode.NUMBER,
    CONNECTOR: unicode.CONNECTOR,
    MID_LETTER: unicode.MID_LETTER,
    MID_NUMBER: unicode.MID_NUMBER,
    SIGN: unicode.SIGNS,
    LETTER_OR_NUMBER: unicode.LETTER_OR_NUMBER,
    # jamo compose with each other, combining marks with the character before them
    COMPLEX: rf"{unicode.EXTENDS}{unicode.CJK}{unicode.HEBREW}\p{{WB=Format}}\u1100-\u11FF\P{{ccc=0}}"
    rf"{unicode.SOUTHEAST}{unicode.FLAG_LETTER}{unicode.SKIN_TONE}\U0001F170-\U0001F189",
    PICTURE: unicode.PICTURE,
}


@functools.cache
def character_table(fold_accents: bool, emoji: bool = True) -> np.ndarray:
    """int32[TABLE_SIZE]: normal form << 8 | class of each code point, computed from `unicode_tokens` in 0.25 s."""
    points = [c for c in range(TABLE_SIZE) if not 0xD800 <= c < 0xE000 and chr(c) != unicode.SEPARATOR]
    text = unicode.SEPARATOR.join(map(chr, points))
    classes = np.zeros(TABLE_SIZE, np.int32)
    for bit, pattern in _CLASSES.items():
        if bit == PICTURE and not emoji:
            continue
        found = "".join(regex.findall(f"[{pattern}]", text, regex.V1))
        classes[np.frombuffer(found.encode("utf-32-le"), np.uint32)] |= bit
    table = np.full(TABLE_SIZE, COMPLEX, np.int32)
    table[ord(unicode.SEPARATOR)] = ord(unicode.SEPARATOR) << 8
    for point, form in zip(points, unicode.normal_form(text, fold_accents).split(unicode.SEPARATOR), strict=True):
        if len(form) == 1 and ord(form) < TABLE_SIZE and not (classes[point] | classes[ord(form)]) & COMPLEX:
            table[point] = ord(form) << 8 | classes[ord(form)]
    return table

"""Words of an expression that other query languages read differently. They are refused with a hint: taken as words
they would silently match nothing, or the opposite.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

_OPERATOR = re.compile(r"and|or|not", re.IGNORECASE)
_FIELD = re.compile(r"[^\W\d_]\w*:[^\s:/]\S*")  # not 10:30, :smile: or https://...
_PREFIX = re.compile(r"\w{2,}\*+")
_SYMBOL = {"&": "AND", "&&": "AND", "|": "OR", "||": "OR", "!": "NOT", "-": "NOT"}
_UNUSUAL = r"^-|[:*!&|]|^(?i:and|or|not)$"


def near_miss(word: str) -> str:
    """Why the word is refused, and what to write instead; an empty string if it is a word."""
    if _OPERATOR.fullmatch(word):
        return f"'{word}' is not an operator: write {word.upper()}, or \"{word}\" in quotes for the word,"
    if word in _SYMBOL:
        return f"'{word}' is not an operator: write {_SYMBOL[word]},"
    if word.startswith("!") and word[1:2].isalnum():
        return f"'{word}' is not a word: write NOT {word[1:]}, or -{word[1:]},"
    if _FIELD.fullmatch(word):
        parts = word.replace(":", " ", 1)
        return f"'{word}' looks like a field with a value, but words are all that counts: write {parts},"
    if _PREFIX.fullmatch(word):
        return f"'{word}' looks like a prefix, which cannot be subscribed to: write whole words, joined by OR,"
    return ""


def without_unusual(words: pa.Array) -> pa.Array:
    """The words, empty where they may be refused or begin with a minus: the parser must read those."""
    return pc.if_else(pc.match_substring_regex(words, _UNUSUAL), "", words)

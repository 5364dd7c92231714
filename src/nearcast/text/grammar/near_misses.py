"""Words that other query languages read differently. As words they would match nothing, or the opposite."""

from __future__ import annotations

import re

_SMALL_OPERATOR = re.compile(r"and|or|not", re.IGNORECASE)
_FIELD = re.compile(r"[^\W\d_]\w*:[^\s:/]\S*")  # not 10:30, :smile: or https://...
_SYMBOL = {"&": "AND", "&&": "AND", "|": "OR", "||": "OR", "!": "NOT", "-": "NOT"}
_LONGEST_SHOWN = 80
PREFIX_RULE = "a prefix is one word of at least 2 letters with a * behind it, as in incid*"


def near_miss(word: str) -> str:
    """Why a word is refused, and what to write instead; an empty string if it is a word or a prefix."""
    if _SMALL_OPERATOR.fullmatch(word):
        return f"'{word}' is not an operator: write {word.upper()}, or \"{word}\" in quotes for the word,"
    if word in _SYMBOL:
        return f"'{word}' is not an operator: write {_SYMBOL[word]},"
    if len(word) > _LONGEST_SHOWN:
        return near_miss(f"{word[: _LONGEST_SHOWN - 3]}...")
    if word.startswith("!") and word[1:2].isalnum():
        return f"'{word}' is not a word: write NOT {word[1:]}, or -{word[1:]},"
    if _FIELD.fullmatch(word):
        parts = word.replace(":", " ", 1)
        return (
            f"'{word}' looks like a field with a value, but words are all that counts: write {parts}, "
            f"or {{{word.replace(':', ' = ', 1)}}} for a column of the messages,"
        )
    return ""

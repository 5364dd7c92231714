"""The reference tokeniser: defines the tokens of any Unicode text.

`simple_tokens` gives the same tokens faster, for texts of simple characters only.

A text is first brought to normal form (see `normal_form`) and then split at the word boundaries of Unicode
Standard Annex 29. Every piece with a letter or a number is a token. We add three rules to the annex and omit one:

- a `#` or `@` right before a word, and not itself after a word character, belongs to the word;
- a run of Han, Hiragana and Katakana characters becomes its overlapping pairs, a single such character one token;
  after a `#` or `@` the run stays whole;
- there is a boundary between such a run and other letters and numbers (the annex would join Katakana to an underscore);
- rule WB3c is omitted: it would join an emoji after a zero-width joiner to the word before it.
"""

from __future__ import annotations

import unicodedata

import regex

SIGNS = "#@"

EXTENDS = r"\p{WB=Extend}\p{WB=ZWJ}"  # combining marks; normal_form has removed \p{WB=Format}
WORD_LETTER = r"[\p{WB=ALetter}--\p{Han}]\p{WB=Hebrew_Letter}"  # the iteration marks of Han count as Han
HEBREW = r"\p{WB=Hebrew_Letter}"
NUMBER = r"\p{WB=Numeric}"
CONNECTOR = r"\p{WB=ExtendNumLet}"
MID_LETTER = r"\p{WB=MidLetter}\p{WB=MidNumLet}\p{WB=Single_Quote}"
MID_NUMBER = r"\p{WB=MidNum}\p{WB=MidNumLet}\p{WB=Single_Quote}"
CJK = r"[[\p{Han}\p{Hiragana}\p{Katakana}\p{WB=Katakana}]--\p{WB=Extend}]"
LETTER_OR_NUMBER = r"[[\p{L}\p{N}]--\p{WB=Extend}]"  # two voicing marks are letters by category
IN_WORD = rf"{WORD_LETTER}{NUMBER}{CONNECTOR}"

SEPARATOR = "\n"
"""Stands between texts that are split in one pass. Line feeds within a text are read as carriage returns; no token
contains either.
"""


def _token_pattern() -> str:
    marks = f"[{EXTENDS}]*+"
    behind = f"[{EXTENDS}]*"
    tail = f"[{IN_WORD}{EXTENDS}]*+"
    word = (
        f"[{IN_WORD}]{tail}"
        f"(?:(?<=[{WORD_LETTER}]{behind})[{MID_LETTER}]{marks}(?=[{WORD_LETTER}]){tail}"  # WB6, WB7
        f"|(?<=[{NUMBER}]{behind})[{MID_NUMBER}]{marks}(?=[{NUMBER}]){tail}"  # WB11, WB12
        f'|(?<=[{HEBREW}]{behind})"{marks}(?=[{HEBREW}]){tail})*+'  # WB7b, WB7c
        f"(?:(?<=[{HEBREW}]{behind})'{marks})?+"  # WB7a
    )
    lone = f"[{LETTER_OR_NUMBER}]{marks}"  # letters the annex does not join (Thai), fractions, superscripts
    cjk = f"[{CJK}]{marks}"
    sign = f"[{SIGNS}](?<![{IN_WORD}{CJK}{LETTER_OR_NUMBER}]{behind}.)"  # looks back over the sign itself
    # A lookahead captures the token, then the pattern consumes it. Of a CJK pair it consumes only the first character,
    # so that pairs overlap, except for the last pair of a run, which is consumed whole.
    token = f"{word}|{SEPARATOR}|{cjk}(?:{cjk})?|{lone}|{sign}(?:{word}|(?:{cjk})++|{lone})"
    return rf"(?=({token}))(?:{cjk}(?:{cjk}(?![{CJK}]))?|\1)"


_TOKEN = regex.compile(_token_pattern(), regex.V1)
_LETTER_OR_NUMBER = regex.compile(f"[{LETTER_OR_NUMBER}]", regex.V1)
_FORMAT = regex.compile(r"\p{WB=Format}+", regex.V1)
# Only accents. The marks of other scripts (vowels of Hindi, Thai, Arabic, Hebrew) are letters to their readers.
_ACCENT = regex.compile(r"[\u0300-\u036F\u1AB0-\u1AFF\u1DC0-\u1DFF\u20D0-\u20FF]+", regex.V1)
_STROKES = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ħ": "h", "ŧ": "t", "ı": "i", "æ": "ae", "œ": "oe"}  # have no decomposition
)


def normal_form(text: str, fold_accents: bool) -> str:
    """The text without invisible format characters, composed (NFC), casefolded, and without accents if `fold_accents`.

    Canonically equivalent texts have the same form. NFC is applied again after casefold, which may decompose.
    """
    text = _FORMAT.sub("", text)
    text = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    if not fold_accents:
        return text
    bare = _ACCENT.sub("", unicodedata.normalize("NFD", text))
    return unicodedata.normalize("NFC", bare).translate(_STROKES)


def tokens_of_text(text: str, fold_accents: bool) -> list[str]:
    """The tokens of one text, in order."""
    if text.isascii() and text.isalnum():
        return [text.lower()]  # one word of a subscription: 0.2 us instead of 8
    text = text.replace(SEPARATOR, "\r")
    return [token for token in _TOKEN.findall(normal_form(text, fold_accents)) if _is_token(token)]


def tokens_of_joined_texts(joined: str, fold_accents: bool) -> str:
    """The tokens of several texts, each of which ends in SEPARATOR. A NUL follows every token and every SEPARATOR."""
    found = _TOKEN.findall(normal_form(joined, fold_accents))
    kept = [token for token in found if token.isalnum() or token == SEPARATOR or _is_token(token)]
    kept.append("")
    return "\0".join(kept)


def _is_token(token: str) -> bool:
    # isalnum is 4x faster than the pattern and true for most tokens; its Unicode version may be the older of the two
    return token.isalnum() or _LETTER_OR_NUMBER.search(token) is not None

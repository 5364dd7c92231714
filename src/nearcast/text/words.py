"""What a word is: the definition, for any Unicode text. Slow and general; `plain_words` is the fast twin for
plain texts.

A text is first brought to normal form (see `normal_form`) and then cut at the word boundaries of Unicode
Standard Annex 29. Every piece that holds a letter or a number is a token. Three rules are added to the annex
and one is left out:

- a `#` or `@` right before a word, and not itself after a word character, belongs to the word;
- a run of Han, Hiragana and Katakana becomes its overlapping pairs, and a lone character itself; behind a
  sign it stays whole;
- letters and numbers outside such runs are cut off from them (the annex would glue Katakana to an underscore);
- rule WB3c is left out: it would glue a picture behind a zero-width joiner to the word before it.
"""

from __future__ import annotations

import unicodedata

import regex

SIGNS = "#@"

EXTENDS = r"\p{WB=Extend}\p{WB=ZWJ}"  # marks that belong to the character before them; \p{WB=Format} is already gone
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
"""Between texts that are cut in one pass. A text's own line feeds are read as carriage returns: no word holds
either.
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
    # The token is seen ahead and then consumed whole, but for a pair, of which only the first half is
    # consumed; the last pair of a run takes its second half along.
    token = f"{word}|{SEPARATOR}|{cjk}(?:{cjk})?|{lone}|{sign}(?:{word}|(?:{cjk})++|{lone})"
    return rf"(?=({token}))(?:{cjk}(?:{cjk}(?![{CJK}]))?|\1)"


_TOKEN = regex.compile(_token_pattern(), regex.V1)
_LETTER_OR_NUMBER = regex.compile(f"[{LETTER_OR_NUMBER}]", regex.V1)
_FORMAT = regex.compile(r"\p{WB=Format}+", regex.V1)
# Accents in the narrow sense. Other scripts' marks (vowels of Hindi, Thai, Arabic, Hebrew) are letters to
# their readers.
_ACCENT = regex.compile(r"[\u0300-\u036F\u1AB0-\u1AFF\u1DC0-\u1DFF\u20D0-\u20FF]+", regex.V1)
_STROKES = str.maketrans(
    {
        "ø": "o",
        "ł": "l",
        "đ": "d",
        "ħ": "h",
        "ŧ": "t",
        "ı": "i",
        "æ": "ae",
        "œ": "oe",
    }  # have no decomposition
)


def normal_form(text: str, fold_accents: bool) -> str:
    """Without invisible format characters, canonically composed, casefolded, and without accents where asked.

    Texts that are canonically equivalent get the same form. Composing comes again after casefold, which may decompose.
    """
    text = _FORMAT.sub("", text)
    text = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    if not fold_accents:
        return text
    bare = _ACCENT.sub("", unicodedata.normalize("NFD", text))
    return unicodedata.normalize("NFC", bare).translate(_STROKES)


def words(text: str, fold_accents: bool) -> list[str]:
    """The tokens of one text, in order."""
    text = text.replace(SEPARATOR, "\r")
    return [token for token in _TOKEN.findall(normal_form(text, fold_accents)) if _is_token(token)]


def words_of_many(joined: str, fold_accents: bool) -> str:
    """The tokens of texts that each end in SEPARATOR: every token, and every SEPARATOR, followed by a NUL."""
    found = _TOKEN.findall(normal_form(joined, fold_accents))
    kept = [token for token in found if token.isalnum() or token == SEPARATOR or _is_token(token)]
    kept.append("")
    return "\0".join(kept)


def _is_token(token: str) -> bool:
    # isalnum is 4x faster than the pattern and true for most; its Unicode version may be older than the pattern's
    return token.isalnum() or _LETTER_OR_NUMBER.search(token) is not None

"""The reference tokeniser: defines the tokens of any Unicode text.

`simple_tokens` gives the same tokens faster, for texts of simple characters only.

A text is first brought to normal form (see `normal_form`) and then split at the word boundaries of Unicode
Standard Annex 29. Every piece with a letter or a number is a token. We add three rules to the annex and omit one:

- a `#` or `@` right before a word, and not itself after a word character, belongs to the word;
- a run of Han, Hiragana and Katakana characters becomes its overlapping pairs, a single such character one token;
  after a `#` or `@` the run stays whole;
- there is a boundary between such a run and other letters and numbers: the annex would join Katakana to underscores;
- a run of Thai, Lao, Khmer or Burmese letters, which the annex does not cut into words, is cut by a library (see
  `languages/segmentation.py`), or into letters if texts are analysed without it; after a `#` or `@` it stays whole;
- an emoji is a token: a picture with its skin tone, a flag, a keycap, pictures joined by zero-width joiners;
- rule WB3c is omitted: it would join an emoji after a zero-width joiner to the word before it.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Callable, Sequence

import regex

from nearcast.text.languages.segmentation import NONE, words_of_run

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
SOUTHEAST = r"[[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]&&[\p{L}\p{M}]]"
FLAG_LETTER = r"\p{WB=Regional_Indicator}"
SKIN_TONE = r"\p{Emoji_Modifier}"
# Signs such as © and letters in squares are no emoji: they stand in plain text too
PICTURE = (
    r"[[\p{Emoji_Presentation}[\p{Extended_Pictographic}&&[\u2300-\u27BF\u2934-\u2BFF\U0001F000-\U0001FAFF]]]"
    rf"--[{FLAG_LETTER}\p{{L}}\p{{N}}]]"
)
STYLES = "\ufe0e\ufe0f"
IN_WORD = rf"{WORD_LETTER}{NUMBER}{CONNECTOR}"

SEPARATOR = "\n"
"""Stands between texts that are split in one pass. Line feeds within a text are read as carriage returns; no token
contains either.
"""


def _emoji_pattern() -> str:
    tags = "(?:[\U000e0020-\U000e007e]+\U000e007f)?"
    picture = rf"(?:{PICTURE}[{STYLES}]?|\p{{Extended_Pictographic}}\uFE0F){SKIN_TONE}?{tags}"
    return rf"[0-9#*]\uFE0F?\u20E3|{FLAG_LETTER}{{2}}|{picture}(?:\u200D{picture})*+"


def _token_pattern(emoji: bool, runs: bool) -> str:
    """The pattern of tokens; with `runs`, a run of Southeast Asian letters is one."""
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
    if runs:
        lone = f"{SOUTHEAST}[{SOUTHEAST}{EXTENDS}]*+|{lone}"
    pictures = f"{_emoji_pattern()}|" if emoji else ""
    token = f"{word}|{SEPARATOR}|{pictures}{cjk}(?:{cjk})?|{lone}|{sign}(?:{word}|(?:{cjk})++|{lone})"
    return rf"(?=({token}))(?:{cjk}(?:{cjk}(?![{CJK}]))?|\1)"


@functools.cache
def _tokens_of(emoji: bool, runs: bool) -> Callable[[str], list[str]]:
    return regex.compile(_token_pattern(emoji, runs), regex.V1).findall


_EMOJI = regex.compile(_emoji_pattern(), regex.V1)
_STYLE = str.maketrans("", "", STYLES)
_RUN = regex.compile(SOUTHEAST, regex.V1)
_LETTER_OR_NUMBER = regex.compile(f"[{LETTER_OR_NUMBER}]", regex.V1)
_LONG_RUN = regex.compile(r"\p{M}{64}\p{M}*+", regex.V1)
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
    text = _LONG_RUN.sub(_in_canonical_order, _FORMAT.sub("", text))
    text = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    if not fold_accents:
        return text
    bare = _ACCENT.sub("", unicodedata.normalize("NFD", text))
    return unicodedata.normalize("NFC", bare).translate(_STROKES)


def _in_canonical_order(run: regex.Match[str]) -> str:
    """A run of marks, decomposed and in canonical order: normalisation would sort it in quadratic time."""
    marks = list[str]()
    for decomposed in map(_decomposed, run[0]):
        marks += decomposed
    out, first = list[str](), 0
    for at, mark in enumerate([*marks, ""]):
        if mark == "" or unicodedata.combining(mark) == 0:
            out += sorted(marks[first:at], key=unicodedata.combining)
            out.append(mark)
            first = at + 1
    return "".join(out)


@functools.cache
def _decomposed(mark: str) -> str:
    return unicodedata.normalize("NFD", mark)


def tokens_of_text(text: str, fold_accents: bool, emoji: bool = True, segmentation: str = NONE) -> list[str]:
    """The tokens of one text, in order. `segmentation` is the library that cuts runs of Southeast Asian letters."""
    if text.isascii() and text.isalnum():
        return [text.lower()]  # one word of a subscription: 0.2 us instead of 8
    found = _tokens_of(emoji, segmentation != NONE)(normal_form(text.replace(SEPARATOR, "\r"), fold_accents))
    if text.isascii():
        return [token for token in found if _is_token(token)]
    return [token for each in found for token in _finished(each, emoji, segmentation)]


def tokens_of_joined_texts(joined: str, fold_accents: bool, emoji: bool = True, segmentation: str = NONE) -> str:
    """The tokens of several texts, each of which ends in SEPARATOR. A NUL follows every token and every SEPARATOR."""
    kept = list[str]()
    for token in _tokens_of(emoji, segmentation != NONE)(normal_form(joined, fold_accents)):
        if token == SEPARATOR:
            kept.append(token)
        else:
            kept += _finished(token, emoji, segmentation)
    kept.append("")
    return "\0".join(kept)


def _finished(token: str, emoji: bool, segmentation: str) -> Sequence[str]:
    """The token, or the words of a run of Southeast Asian letters; nothing if it is only punctuation."""
    if segmentation != NONE and _RUN.match(token):
        return words_of_run(token, segmentation)
    if token.isalnum():  # 4x faster than the pattern and true for most; its Unicode version may be the older one
        return (token,)
    if emoji and _EMOJI.match(token):
        return (token.translate(_STYLE),)
    return (token,) if _is_token(token) else ()


def _is_token(token: str) -> bool:
    return token.isalnum() or _LETTER_OR_NUMBER.search(token) is not None

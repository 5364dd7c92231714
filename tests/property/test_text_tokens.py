"""The three tokenisers agree with each other and with each rule of Unicode Standard Annex 29."""

from __future__ import annotations

import unicodedata

import pyarrow as pa
import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.arrays.jit import JIT_DISABLED
from nearcast.text.analyser import Analyser
from nearcast.text.batch_tokens import tokens_of_texts
from nearcast.text.character_table import COMPLEX, TABLE_SIZE, character_table
from nearcast.text.unicode_tokens import normal_form, tokens_of_text

EXAMPLES = settings(max_examples=60 if JIT_DISABLED else 300, deadline=None)

# Few characters, of every class: rules of three and four characters then meet by chance.
ASCII_POOL = "aZb1_.',:;#@\"- \n\r\t\0\x1f\x7f&"
SIMPLE_POOL = "aB1_.'#@ éÉßøŁд½²·’٫ع١한ΩİªⒶ❤👍\u2126\u02bc\u055a\u203f"
COMPLEX_POOL = (
    "a1_.'\"#@ א״ב׳กุ้नि्漢々字〇かカーﾞ゛゠🇩🏽©ΐŉ\U00020000"
    "\u0301\u0345\u200c\u200d\u00ad\u200e\ufe0f\u20e3\u1100\u1161\u11a8"
)

ascii_texts = st.text(st.sampled_from(ASCII_POOL) | st.characters(max_codepoint=127), max_size=12)
texts = st.text(
    st.sampled_from(ASCII_POOL)
    | st.sampled_from(SIMPLE_POOL)
    | st.sampled_from(COMPLEX_POOL)
    | st.characters(codec="utf-8"),
    max_size=12,
)


def by_batch(batch: list[str], fold_accents: bool) -> list[list[str]]:
    tokens, starts = tokens_of_texts(pa.array(batch, pa.string()), fold_accents)
    return [tokens[starts[i] : starts[i + 1]].to_pylist() for i in range(len(batch))]


@EXAMPLES
@given(st.lists(ascii_texts, max_size=6), st.booleans())
def test_ascii_texts_get_the_tokens_of_the_reference(batch: list[str], fold_accents: bool) -> None:
    assert by_batch(batch, fold_accents) == [tokens_of_text(text, fold_accents) for text in batch]


@EXAMPLES
@given(st.lists(st.text(st.sampled_from(SIMPLE_POOL), max_size=10) | texts, max_size=6), st.booleans())
def test_mixed_texts_get_the_tokens_of_the_reference(batch: list[str], fold_accents: bool) -> None:
    assert by_batch(batch, fold_accents) == [tokens_of_text(text, fold_accents) for text in batch]


@pytest.mark.parametrize("fold_accents", [False, True])
def test_every_character_between_others_gives_the_tokens_of_the_reference(fold_accents: bool) -> None:
    step = 97 if JIT_DISABLED else 11
    points = [*range(0x600), *range(0x600, 0x20100, step), *range(0xFE00, 0x10000, step), 0x10FFFF]
    characters = [chr(point) for point in points if not 0xD800 <= point < 0xE000]
    batch = [text for c in characters for text in (f"a{c}B 1{c}2", f"#{c}#a {c}")]
    assert by_batch(batch, fold_accents) == [tokens_of_text(text, fold_accents) for text in batch]


@pytest.mark.parametrize("fold_accents", [False, True])
def test_no_simple_character_grows_by_more_than_half(fold_accents: bool) -> None:
    """The batch allots one and a half times the bytes of its texts."""
    table = character_table(fold_accents)
    for point in range(TABLE_SIZE):
        if not table[point] & COMPLEX:
            assert 2 * len(chr(table[point] >> 8).encode()) <= 3 * len(chr(point).encode())


@EXAMPLES
@given(texts, st.booleans())
def test_canonical_equivalents_give_the_same_tokens(text: str, fold_accents: bool) -> None:
    tokens = tokens_of_text(text, fold_accents)
    for form in ("NFC", "NFD"):
        assert tokens_of_text(unicodedata.normalize(form, text), fold_accents) == tokens


@EXAMPLES
@given(texts, st.booleans())
def test_normal_form_is_stable(text: str, fold_accents: bool) -> None:
    form = normal_form(text, fold_accents)
    assert normal_form(form, fold_accents) == form


def test_normal_form_is_stable_for_every_character() -> None:
    text = " ".join(chr(point) for point in range(0x30000) if not 0xD800 <= point < 0xE000)
    for fold_accents in (False, True):
        form = normal_form(text, fold_accents)
        assert normal_form(form, fold_accents) == form


@EXAMPLES
@given(texts)
def test_a_token_is_its_own_only_token(text: str) -> None:
    for token in tokens_of_text(text, False):
        assert tokens_of_text(token, False) == [token]


@EXAMPLES
@given(texts)
def test_boundaries_are_those_of_the_annex(text: str) -> None:
    text = normal_form(_without_our_own_rules(text), False)
    assert tokens_of_text(text, False, False) == [
        piece for piece in _pieces_by_rules(text) if _holds_letter_or_number(piece)
    ]


@EXAMPLES
@given(texts)
def test_boundaries_are_those_of_the_regex_library_where_it_follows_the_annex(text: str) -> None:
    """It joins an apostrophe, a flag or a leading mark to the letter behind it, and stops at marks before a
    mid character.
    """
    text = normal_form(_without_our_own_rules(text), False)
    text = regex.sub(r"['\u2019\p{WB=Extend}\p{WB=ZWJ}\p{WB=Regional_Indicator}]", "", text)
    pieces = regex.split(r"\b", text, flags=regex.WORD | regex.V1)
    assert tokens_of_text(text, False, False) == [piece for piece in pieces if _holds_letter_or_number(piece)]


def _without_our_own_rules(text: str) -> str:
    """Signs, CJK, and pictures behind a joiner follow rules of ours."""
    text = regex.sub(r"[#@\p{Han}\p{Hiragana}\p{Katakana}\p{WB=Katakana}]", "", text)
    return regex.sub(r"(\u200d\p{WB=Format}*)\p{ExtPict}+", r"\1", text)


def _holds_letter_or_number(piece: str) -> bool:
    return any(_category(c) in "LN" and _class_of(c) != "Extend" for c in piece)


def _category(character: str) -> str:
    return "L" if regex.match(r"\p{L}", character) else "N" if regex.match(r"\p{N}", character) else "-"


CLASSES = (
    "ALetter Hebrew_Letter Numeric ExtendNumLet MidLetter MidNumLet MidNum Single_Quote Double_Quote "
    "Extend Format ZWJ CR LF Newline WSegSpace Regional_Indicator"
).split()


def _class_of(character: str) -> str:
    return next((name for name in CLASSES if regex.match(rf"\p{{WB={name}}}", character)), "Other")


def _pieces_by_rules(text: str) -> list[str]:
    pieces: list[str] = []
    kinds = [_class_of(character) for character in text]
    for i, character in enumerate(text):
        if i and _joins(kinds, i):
            pieces[-1] += character
        else:
            pieces.append(character)
    return pieces


LETTERS = ("ALetter", "Hebrew_Letter")
MID_LETTERS = ("MidLetter", "MidNumLet", "Single_Quote")
MID_NUMBERS = ("MidNum", "MidNumLet", "Single_Quote")
IGNORED = ("Extend", "Format", "ZWJ")
LINE_ENDS = ("CR", "LF", "Newline")


def _joins(kinds: list[str], i: int) -> bool:
    """Whether there is no boundary before character i: the annex's rules, in its order."""
    if kinds[i - 1] in LINE_ENDS or kinds[i] in LINE_ENDS:
        return kinds[i - 1 : i + 1] == ["CR", "LF"]  # WB3, WB3a, WB3b
    if kinds[i - 1 : i + 1] == ["WSegSpace", "WSegSpace"]:
        return True  # WB3d
    if kinds[i] in IGNORED:
        return True  # WB4
    before = _seen(kinds[:i])
    after = [kinds[i], *(kind for kind in kinds[i + 1 :] if kind not in IGNORED)]
    one, two = before[-1], before[-2] if len(before) > 1 else ""
    next_one, next_two = after[0], after[1] if len(after) > 1 else ""
    n_flags = next((k for k, kind in enumerate(reversed(before)) if kind != "Regional_Indicator"), len(before))
    return (
        (one in LETTERS and next_one in LETTERS)  # WB5
        or (one in LETTERS and next_one in MID_LETTERS and next_two in LETTERS)  # WB6
        or (two in LETTERS and one in MID_LETTERS and next_one in LETTERS)  # WB7
        or (one == "Hebrew_Letter" and next_one == "Single_Quote")  # WB7a
        or (one == next_two == "Hebrew_Letter" and next_one == "Double_Quote")  # WB7b
        or (two == next_one == "Hebrew_Letter" and one == "Double_Quote")  # WB7c
        or (one in (*LETTERS, "Numeric") and next_one in (*LETTERS, "Numeric"))  # WB8, WB9, WB10
        or (two == next_one == "Numeric" and one in MID_NUMBERS)  # WB11
        or (one == next_two == "Numeric" and next_one in MID_NUMBERS)  # WB12
        or (one in (*LETTERS, "Numeric", "ExtendNumLet") and next_one == "ExtendNumLet")  # WB13a
        or (one == "ExtendNumLet" and next_one in (*LETTERS, "Numeric"))  # WB13b
        or (next_one == "Regional_Indicator" and n_flags % 2 == 1)  # WB15, WB16
    )


def _seen(kinds: list[str]) -> list[str]:
    """WB4: marks vanish behind the character they belong to, but not at the start or behind a line end."""
    seen: list[str] = []
    for kind in kinds:
        if kind not in IGNORED or not seen or seen[-1] in LINE_ENDS:
            seen.append(kind)
    return seen


@EXAMPLES
@given(st.lists(st.sampled_from("漢字かなカー"), max_size=6), st.sampled_from(["", "a", "_", "#", "１"]))
def test_a_run_of_cjk_gives_its_pairs(run: list[str], before: str) -> None:
    text = "".join(run)
    pairs = [a + b for a, b in zip(run, run[1:], strict=False)] or run
    first = [before] if before in ("a", "１") else []
    expected = ["#" + text] if before == "#" and run else first + pairs
    assert Analyser().tokens(before + text) == expected

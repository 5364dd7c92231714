from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa
import pytest
from snowballstemmer.english_stemmer import EnglishStemmer

from nearcast.errors import ForeignVersion, InvalidInput, MissingPart
from nearcast.text import batch_tokens
from nearcast.text.analyser import ANALYSER_VERSION, Analyser
from nearcast.text.stop_words import STOP_WORDS
from nearcast.text.unicode_tokens import normal_form

CASES = {
    "": [],
    "  \n\0\t ": [],
    "Pizza deal, at THE corner!": ["pizza", "deal", "at", "the", "corner"],
    "half-price / e-mail": ["half", "price", "e", "mail"],
    "don't U.S.A. o'clock's": ["don't", "u.s.a", "o'clock's"],
    "3.14 1,000.50 10:30 v2.0 .5 5. 1,a": ["3.14", "1,000.50", "10", "30", "v2.0", "5", "5", "1", "a"],
    "snake_case _x_ __ _": ["snake_case", "_x_"],
    "a a A": ["a", "a", "a"],
    "#Hash @Name ##x @@y #a-b # @": ["#hash", "@name", "#x", "@y", "#a", "b"],
    "me@example.com a#b 1@2 _#c": ["me", "example.com", "a", "b", "1", "2", "c"],
    "(#a) .@b 'c' #_ #1": ["#a", "@b", "c", "#1"],
    "Straße STRASSE ΣΊΣΥΦΟΣ": ["strasse", "strasse", "σίσυφοσ"],
    "École E\u0301cole": ["école", "école"],
    "co\u00adop \ufeffbom ri\u200eght": ["coop", "bom", "right"],
    "m² ½ Ⅻ": ["m", "²", "½", "ⅻ"],
    "東京タワー 漢 カ_1": ["東京", "京タ", "タワ", "ワー", "漢", "カ", "_1"],
    "佐々木 #東京2024 東京#x": ["佐々", "々木", "#東京", "2024", "東京", "x"],
    "한국어 서울": ["한국어", "서울"],
    "צה\"ל ג'": ['צה"ל', "ג'"],
    "नमस्ते دنیا می\u200cخواهم": ["नमस्ते", "دنیا", "می\u200cخواهم"],
    "❤️#love 👍🏽 🇩🇪 1️⃣": ["❤", "#love", "👍🏽", "🇩🇪", "1\u20e3"],
    "pizza🍕#hot 👨‍👩‍👧 🍕🍕 #🍕 #️⃣ ❤ ©": ["pizza", "🍕", "#hot", "👨‍👩‍👧", "🍕", "🍕", "🍕", "#\u20e3", "❤"],
    "กินข้าวที่กรุงเทพ abc #ภาษาไทย": ["กิน", "ข้าว", "ที่", "กรุงเทพ", "abc", "#ภาษาไทย"],
    "ພາສາລາວ ဘာသာ ភាសា": ["ພາສາ", "ລາວ", "ဘာသာ", "ភាសា"],
}


@pytest.mark.parametrize("text", CASES)
def test_tokens_of_one_text(text: str) -> None:
    assert Analyser().tokens(text) == CASES[text]


def test_a_batch_gives_the_tokens_of_each_text() -> None:
    assert Analyser().tokens_batch(pa.array(CASES)).to_pylist() == list(CASES.values())


def test_a_batch_of_any_string_type_gives_one_list_array() -> None:
    plain = pa.array(["é a", None, "漢字", "b", ""])
    expected = [["é", "a"], [], ["漢字"], ["b"], []]
    kinds = (
        plain,
        plain.cast(pa.large_string()),
        plain.dictionary_encode(),
        pa.chunked_array([plain[:2], plain[2:]]),
    )
    for texts in kinds:
        lists = Analyser().tokens_batch(texts)
        assert lists.type == pa.list_(pa.string())
        assert lists.to_pylist() == expected
        assert Analyser().tokens_batch(texts.slice(2)).to_pylist() == expected[2:]
    assert Analyser().tokens_batch(pa.nulls(2)).to_pylist() == [[], []]
    assert Analyser().tokens_batch(pa.array([], pa.string())).to_pylist() == []


def test_complex_texts_may_take_many_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_tokens, "JOINED_BYTES", 7)
    texts = ["漢字 a\nb", "", "no", "ก", "漢" * 9, "x\u0301\n\n"]
    assert Analyser().tokens_batch(pa.array(texts)).to_pylist() == [Analyser().tokens(text) for text in texts]


def test_a_huge_word_is_one_token() -> None:
    for letter in ("a", "é", "e\u0301"):
        lists = Analyser().tokens_batch(pa.array(["x", letter * 100_000 + " y"]))
        assert [len(tokens) for tokens in lists.to_pylist()] == [1, 2]


def test_invalid_utf8_does_not_change_other_texts() -> None:
    for bad in (
        b"ab\xffc d",
        b"\xe4",
        b"x \xf0\x9f",
        b"\xc0\xaf y",
        b"\xed\xa0\x80z",
        b"\xf4\x90\x80\x80",
        b"\x80\x80",
    ):
        offsets = np.array([0, 1, 1 + len(bad), 2 + len(bad)], np.int32)
        array = pa.StringArray.from_buffers(3, pa.py_buffer(offsets), pa.py_buffer(b"p" + bad + b"q"))
        lists = Analyser().tokens_batch(array).to_pylist()
        assert lists[0] == ["p"] and lists[2] == ["q"]
        assert lists[1] == Analyser().tokens(bad.decode("utf-8", "replace"))


def test_accents_are_kept_by_default() -> None:
    text = "Café Łódź smørrebrød ΆΛΦΑ हिन्दी שָׁלוֹם"
    assert Analyser().tokens(text)[:3] == ["café", "łódź", "smørrebrød"]
    folded = Analyser(fold_accents=True)
    assert folded.tokens(text) == ["cafe", "lodz", "smorrebrod", "αλφα", "हिन्दी", *Analyser().tokens("שָׁלוֹם")]
    assert folded.tokens_batch(pa.array([text])).to_pylist() == [folded.tokens(text)]


@pytest.mark.parametrize("language", STOP_WORDS)
def test_stop_words_are_tokens_and_are_dropped(language: str) -> None:
    listed = sorted(STOP_WORDS[language])
    for analyser in (Analyser(stop_words=language), Analyser(stop_words=language, fold_accents=True)):
        assert [word for word in listed if analyser.tokens(word)] == []
        assert analyser.tokens_batch(pa.array([*listed, "pizza"])).to_pylist() == [[]] * len(listed) + [["pizza"]]
    assert [word for word in listed if Analyser().tokens(word) != [normal_form(word, False)]] == []


def test_stop_words_and_stems_leave_tags_and_names_alone() -> None:
    analyser = Analyser(stop_words="en", stem="english")
    text = "The #The @Running dogs were running"
    assert analyser.tokens(text) == ["#the", "@running", "dog", "run"]
    assert analyser.tokens_batch(pa.array([text, None, "the"])).to_pylist() == [analyser.tokens(text), [], []]


def test_both_stemmers_give_the_same_stems() -> None:
    words = "running ponies relational cities happily generously flies dying skies news proceed".split()
    slow = EnglishStemmer()
    assert Analyser(stem="english").tokens(" ".join(words)) == [slow.stemWord(word) for word in words]


def test_stemming_works_on_threads() -> None:
    analyser = Analyser(stem="german")
    out: list[list[str]] = []
    threads = [threading.Thread(target=lambda: out.append(analyser.tokens("Häuser " * 500))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert out == [["haus"] * 500] * 4


def test_normalise_neither_cuts_nor_drops() -> None:
    analyser = Analyser(stop_words="en", stem="english", fold_accents=True)
    assert analyser.normalise("The") == "the"
    assert analyser.normalise("Half-Price Café") == "half-price caf"
    assert Analyser().normalise("E\u0301 B") == "é b"
    assert analyser.normalise("#Running") == "#running"
    assert analyser.normalise("") == ""


def test_the_header_restores_the_analyser() -> None:
    analyser = Analyser(fold_accents=True, stop_words="de", stem="german")
    assert analyser.header()["version"] == ANALYSER_VERSION
    assert Analyser.from_header(analyser.header()) == analyser


@pytest.mark.parametrize("header", [{}, {"version": ANALYSER_VERSION + 1}, {"version": ANALYSER_VERSION, "new": 1}])
def test_another_version_is_refused(header: dict[str, int]) -> None:
    with pytest.raises(ForeignVersion):
        Analyser.from_header(header)


def test_unknown_languages_are_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match="en, de"):
        Analyser(stop_words="xx")
    with pytest.raises(InvalidInput, match="english"):
        Analyser(stem="klingon")


def test_one_plain_word_is_the_token_that_it_is_within_a_text() -> None:
    for word in ("Pizza", "a1B2", "42", "x", "A" * 300):
        assert Analyser().tokens(word) == Analyser().tokens(f"{word} !")


OLD = {"version": 1, "fold_accents": False, "stop_words": None, "stem": None}


def test_an_analyser_of_version_1_gives_the_tokens_of_then() -> None:
    old = Analyser.from_header(OLD)
    texts = ["❤️ pizza🍕 #hot", "กินข้าว", "👍🏽 1️⃣"]
    wanted = [["pizza", "#hot"], ["กิ", "น", "ข้", "า", "ว"], ["1️⃣"]]
    assert [old.tokens(text) for text in texts] == old.tokens_batch(pa.array(texts)).to_pylist() == wanted
    assert Analyser.from_header(old.header()) == old != Analyser()


def test_text_that_another_library_cut_is_refused_with_the_remedy() -> None:
    header = Analyser().header()
    assert header["version"] == 2 and header["segmentation"].startswith("icu4py ")
    other = Analyser.from_header(header | {"segmentation": "icu4py 0.1"})
    assert other.tokens("plain text 東京") == ["plain", "text", "東京"]
    with pytest.raises(MissingPart, match=r"pip install 'icu4py==0\.1'"):
        other.tokens("ภาษาไทย")
    with pytest.raises(MissingPart, match="here is icu4py"):
        other.tokens_batch(pa.array(["ภาษาไทย"]))


def test_analysers_have_the_names_of_languages() -> None:
    assert Analyser.named("english") == Analyser(stop_words="en", stem="english") == Analyser.of("english")
    assert Analyser.named("russian") == Analyser(stem="russian")
    assert Analyser.named("plain") == Analyser.of(None) == Analyser.of(Analyser()) == Analyser()
    for wrong, reason in (("klingon", "no analyser 'klingon'; it is one of plain, "), (3, "not int")):
        with pytest.raises(InvalidInput, match=reason):
            Analyser.of(wrong)  # type: ignore[arg-type]

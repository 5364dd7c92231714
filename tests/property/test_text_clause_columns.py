"""The clauses of many texts at once are those of the parser, text by text, and so are the mistakes."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.errors import ExpressionError
from nearcast.limits import LIMITS
from nearcast.text import clause_columns
from nearcast.text.analyser import Analyser
from nearcast.text.clause_columns import FEW, read_clauses
from nearcast.text.clauses import Clause, clauses
from nearcast.text.derived.atoms import phrase_atom
from nearcast.text.expression import parse

MAX_CHARACTERS, MAX_DEPTH = LIMITS.expression_characters, LIMITS.expression_depth
MAX_CLAUSES = LIMITS.expression_alternatives

EXAMPLES = settings(max_examples=200, deadline=None)
PLAIN = Analyser()
FOLDED = Analyser(fold_accents=True, stop_words="en", stem="english")

# The pools are tiny, so that tokens repeat within a text, absorb each other and contradict each other.
WORDS = ["a", "b", "B", "c-d", "a-b-a", "é", "e", "#t", "-a", "-c-d", "ab*", '"a b"', '-"b a"', "{n >= 1}"]
WORDS += [" OR ".join("abdefghij"), f"({' OR '.join('abdefghij')})"]  # a group
MISTAKES = [
    "!",
    "and",
    "Or",
    "not",
    "-",
    "-the",
    "a:b",
    "ab*",
    "!a",
    "||",
    "the",
    '"',
    '""',
    '"a b"',
    "\\",
    "AND",
    ")",
    "{",
    "}",
    "{a = 1}",
    "a*",
]
SPACES = [" ", "  ", "\n", "\t", "\x1c", "\x85", "\xa0", "\u2003", "\u3000", "", ""]
good = st.recursive(
    st.sampled_from(WORDS),
    lambda parts: (
        st.tuples(parts, st.sampled_from([" ", " AND ", " OR "]), parts).map("".join)
        | parts.map("NOT {}".format)
        | parts.map("({})".format)
    ),
    max_leaves=8,
)
pieces = st.sampled_from([*WORDS, *MISTAKES, "AND", "OR", "NOT", "(", ")", "漢字か", "x\u0301", "\u200b"])
any_text = st.lists(st.tuples(pieces, st.sampled_from(SPACES)), max_size=9).map(
    lambda parts: "".join(text for part in parts for text in part)
)


def agrees_with_the_parser(texts: list[str], analyser: Analyser, few: int = 0) -> None:
    read = read_clauses(pa.array(texts, pa.string()), analyser, few)
    assert len(read.starts) == len(texts) + 1
    for i, text in enumerate(texts):
        found = [read.clause(k) for k in range(read.starts[i], read.starts[i + 1])]
        try:
            assert found == clauses(parse(text, analyser))
            assert i not in read.errors
        except ExpressionError as error:
            assert found == []
            assert str(read.errors[i]) == str(error) and read.errors[i].position == error.position


@EXAMPLES
@given(st.lists(good, max_size=6), st.sampled_from([PLAIN, FOLDED]))
def test_sound_expressions_have_the_clauses_of_the_parser(texts: list[str], analyser: Analyser) -> None:
    agrees_with_the_parser(texts, analyser)


@EXAMPLES
@given(st.lists(good | any_text, max_size=6), st.sampled_from([PLAIN, FOLDED]), st.sampled_from([0, FEW]))
def test_any_texts_are_read_or_refused_as_by_the_parser(texts: list[str], analyser: Analyser, few: int) -> None:
    agrees_with_the_parser(texts, analyser, few)


def test_texts_at_every_limit_are_read_as_by_the_parser() -> None:
    pairs = [f"(a{i} OR b{i})" for i in range(7)]
    texts = [
        " ".join(pairs[:6]),  # exactly 64 clauses
        " ".join(pairs),
        " OR ".join(f"w{i}" for i in range(MAX_CLAUSES + 1)),
        "NOT " * MAX_DEPTH + "a",
        "NOT " * MAX_DEPTH + "c-d",  # two tokens: the pattern is one level deeper than the text
        "NOT " * (MAX_DEPTH + 1) + "a",
        "(" * MAX_DEPTH + "c-d" + ")" * MAX_DEPTH,
        "a " * (MAX_CHARACTERS // 2),
        "a " * (MAX_CHARACTERS // 2) + "b",
        "é" * (MAX_CHARACTERS // 2) + "e",  # too many bytes, not too many characters
        " ".join(f"w{i}" for i in range(12_000)),  # the numbers of the pattern are longer than the words
        "-".join("abc" for _ in range(2_000)),
        "",
        " \n ",
        "OR",
        "a AND NOT a",  # never holds
    ]
    agrees_with_the_parser(texts, PLAIN)


def test_every_white_space_divides_words_as_for_the_parser() -> None:
    spaces = [chr(point) for point in range(0x3100) if chr(point).isspace()]
    assert len(spaces) > 20
    agrees_with_the_parser([f"a{space}OR{space}b" for space in [*spaces, "\u200b", "\ufeff"]], PLAIN)


def test_no_texts_and_slices_of_a_column_are_read() -> None:
    assert read_clauses(pa.array([], pa.string()), PLAIN, few=-1).starts.tolist() == [0]
    texts = pa.array(["x", "a OR b", 'say "a b"', "("]).slice(1)
    read = read_clauses(texts, PLAIN, few=0)
    assert [read.clause(k) for k in range(read.starts[-1])] == [
        *(Clause(("a",), ()), Clause(("b",), ())),
        Clause(("say", phrase_atom(["a", "b"])), ()),
    ]
    assert list(read.errors) == [2]
    assert read_clauses(texts.cast(pa.large_string()), PLAIN, few=0).starts.tolist() == read.starts.tolist()


def test_the_parser_reads_each_pattern_once_and_each_odd_text_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = []

    def counted(text: str, analyser: Analyser) -> object:
        parsed.append(text)
        return parse(text, analyser)

    monkeypatch.setattr(clause_columns, "parse", counted)
    texts = [f"w{i} AND (w{i + 1} OR ice-{i}) NOT w{i + 2}" for i in range(50)]
    texts += [f"w{i} w{i + 1}" for i in range(50)] + ['"a b" OR c'] * 50
    agrees_with_the_parser(texts, PLAIN)
    assert sorted(parsed) == ["", '"a b" OR c', "0 1 ", "0 AND ( 1 OR ( 2 3 ) ) NOT 4 "]

from __future__ import annotations

import pytest

from nearcast.errors import ExpressionError, InvalidInput
from nearcast.text import expression as expression_module
from nearcast.text.analyser import Analyser
from nearcast.text.clauses import MAX_CLAUSES, Clause, clauses
from nearcast.text.expression import MAX_CHARACTERS, MAX_DEPTH, And, Everything, Not, Or, Token, parse

PLAIN = Analyser()
A, B, C, D = (Token(letter) for letter in "abcd")

READINGS = {
    "": Everything(),
    " \n\t ": Everything(),
    "a": A,
    " (a) ": A,
    "a b": And((A, B)),
    "a AND b": And((A, B)),
    "a AND b c": And((A, B, C)),
    "a OR b c": Or((A, And((B, C)))),
    "a b OR c": Or((And((A, B)), C)),
    "a AND b OR c AND d": Or((And((A, B)), And((C, D)))),
    "a (b OR c)": And((A, Or((B, C)))),
    "(a)(b)": And((A, B)),
    "NOT a b": And((Not(A), B)),
    "NOT (a b)": Not(And((A, B))),
    "a NOT b": And((A, Not(B))),
    "a AND NOT b OR NOT NOT c": Or((And((A, Not(B))), Not(Not(C)))),
    "NOTa ANDOR": And((Token("nota"), Token("andor"))),
    '"NOT" "and"': And((Token("not"), Token("and"))),
    '"A b" a': And((Token("a b"), A)),
    'a"b"c': And((A, B, C)),
    '"a""b"': And((A, B)),
    r'"a\"b\\c\d"': Token('a"b\\c\\d'),
    '"(a)"': Token("(a)"),
    '" "': Token(" "),
    "half-price": And((Token("half"), Token("price"))),
    "a/a": A,
    "NOT half-price": Not(And((Token("half"), Token("price")))),
    "#Tag @Bob": And((Token("#tag"), Token("@bob"))),
    "漢字だ": And((Token("漢字"), Token("字だ"))),
    "a\u3000OR\u00a0b": Or((A, B)),
    "don't -a": And((Token("don't"), Not(A))),
    "a -half-price OR NOT -b": Or((And((A, Not(And((Token("half"), Token("price")))))), Not(Not(B)))),
    "-a(b)": And((Not(A), B)),
    "a- 10:30 :b:": And((A, And((Token("10"), Token("30"))), B)),
    "andor And-a": And((Token("andor"), And((Token("and"), A)))),
    '"and" "b*" "a:b"': And((Token("and"), Token("b*"), Token("a:b"))),
}


@pytest.mark.parametrize("text", READINGS)
def test_expressions_are_parsed(text: str) -> None:
    assert parse(text, PLAIN) == READINGS[text]
    assert parse(str(READINGS[text]), PLAIN).holds({"a", "c"}) == READINGS[text].holds({"a", "c"})


FAULTS = {
    "(": (0, "never closed"),
    "a (b": (2, "never closed"),
    "((a) b": (0, "never closed"),
    "a (": (2, "never closed"),
    "a)": (1, "without an opening"),
    ")": (0, "without an opening"),
    "()": (0, "between the parentheses"),
    "a ( )": (2, "between the parentheses"),
    'a "b': (2, "quote that is never closed"),
    '"': (0, "quote that is never closed"),
    'a "b\\"  ': (2, "quote that is never closed"),
    'a ""': (2, "between the quotes"),
    '"\u00ad"': (0, "between the quotes"),
    "AND a": (0, "AND with nothing before"),
    "a OR": (2, "OR with nothing after"),
    "OR": (0, "OR with nothing before"),
    "NOT": (0, "NOT with nothing after"),
    "a AND OR b": (2, "AND with nothing after"),
    "a (OR b)": (3, "OR with nothing before"),
    "(a AND)": (3, "AND with nothing after"),
    "a OR NOT": (5, "NOT with nothing after"),
    "a !?": (2, "'!?' holds no token"),
    "a -": (2, "write NOT"),
    "a -!": (2, "'-!' holds no token"),
    "a and b": (2, 'write AND, or "and" in quotes for the word'),
    "not a": (0, "write NOT"),
    "a (b Or c)": (5, 'write OR, or "Or" in quotes'),
    "a && b": (2, "write AND"),
    "a || b": (2, "write OR"),
    "a !b": (2, "write NOT b, or -b"),
    "city:paris": (0, "write city paris"),
    "a OR incid*": (5, "prefix"),
    "a (b OR --)": (8, "'--' holds no token"),
}


@pytest.mark.parametrize("text", FAULTS)
def test_an_error_points_at_the_wrong_character(text: str) -> None:
    position, reason = FAULTS[text]
    with pytest.raises(ExpressionError, match=reason.replace("?", r"\?")) as caught:
        parse(text, PLAIN)
    assert caught.value.position == position
    assert caught.value.expression == text
    assert isinstance(caught.value, InvalidInput)


def test_stop_words_are_refused_but_not_in_quotes() -> None:
    analyser = Analyser(stop_words="en", stem="english")
    with pytest.raises(ExpressionError, match="'the' holds no token") as caught:
        parse("pizza the", analyser)
    assert caught.value.position == 6
    assert parse('"The" running', analyser) == And((Token("the"), Token("run")))
    assert parse("on-sale", analyser) == Token("sale")


def test_the_cache_of_words_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expression_module, "MEMO_SIZE", 2)
    parser = expression_module.Parser(PLAIN)
    for _ in range(2):
        for word in ("a", "b", "c", "d e", "a b c"):
            assert parser.parse(word) == parse(word, PLAIN)
    assert len(parser._words) <= 2


def test_nesting_has_a_limit_and_a_clear_error() -> None:
    depth = MAX_DEPTH
    assert parse("(" * depth + "a" + ")" * depth, PLAIN) == A
    assert clauses(parse("NOT " * depth + "a", PLAIN)) == [Clause(("a",), ())]
    for text in ("(" * 5000, "NOT " * 5000 + "a", "(NOT " * 5000 + "a"):
        with pytest.raises(ExpressionError, match="within each other"):
            parse(text, PLAIN)


def test_the_deepest_expression_allowed_can_be_used() -> None:
    text = "a"
    for i in range(MAX_DEPTH // 2):
        text = f"NOT (x{i} OR y{i} {text})"
    node = parse(text, PLAIN)
    assert clauses(parse(str(node), PLAIN), limit=4096) == clauses(node, limit=4096)


def test_too_long_a_text_is_refused() -> None:
    with pytest.raises(ExpressionError, match="100,000 characters"):
        parse("a " * MAX_CHARACTERS, PLAIN)


CLAUSES = {
    "": [((), ())],
    "a": [(("a",), ())],
    "b a b": [(("a", "b"), ())],
    "NOT a": [((), ("a",))],
    "a NOT a": [],
    "NOT (a OR NOT a)": [],
    "a OR b": [(("a",), ()), (("b",), ())],
    "a OR a b": [(("a",), ())],
    "a OR a": [(("a",), ())],
    "(a OR b) (a OR c)": [(("a",), ()), (("b", "c"), ())],
    "NOT (a b)": [((), ("a",)), ((), ("b",))],
    "NOT (a OR b)": [((), ("a", "b"))],
    "a AND (b OR c) NOT d": [(("a", "b"), ("d",)), (("a", "c"), ("d",))],
    "(a OR NOT b) b": [(("a", "b"), ())],
    "(a NOT a) OR b": [(("b",), ())],
    "(a NOT a) (b OR c)": [],
}


@pytest.mark.parametrize("text", CLAUSES)
def test_clauses_of(text: str) -> None:
    assert clauses(parse(text, PLAIN)) == [Clause(*sides) for sides in CLAUSES[text]]


def test_the_limit_counts_clauses_after_removing_redundant_ones() -> None:
    exactly = " OR ".join(f"w{i}" for i in range(MAX_CLAUSES))
    assert len(clauses(parse(exactly, PLAIN))) == MAX_CLAUSES
    absorbed = exactly + "".join(f" OR w{i} w{i + 1}" for i in range(MAX_CLAUSES - 1))
    assert len(clauses(parse(absorbed, PLAIN))) == MAX_CLAUSES
    same = " AND ".join([f"({exactly})"] * 20)
    assert len(clauses(parse(same, PLAIN))) == MAX_CLAUSES
    assert len(clauses(parse("(a OR b) (c OR d)", PLAIN), limit=4)) == 4
    with pytest.raises(ExpressionError, match="more than 3 alternatives"):
        clauses(parse("(a OR b) (c OR d)", PLAIN), limit=3)


HOSTILE = {
    "a product of pairs": " ".join(f"(a{i} OR b{i})" for i in range(4000)),
    "a negated sum of pairs": "NOT (" + " OR ".join(f"a{i} b{i}" for i in range(4000)) + ")",
    "a long sum": " OR ".join(f"w{i}" for i in range(10_000)),
    "a product of sums": " ".join(f"({' OR '.join(f'w{i}' for i in range(k, k + 60))})" for k in range(150)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_an_expression_that_would_explode_is_refused_at_once(name: str) -> None:
    with pytest.raises(ExpressionError, match="more than 64 alternatives"):
        clauses(parse(HOSTILE[name], PLAIN))


def test_and_between_plain_words_makes_no_difference_where_it_is_in_place() -> None:
    analyser = Analyser()
    assert parse("one AND two  AND\tthree four", analyser) == parse("one two three four", analyser)
    for wrong in ("AND one", "one AND", "one AND AND two", "one AND OR two"):
        with pytest.raises(ExpressionError):
            parse(wrong, analyser)


@pytest.mark.parametrize(
    "text",
    ["fire AND road", "fire road", " fire\tAND\nroad ", "fire road AND snow", "fire", "a b AND c d", "fire AND  road"],
)
def test_words_that_were_parsed_before_give_the_same_expression(text: str) -> None:
    fresh, known = Analyser(fold_accents=False), Analyser()
    words = [word for word in text.split() if word != "AND"]
    for word in words:
        parse(word, known)
    assert parse(text, known) == parse(text, fresh)
    assert clauses(parse(text, known)) == [Clause(tuple(sorted(words)), ())]


@pytest.mark.parametrize(
    "text", ["AND fire", "fire AND", "fire AND AND road", "fire OR", "NOT", "AND", "fire AND OR road", "fire AND (road"]
)
def test_mistakes_between_words_that_were_parsed_before_are_found(text: str) -> None:
    parse("fire road", Analyser())
    with pytest.raises(ExpressionError):
        parse(text, Analyser())


def test_blanks_alone_are_no_words() -> None:
    assert isinstance(parse(" \n ", Analyser()), Everything)

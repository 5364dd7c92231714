from __future__ import annotations

import pytest

from nearcast.errors import ExpressionError, InvalidInput
from nearcast.limits import LIMITS
from nearcast.text import expression as expression_module
from nearcast.text.analyser import Analyser
from nearcast.text.clauses import Clause, clauses
from nearcast.text.derived.atoms import GROUP, group_atom, group_members, shown
from nearcast.text.expression import (
    And,
    Everything,
    Expression,
    Not,
    Or,
    Phrase,
    Prefix,
    Token,
    Where,
    parse,
)
from nearcast.text.filters.condition import Condition, Operand

MAX_CHARACTERS, MAX_DEPTH = LIMITS.expression_characters, LIMITS.expression_depth
MAX_CLAUSES = LIMITS.expression_alternatives
PLAIN = Analyser()
A, B, C, D = (Token(letter) for letter in "abcd")


def _where(column: str, operator: str, *operands: str) -> Where:
    return Where(Condition(column, operator, tuple(map(Operand, operands))))


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
    '"A b" a': And((Phrase(("a", "b")), A)),
    'a"b"c': And((A, B, C)),
    '"a""b"': And((A, B)),
    r'"a\"b\\c\d"': Phrase(("a", "b", "c", "d")),
    r'"\"\\c"': Token('"\\c'),
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
    '"Hot  DOG,"': Phrase(("hot", "dog")),
    '"half-price"': Phrase(("half", "price")),
    '"a a" -"b c" NOT"c d"': And((Phrase(("a", "a")), Not(Phrase(("b", "c"))), Not(Phrase(("c", "d"))))),
    '-"a"': Not(A),
    'a- "b"': And((A, B)),
    '"東京タワー"': Phrase(("東京", "京タ", "タワ", "ワー")),
    '"pizza !!"': Token("pizza"),
    "Incid* -#Pi* OR (ÉCo*)": Or((And((Prefix("incid"), Not(Prefix("#pi")))), Prefix("éco"))),
    "東京*": Prefix("東京"),
    "a {severity >= 3}": And((A, _where("severity", ">=", "3"))),
    "{a=1,b!= x  y ,c in(1,'2')}b": And(
        (
            And(
                (
                    _where("a", "=", "1"),
                    _where("b", "!=", "x y"),
                    Where(Condition("c", "in", (Operand("1"), Operand("2", True)))),
                )
            ),
            B,
        )
    ),
    "NOT {a < 1, b > 2}": Not(And((_where("a", "<", "1"), _where("b", ">", "2")))),
    "{a Not IN (1, 1, x y)} OR {b <= 2026-01-31T12:00:00Z}": Or(
        (_where("a", "not in", "1", "x y"), _where("b", "<=", "2026-01-31T12:00:00Z"))
    ),
    """{"my column" = "a, {b}\\"", _x.y = it}""": And(
        (Where(Condition("my column", "=", (Operand('a, {b}"', True),))), _where("_x.y", "=", "it"))
    ),
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
    "a OR i*": (5, "at least 2 letters"),
    "in*cid": (0, "no prefix"),
    "a **bold**": (2, "no prefix"),
    "incid**": (0, "no prefix"),
    "-*": (0, "no prefix"),
    "half-pri*": (0, "one word"),
    "the* half*price": (5, "no prefix"),
    'a "hot do*"': (2, "a prefix within a phrase"),
    'a "?! !"': (2, "no letter and no number"),
    '"\uffff"': (0, "U\\+FFFF"),
    f'"{"a " * 64}"': (0, "more than 63 words"),
    'a -"b': (3, "quote that is never closed"),
    "a {b = 1": (2, "brace that is never closed"),
    "a } b": (2, "closing brace"),
    "{}": (0, "nothing between the braces"),
    "{ }": (0, "nothing between the braces"),
    "{a}": (2, "compared with nothing: write a = value"),
    "{a = }": (5, "a value is missing"),
    "{a = 1 b = 2}": (9, "divided by commas"),
    "{a = 1 AND b = 2}": (5, "divided by commas; for OR write two filters"),
    "{a == 1}": (3, "write =,"),
    "{a <> 1}": (3, "write !=,"),
    "{3 < a}": (1, "begins with the name of a column"),
    "{not a = 3}": (1, "NOT stands before the braces"),
    "{a in 3}": (6, "`in` takes a list"),
    "{a in (3}": (8, "list that is never closed"),
    "{a in ()}": (7, "a value is missing"),
    "{a = null}": (5, "a null never matches"),
    "{a = 2026-02-30}": (5, "no time 2026-02-30"),
    "b {text = c}": (3, "'text' is no attribute"),
    "{a = b!c}": (6, "a character that no filter has"),
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
    assert parse('"state of the arts"', analyser) == Phrase(("state", "art"))
    assert parse('"the pizzas"', analyser) == Token("pizza")
    with pytest.raises(ExpressionError, match="only stop words"):
        parse('"of the"', analyser)
    assert parse("the*", analyser) == Prefix("the")  # no token begins so but longer ones
    assert parse("running* runn*", analyser) == And((Prefix("run"), Prefix("runn")))
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


ROAD = {"severity": 3, "kind": "road", "open": True, "since": "2026-03-01", "price": 2.5, "gone": None}
HOLDING = {
    "severity": ("= 3", ">= 3", "<= 3.0", "in (1, 3)", "!= 4", "not in (1, 2)", "> 2.99", '= "3"', "!= road", "< 1e3"),
    "kind": ("= road", '= "road"', "in (rail, road)", "!= Road", "> rail", ">= road", "not in (rail)"),
    "open": ("= true", "!= false", "in (True)", "= 'TRUE'"),
    "since": ("= 2026-03-01", "< 2026-03-01T00:00:01Z", ">= 2026-02-28", "= 2026-03-01T01:00+01:00", "!= 2026-03-02"),
    "price": ("> 2", "< 3", "= 2.50", "!= 2"),
}
FAILING = {
    "severity": ("= 4", "< 3", "> 3", "in (1, 2)", "!= 3", "= road", "> road", "< true", "= true"),
    "kind": ("= Road", "< 3", "> 3", "= true", "> 2026-01-01", "in (rail, sea)"),
    "open": ("= 1", "> false", "!= true", "= false"),
    "since": ("> 2026-03-01", "= 2026", '= "2026-3-1"', "< 3"),
    "price": ("= 2", "> 2.5"),
    "gone": ("= null2", "!= 1", "not in (1)"),
    "never": ("= 1", "!= 1", "not in (1)", "< 1"),
}


def test_filters_compare_by_the_value_of_the_message() -> None:
    for expected, table in ((True, HOLDING), (False, FAILING)):
        for column, conditions in table.items():
            for condition in conditions:
                expression = parse(f"{{{column} {condition}}}", PLAIN)
                assert expression.holds((), ROAD) is expected, condition
                assert parse(str(expression), PLAIN) == expression
                assert [clause.holds((), ROAD) for clause in clauses(expression)] == [expected]


def _holds(text: str, tokens: list[str]) -> bool:
    expression: Expression = parse(text, PLAIN)
    return expression.holds(tokens)


def test_a_phrase_is_tokens_that_follow_each_other() -> None:
    assert _holds('"new york"', ["in", "new", "york"])
    assert _holds('"new york"', ["new", "new", "york"])
    assert not _holds('"new york"', ["york", "new"])
    assert not _holds('"new york"', ["new", "in", "york"])
    assert _holds('"a a b"', ["a", "a", "a", "b"]) and not _holds('"a a b"', ["a", "b", "a"])
    assert _holds('NOT "a b"', ["b", "a"]) and not _holds('-"a b"', ["a", "b"])
    assert _holds("incid*", ["x", "incidental"]) and _holds("incid*", ["incid"]) and not _holds("incid*", ["inci"])


def test_the_limit_counts_clauses_after_removing_redundant_ones() -> None:
    exactly = " OR ".join(f"w{i} x{i}" for i in range(MAX_CLAUSES))
    assert len(clauses(parse(exactly, PLAIN))) == MAX_CLAUSES
    absorbed = exactly + "".join(f" OR w{i} x{i} w{i + 1}" for i in range(MAX_CLAUSES - 1))
    assert len(clauses(parse(absorbed, PLAIN))) == MAX_CLAUSES
    same = " AND ".join([f"({exactly})"] * 20)
    assert len(clauses(parse(same, PLAIN))) == MAX_CLAUSES
    assert len(clauses(parse("(a OR b) (c OR d)", PLAIN), limit=4)) == 4
    with pytest.raises(ExpressionError, match="more than 3 alternatives"):
        clauses(parse("(a OR b c) (d OR e f)", PLAIN), limit=3)


def test_a_long_or_of_words_is_one_atom() -> None:
    streets = [f"s{i}" for i in range(500)]
    group = group_atom(streets)
    assert group_members(group) == sorted(streets)
    assert clauses(parse(" OR ".join(streets), PLAIN)) == [Clause((group,), ())]
    assert clauses(parse(f"a ({' OR '.join(streets)})", PLAIN)) == [Clause(("a", group), ())]
    assert clauses(parse(f"a NOT ({' OR '.join(streets)})", PLAIN)) == [Clause(("a",), (group,))]
    nested = f"(({' OR '.join(streets[:250])}) OR ({' OR '.join(streets[250:])}))"
    assert clauses(parse(nested, PLAIN)) == [Clause((group,), ())]
    with_parts = f"{' OR '.join(streets)} OR a b OR s1 c"
    assert clauses(parse(with_parts, PLAIN)) == [Clause(("a", "b"), ()), Clause((group,), ())]
    mixed = clauses(parse(f'{" OR ".join(streets[:8])} OR "main street" OR fir*', PLAIN))
    assert [shown(atom) for atom in mixed[0].required] == ["any of s0, s1, s2, s3, s4, … (10 in all)"]
    assert len(mixed) == 1 and mixed[0].holds(["the", "main", "street"]) and mixed[0].holds({"first"})
    assert not mixed[0].holds(["street", "main"])


def test_few_words_become_a_group_only_where_clauses_would_be_too_many() -> None:
    pairs = [f"(a{i} OR b{i})" for i in range(7)]
    assert len(clauses(parse(" ".join(pairs[:6]), PLAIN))) == MAX_CLAUSES
    (clause,) = clauses(parse(" ".join(pairs), PLAIN))
    assert all(atom.startswith(GROUP) for atom in clause.required) and len(clause.required) == 7


HOSTILE = {
    "a product of sums of pairs": " ".join(f"(a{i} c OR b{i} d)" for i in range(4000)),
    "a negated sum of pairs": "NOT (" + " OR ".join(f"a{i} b{i}" for i in range(4000)) + ")",
    "a long sum": " OR ".join(f"w{i} {i}" for i in range(6_000)),
    "a sum of filters": " OR ".join(f"{{a = {i}}}" for i in range(65)),
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

"""Clauses hold exactly when the expression does, and an expression survives being written out and read again."""

from __future__ import annotations

from itertools import combinations, permutations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nearcast.errors import ExpressionError
from nearcast.text.analyser import Analyser
from nearcast.text.clauses import _Expansion, clauses
from nearcast.text.derived.atoms import MARK
from nearcast.text.expression import And, Expression, Not, Or, Phrase, Prefix, Token, Where, parse
from nearcast.text.filters.condition import Condition, Operand

EXAMPLES = settings(max_examples=300, deadline=None)
PLAIN = Analyser()
TOKENS = ("aa", "ab", "and", '"\\y', "(")
EVERY_SET = [list(chosen) for n in range(4) for chosen in permutations(TOKENS, n)] + [["aa", "aa", "ab"], [*TOKENS]]
EVERY_MESSAGE = [(tokens, {"n": n % 3, "s": TOKENS[n % 5]}) for n, tokens in enumerate(EVERY_SET)]
ATOMS = [
    *map(Token, TOKENS),
    *(Phrase(("aa", "ab")), Phrase(("aa", "aa")), Phrase(("aa", "and", "ab")), Prefix("aa"), Prefix("an")),
    *(Where(Condition("n", operator, (Operand("1"),))) for operator in ("=", "<", ">=", "!=")),
    Where(Condition("s", "in", (Operand("aa"), Operand("(", True)))),
]


def _larger(parts: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    several = st.lists(parts, min_size=2, max_size=4).map(tuple)
    return st.builds(Not, parts) | st.builds(And, several) | st.builds(Or, several)


expressions = st.recursive(st.sampled_from(ATOMS), _larger, max_leaves=10)


@EXAMPLES
@given(expressions)
def test_clauses_hold_exactly_when_the_expression_does(expression: Expression) -> None:
    found = clauses(expression, limit=1000)
    grouped = _Expansion(expression, 1000, 1).clauses()  # every OR of words is a group
    for tokens, attributes in EVERY_MESSAGE:
        expected = expression.holds(tokens, attributes)
        assert any(clause.holds(tokens, attributes) for clause in found) == expected
        assert any(clause.holds(tokens, attributes) for clause in grouped) == expected


@EXAMPLES
@given(expressions)
def test_clauses_are_sorted_and_none_is_idle(expression: Expression) -> None:
    found = clauses(expression, limit=1000)
    assert found == sorted(set(found))
    for clause in found:
        assert not set(clause.required) & set(clause.forbidden)
        assert clause.required == tuple(sorted(set(clause.required)))
    for one, other in combinations(found, 2):
        sides = [{(t, 0) for t in clause.required} | {(t, 1) for t in clause.forbidden} for clause in (one, other)]
        assert not sides[0] <= sides[1] and not sides[1] <= sides[0]


@EXAMPLES
@given(expressions)
def test_an_expression_written_out_reads_the_same(expression: Expression) -> None:
    again = parse(str(expression), PLAIN)
    assert [again.holds(*message) for message in EVERY_MESSAGE] == [expression.holds(*each) for each in EVERY_MESSAGE]


pieces = st.sampled_from(
    [
        "{",
        "}",
        "{a<1}",
        "ab*",
        "*",
        "-",
        '-"b c"',
        "a",
        "B",
        "c-d",
        "AND",
        "OR",
        "NOT",
        "(",
        ")",
        '"',
        '"a b"',
        "\\",
        "#t",
        "!",
        "é",
        "\n",
    ]
)


@EXAMPLES
@given(st.lists(pieces, max_size=10), st.sampled_from(["", " "]))
def test_any_text_is_read_or_refused_at_one_of_its_characters(parts: list[str], between: str) -> None:
    text = between.join(parts)
    try:
        expression = parse(text, PLAIN)
    except ExpressionError as error:
        assert 0 <= error.position < len(text)
        assert not text[error.position].isspace()
    else:
        assert clauses(parse(str(expression), PLAIN)) == clauses(expression)


@EXAMPLES
@given(st.text(min_size=1, max_size=8))
def test_a_quoted_literal_is_one_token(literal: str) -> None:
    token = PLAIN.normalise(literal)
    assume(token and len(literal.split()) < 2 and len(PLAIN.tokens(literal)) < 2 and MARK not in literal)
    assert parse(str(Token(literal)), PLAIN) == Token(token)
    assert parse(f"a NOT {Token(literal)}", PLAIN) == And((Token("a"), Not(Token(token))))

"""Clauses hold exactly when the expression does, and an expression survives being written out and read again."""

from __future__ import annotations

from itertools import combinations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nearcast.errors import ExpressionError
from nearcast.text.analyser import Analyser
from nearcast.text.clauses import clauses
from nearcast.text.expression import And, Expression, Not, Or, Token, parse

EXAMPLES = settings(max_examples=300, deadline=None)
PLAIN = Analyser()
TOKENS = ("a", "b", "and", 'x "\\y', "(")
EVERY_SET = [frozenset(chosen) for n in range(len(TOKENS) + 1) for chosen in combinations(TOKENS, n)]


def _larger(parts: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    several = st.lists(parts, min_size=2, max_size=4).map(tuple)
    return st.builds(Not, parts) | st.builds(And, several) | st.builds(Or, several)


expressions = st.recursive(st.sampled_from(TOKENS).map(Token), _larger, max_leaves=10)


@EXAMPLES
@given(expressions)
def test_clauses_hold_exactly_when_the_expression_does(expression: Expression) -> None:
    found = clauses(expression, limit=1000)
    for tokens in EVERY_SET:
        assert any(clause.holds(tokens) for clause in found) == expression.holds(tokens)


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
    assert [again.holds(tokens) for tokens in EVERY_SET] == [expression.holds(tokens) for tokens in EVERY_SET]


pieces = st.sampled_from(["a", "B", "c-d", "AND", "OR", "NOT", "(", ")", '"', '"a b"', "\\", "#t", "!", "é", "\n"])


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
    assume(token)
    assert parse(str(Token(literal)), PLAIN) == Token(token)
    assert parse(f"a NOT {Token(literal)}", PLAIN) == And((Token("a"), Not(Token(token))))

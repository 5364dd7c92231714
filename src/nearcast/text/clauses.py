"""Expressions in disjunctive normal form: clauses, of which one must hold.

While expanding, a clause is a set of bits in one integer: for the i-th token of the expression, bit 2i says
that it is required and bit 2i + 1 that it is forbidden. Absorption (a clause holds whenever a larger one
does) is then one AND.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import NamedTuple

from nearcast.errors import ExpressionError
from nearcast.text.expression import And, Everything, Expression, Not, Or, Token

MAX_CLAUSES = 64


class Clause(NamedTuple):
    """Holds when all of `required` and none of `forbidden` occur. Both are sorted."""

    required: tuple[str, ...]
    forbidden: tuple[str, ...]

    def holds(self, tokens: Set[str]) -> bool:
        return all(token in tokens for token in self.required) and tokens.isdisjoint(self.forbidden)


def clauses(expression: Expression, limit: int = MAX_CLAUSES) -> list[Clause]:
    """The expression as clauses, sorted: none contradicts itself, none is implied by another. Empty: never holds.

    More than `limit` clauses, at the end or on the way, raise an ExpressionError.
    """
    if isinstance(expression, Everything):
        return [Clause((), ())]
    if (simple := _simple(expression)) is not None:
        return [simple]
    expansion = _Expansion(expression, limit)
    return sorted(expansion.clause(bits) for bits in expansion.expand(expression, False))


def _simple(expression: Expression) -> Clause | None:
    """The one clause of a token or of an AND of tokens, which most subscriptions are: twice as fast."""
    parts = expression.parts if isinstance(expression, And) else (expression,)
    if not all(isinstance(part, Token) for part in parts):
        return None
    return Clause(tuple(sorted({part.token for part in parts if isinstance(part, Token)})), ())


class _Expansion:
    def __init__(self, expression: Expression, limit: int) -> None:
        self.expression = expression
        self.limit = limit
        self.places: dict[str, int] = {}  # of a token: twice its number

    def clause(self, bits: int) -> Clause:
        tokens = list(self.places)
        sides: tuple[list[str], list[str]] = ([], [])
        for place, digit in enumerate(bin(bits)[:1:-1]):
            if digit == "1":
                sides[place & 1].append(tokens[place >> 1])
        return Clause(tuple(sorted(sides[0])), tuple(sorted(sides[1])))

    def expand(self, node: Expression, negated: bool) -> list[int]:
        """The clauses of `node`, or of its negation: De Morgan turns one into the other on the way down."""
        if isinstance(node, Token):
            place = self.places.setdefault(node.token, 2 * len(self.places))
            return [(2 if negated else 1) << place]
        if isinstance(node, Not):
            return self.expand(node.part, not negated)
        if isinstance(node, Everything):
            return [] if negated else [0]
        assert isinstance(node, (And, Or))
        expanded = (self.expand(part, negated) for part in node.parts)
        return self.product(expanded) if isinstance(node, And) != negated else self.union(expanded)

    def union(self, parts: Iterable[list[int]]) -> list[int]:
        together: set[int] = set()
        for part in parts:
            together.update(part)
            if len(together) > self.limit:
                together = set(self.smallest(together))
        return self.smallest(together)

    def product(self, parts: Iterable[list[int]]) -> list[int]:
        """What is only one clause is put together first: it is most of what people write, and costs one OR each."""
        single, several = 0, []
        for part in parts:
            if len(part) == 1:
                single |= part[0]
            else:
                several.append(part)
        out = self.consistent({single})
        for part in several:
            out = self.pairs(out, part)
        return out

    def pairs(self, left: list[int], right: list[int]) -> list[int]:
        """A clause that already implies one of the other side stays as it is; the rest are paired. At most
        limit² pairs.
        """
        done = {a for a in left if any(a & b == b for b in right)}
        return self.smallest({*done, *self.consistent({a | b for a in left if a not in done for b in right})})

    def consistent(self, together: set[int]) -> list[int]:
        """Without clauses that require and forbid the same token."""
        requires = (4 ** len(self.places) - 1) // 3  # the even bits
        return [bits for bits in together if not bits & bits >> 1 & requires]

    def smallest(self, together: set[int]) -> list[int]:
        """Without absorbed clauses. Small ones first: what is kept is then never absorbed later, and the
        limit holds at once.
        """
        if len(together) < 2:
            return list(together)
        kept: list[int] = []
        for bits in sorted(together, key=lambda bits: (bits.bit_count(), bits)):
            if not any(small & bits == small for small in kept):
                kept.append(bits)
                if len(kept) > self.limit:
                    raise self.error()
        return kept

    def error(self) -> ExpressionError:
        reason = f"more than {self.limit} alternatives once written out; split it into several subscriptions,"
        return ExpressionError(reason, str(self.expression), 0)

"""Expressions in disjunctive normal form: a list of clauses, at least one of which must hold.

During expansion a clause is a bit set in one integer: bit 2i is set if the i-th token of the expression is required,
bit 2i + 1 if it is forbidden. One AND then tests absorption: a clause that contains all bits of another is redundant.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.errors import ExpressionError
from nearcast.text.expression import And, Everything, Expression, Not, Or, Token

MAX_CLAUSES = 64


class Clause(NamedTuple):
    """Holds for a message with all tokens of `required` and none of `forbidden`. Both are sorted."""

    required: tuple[str, ...]
    forbidden: tuple[str, ...]

    def holds(self, tokens: Set[str]) -> bool:
        return all(token in tokens for token in self.required) and tokens.isdisjoint(self.forbidden)


class ClauseColumns(NamedTuple):
    """The clauses of many texts, in the order of `clauses`. A token is its position in `tokens`."""

    starts: np.ndarray  # int64[n+1]  the clauses of text i are those from starts[i] to starts[i+1]
    required: np.ndarray  # int32[...]  sorted within a clause
    required_starts: np.ndarray  # int64[n_clauses+1]
    forbidden: np.ndarray  # int32[...]  sorted within a clause
    forbidden_starts: np.ndarray  # int64[n_clauses+1]
    tokens: pa.Array  # distinct and sorted
    errors: dict[int, ExpressionError]  # by text; these have no clauses

    def clause(self, number: int) -> Clause:
        """The clause of this number."""
        sides = ((self.required, self.required_starts), (self.forbidden, self.forbidden_starts))
        parts = (values[starts[number] : starts[number + 1]] for values, starts in sides)
        return Clause(*(tuple(self.tokens.take(pa.array(part)).to_pylist()) for part in parts))


NO_CLAUSES = ClauseColumns(
    *(np.zeros(1, np.int64), np.empty(0, np.int32)) * 2, np.zeros(1, np.int64), pa.array([], pa.string()), {}
)


def clauses(expression: Expression, limit: int = MAX_CLAUSES) -> list[Clause]:
    """The clauses of an expression, sorted. No clause contradicts itself or is redundant; no clauses: never holds.

    Raises an ExpressionError if the result, or an intermediate result, has more than `limit` clauses.
    """
    if isinstance(expression, Everything):
        return [Clause((), ())]
    if (simple := _simple(expression)) is not None:
        return [simple]
    expansion = _Expansion(expression, limit)
    return sorted(expansion.clause(bits) for bits in expansion.expand(expression, False))


def _simple(expression: Expression) -> Clause | None:
    """The clause of a token or of an AND of tokens, else None. Most subscriptions are such: this is twice as fast."""
    parts = expression.parts if isinstance(expression, And) else (expression,)
    tokens = [part.token for part in parts if isinstance(part, Token)]
    return Clause(tuple(sorted(set(tokens))), ()) if len(tokens) == len(parts) else None


class _Expansion:
    """Expands one expression into clauses, as bit sets."""

    def __init__(self, expression: Expression, limit: int) -> None:
        self.expression = expression
        self.limit = limit
        self.bit_positions: dict[str, int] = {}  # token -> bit of "required"; "forbidden" is the next bit

    def clause(self, bits: int) -> Clause:
        """The clause of a bit set."""
        tokens = list(self.bit_positions)
        sides: tuple[list[str], list[str]] = ([], [])
        for bit, digit in enumerate(bin(bits)[:1:-1]):
            if digit == "1":
                sides[bit & 1].append(tokens[bit >> 1])
        return Clause(tuple(sorted(sides[0])), tuple(sorted(sides[1])))

    def expand(self, node: Expression, negated: bool) -> list[int]:
        """The clauses of `node`, or of its negation if `negated`, by De Morgan's laws."""
        if isinstance(node, Token):
            bit = self.bit_positions.setdefault(node.token, 2 * len(self.bit_positions))
            return [(2 if negated else 1) << bit]
        if isinstance(node, Not):
            return self.expand(node.part, not negated)
        if isinstance(node, Everything):
            return [] if negated else [0]
        assert isinstance(node, (And, Or))
        expanded = (self.expand(part, negated) for part in node.parts)
        return self.product(expanded) if isinstance(node, And) != negated else self.union(expanded)

    def union(self, parts: Iterable[list[int]]) -> list[int]:
        """The clauses of an OR of the parts."""
        united: set[int] = set()
        for part in parts:
            united.update(part)
            if len(united) > self.limit:
                united = set(self.without_redundant(united))
        return self.without_redundant(united)

    def product(self, parts: Iterable[list[int]]) -> list[int]:
        """The clauses of an AND of the parts. Parts of one clause, which are most, come first: each costs one OR."""
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
        """The clauses of an AND of two parts: at most limit² pairs. A left clause that implies a right one is kept."""
        done = {a for a in left if any(a & b == b for b in right)}
        paired = self.consistent({a | b for a in left if a not in done for b in right})
        return self.without_redundant({*done, *paired})

    def consistent(self, found: set[int]) -> list[int]:
        """The clauses that do not both require and forbid a token."""
        even_bits = (4 ** len(self.bit_positions) - 1) // 3
        return [bits for bits in found if not bits & bits >> 1 & even_bits]

    def without_redundant(self, found: set[int]) -> list[int]:
        """The clauses that contain no other clause. Raises an error if they exceed the limit.

        Smaller clauses come first, so that a kept clause never becomes redundant and the limit can be checked early.
        """
        if len(found) < 2:
            return list(found)
        kept: list[int] = []
        for bits in sorted(found, key=lambda bits: (bits.bit_count(), bits)):
            if not any(small & bits == small for small in kept):
                kept.append(bits)
                if len(kept) > self.limit:
                    raise self.error()
        return kept

    def error(self) -> ExpressionError:
        reason = f"more than {self.limit} alternatives once written out; split it into several subscriptions,"
        return ExpressionError(reason, str(self.expression), 0)

"""Expressions in disjunctive normal form: a list of clauses, at least one of which must hold.

A clause is made of atoms (see `derived/atoms.py`): tokens, prefixes, phrases, filters, and groups. A group stands for
an OR of words that would otherwise be many clauses: a long one, or each of an expression with too many clauses.

During expansion a clause is a bit set in one integer: bit 2i is set if the i-th token of the expression is required,
bit 2i + 1 if it is forbidden. One AND then tests absorption: a clause that contains all bits of another is redundant.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.errors import ExpressionError
from nearcast.limits import LIMITS
from nearcast.text.derived.atoms import FILTER, content, group_atom, is_filter, occurs
from nearcast.text.filters.grammar import read_condition
from nearcast.text.grammar.nodes import NO_ATTRIBUTES, And, Atom, Everything, Expression, Not, Or, Where

MOST_SPREAD = 8
"""An OR of more words than this is a group. With fewer, a row for each word is found faster than a group."""


class Clause(NamedTuple):
    """Holds for a message with all atoms of `required` and none of `forbidden`. Both are sorted."""

    required: tuple[str, ...]
    forbidden: tuple[str, ...]

    def holds(self, tokens: Collection[str], attributes: Mapping[str, Any] = NO_ATTRIBUTES) -> bool:
        """Whether it holds for a message. Its tokens are in order, unless the clause has no phrase."""
        has_all = all(has_atom(atom, tokens, attributes) for atom in self.required)
        return has_all and not any(has_atom(atom, tokens, attributes) for atom in self.forbidden)


def has_atom(atom: str, tokens: Collection[str], attributes: Mapping[str, Any]) -> bool:
    """Whether a message has an atom of any sort."""
    if not is_filter(atom):
        return occurs(atom, tokens)
    condition = read_condition(content(atom))
    return condition.holds(attributes.get(condition.column))


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

    def with_filters(self) -> np.ndarray:
        """int64[k]: the texts that have a filter, ascending."""
        is_condition = pc.starts_with(self.tokens, FILTER).to_numpy(zero_copy_only=False)
        found = [
            np.repeat(np.arange(len(starts) - 1), np.diff(starts))[is_condition[values]]
            for values, starts in ((self.required, self.required_starts), (self.forbidden, self.forbidden_starts))
        ]
        return np.unique(np.searchsorted(self.starts, np.concatenate(found), "right") - 1)


NO_CLAUSES = ClauseColumns(
    *(np.zeros(1, np.int64), np.empty(0, np.int32)) * 2, np.zeros(1, np.int64), pa.array([], pa.string()), {}
)


def clauses(expression: Expression, limit: int | None = None) -> list[Clause]:
    """The clauses of an expression, sorted. No clause contradicts itself or is redundant; no clauses: never holds.

    Raises an ExpressionError if the result, or an intermediate result, has more than `limit` clauses, although each OR
    of words is one atom. Without `limit`, the setting counts.
    """
    limit = LIMITS.expression_alternatives if limit is None else limit
    if isinstance(expression, Everything):
        return [Clause((), ())]
    if (simple := _simple(expression)) is not None:
        return [simple]
    try:
        return _Expansion(expression, limit, MOST_SPREAD).clauses()
    except ExpressionError:
        return _Expansion(expression, limit, 1).clauses()


def _flat(node: Or) -> Iterable[Expression]:
    """The parts of an OR; those of an OR among them in its place."""
    for part in node.parts:
        if isinstance(part, Or):
            yield from _flat(part)
        else:
            yield part


def _simple(expression: Expression) -> Clause | None:
    """The clause of an atom or of an AND of atoms, else None. Most subscriptions are such: this is twice as fast."""
    parts = expression.parts if isinstance(expression, And) else (expression,)
    atoms = [part.atom for part in parts if isinstance(part, Atom)]
    return Clause(tuple(sorted(set(atoms))), ()) if len(atoms) == len(parts) else None


class _Expansion:
    """Expands one expression into clauses, as bit sets."""

    def __init__(self, expression: Expression, limit: int, most_spread: int) -> None:
        self.expression = expression
        self.limit = limit
        self.most_spread = most_spread  # the most words of an OR that become clauses
        self.bit_positions: dict[str, int] = {}

    def clauses(self) -> list[Clause]:
        found = self.expand(self.expression, False)
        atoms = list(self.bit_positions)
        return sorted(self.clause(bits, atoms) for bits in found)

    def clause(self, bits: int, atoms: list[str]) -> Clause:
        required, forbidden = list[str](), list[str]()
        while bits:
            lowest = bits & -bits
            position = lowest.bit_length() - 1
            (forbidden if position & 1 else required).append(atoms[position >> 1])
            bits ^= lowest
        return Clause(tuple(sorted(required)), tuple(sorted(forbidden)))

    def expand(self, node: Expression, negated: bool) -> list[int]:
        """The clauses of `node`, or of its negation if `negated`, by De Morgan's laws."""
        if isinstance(node, Atom):
            return self.atom(node.atom, negated)
        if isinstance(node, Not):
            return self.expand(node.part, not negated)
        if isinstance(node, Everything):
            return [] if negated else [0]
        assert isinstance(node, (And, Or))
        if isinstance(node, Or):
            return self.alternatives(node, negated)
        expanded = (self.expand(part, negated) for part in node.parts)
        return self.union(expanded) if negated else self.product(expanded)

    def atom(self, atom: str, negated: bool) -> list[int]:
        bit = self.bit_positions.setdefault(atom, 2 * len(self.bit_positions))
        return [(2 if negated else 1) << bit]

    def alternatives(self, node: Or, negated: bool) -> list[int]:
        """The clauses of an OR. Its words become one atom if they are many, those of an OR within it included."""
        parts = list(_flat(node))
        words = {part.atom for part in parts if isinstance(part, Atom) and not isinstance(part, Where)}
        if len(words) <= self.most_spread:
            words = set()
        others = [part for part in parts if not (isinstance(part, Atom) and part.atom in words)]
        expanded = (self.expand(part, negated) for part in others)
        if not words:
            return self.product(expanded) if negated else self.union(expanded)
        group = self.atom(group_atom(words), negated)
        if negated:
            return self.product([group, *expanded])
        return self.union([group, *(self.without_words(found, words) for found in expanded)])

    def without_words(self, found: list[int], words: set[str]) -> list[int]:
        """The clauses that require none of these words: those that do are redundant beside a group of them."""
        own = 0
        for word in words & self.bit_positions.keys():
            own |= 1 << self.bit_positions[word]
        return [bits for bits in found if not bits & own]

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

"""The tree of an expression. Nodes are immutable and compare by value."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from nearcast.text.derived.atoms import filter_atom, occurs, phrase_atom, prefix_atom
from nearcast.text.filters.condition import Condition

NO_ATTRIBUTES: Mapping[str, Any] = {}


class Expression:
    """A node of an expression tree."""

    __slots__ = ()

    def holds(self, tokens: Collection[str], attributes: Mapping[str, Any] = NO_ATTRIBUTES) -> bool:
        """Whether a message satisfies the expression. Its tokens are in order, unless the expression has no phrase."""
        raise NotImplementedError


class Atom(Expression):
    """A node without parts."""

    __slots__ = ()

    @property
    def atom(self) -> str:
        """The node as a string of a clause."""
        raise NotImplementedError

    def holds(self, tokens: Collection[str], attributes: Mapping[str, Any] = NO_ATTRIBUTES) -> bool:
        return occurs(self.atom, tokens)


@dataclass(frozen=True, slots=True)
class Everything(Expression):
    def holds(self, tokens: Collection[str], attributes: Mapping[str, Any] = NO_ATTRIBUTES) -> bool:
        return True

    def __str__(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class Token(Atom):
    token: str

    @property
    def atom(self) -> str:
        return self.token

    def __str__(self) -> str:
        return quoted(self.token)


@dataclass(frozen=True, slots=True)
class Phrase(Atom):
    """Tokens that follow each other in the message."""

    tokens: tuple[str, ...]

    @property
    def atom(self) -> str:
        return phrase_atom(self.tokens)

    def __str__(self) -> str:
        return quoted(" ".join(self.tokens))


@dataclass(frozen=True, slots=True)
class Prefix(Atom):
    """Some token begins so."""

    start: str

    @property
    def atom(self) -> str:
        return prefix_atom(self.start)

    def __str__(self) -> str:
        return f"{self.start}*"


@dataclass(frozen=True, slots=True)
class Where(Atom):
    """A condition on an attribute of the message."""

    condition: Condition

    @property
    def atom(self) -> str:
        return filter_atom(str(self.condition))

    def holds(self, tokens: Collection[str], attributes: Mapping[str, Any] = NO_ATTRIBUTES) -> bool:
        return self.condition.holds(attributes.get(self.condition.column))

    def __str__(self) -> str:
        return f"{{{self.condition}}}"


@dataclass(frozen=True, slots=True)
class Not(Expression):
    part: Expression

    def holds(self, tokens: Collection[str], attributes: Mapping[str, Any] = NO_ATTRIBUTES) -> bool:
        return not self.part.holds(tokens, attributes)

    def __str__(self) -> str:
        return f"NOT {_within(self.part, Not)}"


@dataclass(frozen=True, slots=True)
class And(Expression):
    parts: tuple[Expression, ...]

    def holds(self, tokens: Collection[str], attributes: Mapping[str, Any] = NO_ATTRIBUTES) -> bool:
        return all(part.holds(tokens, attributes) for part in self.parts)

    def __str__(self) -> str:
        return " AND ".join(_within(part, Not) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Or(Expression):
    parts: tuple[Expression, ...]

    def holds(self, tokens: Collection[str], attributes: Mapping[str, Any] = NO_ATTRIBUTES) -> bool:
        return any(part.holds(tokens, attributes) for part in self.parts)

    def __str__(self) -> str:
        return " OR ".join(_within(part, Not, And) for part in self.parts)


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _within(part: Expression, *bare: type[Expression]) -> str:
    """The text of a part; in parentheses unless the part is an atom or of a `bare` type, which binds tighter."""
    return str(part) if isinstance(part, (Atom, *bare)) else f"({part})"

"""Boolean expressions over tokens, and their parser. The grammar:

    expression   conjunction (OR conjunction)*       an empty text matches everything
    conjunction  factor ((AND)? factor)*             AND may be omitted
    factor       NOT factor | ( expression ) | "literal" | -word | word

Operators must be in capitals; `and` and other near misses are refused (see near_misses.py). The analyser turns a word
into tokens, all of which are required. A literal is one token of any characters; within it, \\" stands for a quote and
\\\\ for a backslash.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import cast

from nearcast.errors import ExpressionError
from nearcast.text.analyser import Analyser
from nearcast.text.near_misses import near_miss

MAX_DEPTH = 50
"""The deepest nesting of parentheses and NOTs. Each level takes about four calls on Python's stack."""

MAX_CHARACTERS = 100_000
MEMO_SIZE = 65_536
"""The number of words whose tokens a parser caches. A full cache is cleared."""


class Expression:
    """A node of an expression tree. Nodes are immutable and compare by value."""

    __slots__ = ()

    def holds(self, tokens: Set[str]) -> bool:
        """Whether a message with these tokens satisfies the expression."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Everything(Expression):
    def holds(self, tokens: Set[str]) -> bool:
        return True

    def __str__(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class Token(Expression):
    token: str

    def holds(self, tokens: Set[str]) -> bool:
        return self.token in tokens

    def __str__(self) -> str:
        escaped = self.token.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'


@dataclass(frozen=True, slots=True)
class Not(Expression):
    part: Expression

    def holds(self, tokens: Set[str]) -> bool:
        return not self.part.holds(tokens)

    def __str__(self) -> str:
        return f"NOT {_within(self.part, Not)}"


@dataclass(frozen=True, slots=True)
class And(Expression):
    parts: tuple[Expression, ...]

    def holds(self, tokens: Set[str]) -> bool:
        return all(part.holds(tokens) for part in self.parts)

    def __str__(self) -> str:
        return " AND ".join(_within(part, Not) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Or(Expression):
    parts: tuple[Expression, ...]

    def holds(self, tokens: Set[str]) -> bool:
        return any(part.holds(tokens) for part in self.parts)

    def __str__(self) -> str:
        return " OR ".join(_within(part, Not, And) for part in self.parts)


def _within(part: Expression, *bare: type[Expression]) -> str:
    """The text of a part; in parentheses unless the part is a token or of a `bare` type, which binds tighter."""
    return str(part) if isinstance(part, (Token, *bare)) else f"({part})"


def parse(text: str, analyser: Analyser) -> Expression:
    """The expression tree of a text. Raises an ExpressionError that points at the first wrong character."""
    return _parser(analyser).parse(text)


_PIECE = re.compile(r'\s*(?:([()])|"((?:[^"\\]|\\.)*+)"|([^\s()"]+))', re.DOTALL)
_PARENTHESIS, _LITERAL, _WORD_PIECE = 1, 2, 3  # the groups of _PIECE
_ESCAPE = re.compile(r'\\(["\\])')
_OPERATORS = frozenset(("AND", "OR", "NOT"))
_WORD = re.compile(r"\S+")
_PLAIN_WORD = r'(?!(?:AND|OR|NOT)(?:\s|$))[^\s()"]++'
# A text of words, some with AND between them: no parenthesis, no quote, no other operator
_ONLY_WORDS = re.compile(rf"\s*+{_PLAIN_WORD}(?:\s++(?:AND\s++)?+{_PLAIN_WORD})*+\s*+")


class Parser:
    """Parses expressions with one analyser. Caches the tokens of words: subscriptions share most words."""

    def __init__(self, analyser: Analyser) -> None:
        self.analyser = analyser
        self._words: dict[str, Expression] = {}

    def parse(self, text: str) -> Expression:
        if len(text) > MAX_CHARACTERS:
            reason = f"more than {MAX_CHARACTERS:,} characters: too long,"
            raise ExpressionError(reason, text[:60] + "…", 60)
        known = self._known_words(text)
        if known:
            return _joined(And, known)
        if _ONLY_WORDS.fullmatch(text):
            return self._all_words(text)
        return _Descent(self, text).whole()

    def word(self, word: str, text: str, position: int) -> Expression:
        """The AND of the tokens of one word of `text`; its negation if a minus is before it."""
        node = self._words.get(word)
        if node is None:
            node = self._analysed(word, text, position)
        return node

    def _known_words(self, text: str) -> list[Expression]:
        """The parts of a text of words, or of words with AND between them; none unless all were parsed before.

        A word that was parsed is no operator, and has no space, quote or parenthesis.
        """
        found = [self._words.get(word) for word in (text.split(" AND ") if " AND " in text else text.split())]
        return [] if None in found else cast(list[Expression], found)

    def _all_words(self, text: str) -> Expression:
        found = (match for match in _WORD.finditer(text) if match[0] != "AND")
        return _joined(And, [self.word(match[0], text, match.start()) for match in found])

    def _analysed(self, word: str, text: str, position: int) -> Expression:
        reason = near_miss(word)
        if reason:
            raise ExpressionError(reason, text, position)
        is_negated = word.startswith("-")
        tokens = self.analyser.tokens(word[is_negated:])
        if not tokens:
            raise ExpressionError(
                f"'{word}' holds no token: it is a stop word or has no letter or number,", text, position
            )
        node = _joined(And, [Token(token) for token in dict.fromkeys(tokens)])
        node = Not(node) if is_negated else node
        if len(self._words) >= MEMO_SIZE:
            self._words.clear()
        self._words[word] = node
        return node


@functools.lru_cache(maxsize=16)
def _parser(analyser: Analyser) -> Parser:
    return Parser(analyser)


class _Descent:
    """The recursive descent. The kind of a piece is "AND", "OR", "NOT", "(", ")", "literal", "word" or "end"."""

    def __init__(self, parser: Parser, text: str) -> None:
        self.parser = parser
        self.text = text
        self.depth = 0
        self.kinds, self.texts, self.positions = _pieces(text)
        self.at = 0

    def whole(self) -> Expression:
        if self.kinds[0] == "end":
            return Everything()
        node = self.expression()
        if self.kinds[self.at] == ")":
            raise self.error("a closing parenthesis without an opening one", self.at)
        return node

    def expression(self) -> Expression:
        parts = [self.conjunction()]
        while self.kinds[self.at] == "OR":
            self.at += 1
            parts.append(self.conjunction())
        return _joined(Or, parts)

    def conjunction(self) -> Expression:
        parts = [self.factor()]
        while (kind := self.kinds[self.at]) not in ("OR", ")", "end"):
            if kind == "AND":
                self.at += 1
            parts.append(self.factor())
        return _joined(And, parts)

    def factor(self) -> Expression:
        at = self.at
        kind = self.kinds[at]
        if kind not in ("word", "literal", "NOT", "("):
            raise self.missing_before(at)
        self.at += 1
        if kind == "word":
            return self.parser.word(self.texts[at], self.text, self.positions[at])
        return self.literal(at) if kind == "literal" else self.nested(at)

    def literal(self, at: int) -> Expression:
        token = self.parser.analyser.normalise(self.texts[at])
        if not token:  # the normal form may have removed every character
            raise self.error("nothing between the quotes", at)
        return Token(token)

    def nested(self, at: int) -> Expression:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.error(f"more than {MAX_DEPTH} parentheses and NOTs within each other", at)
        node = Not(self.factor()) if self.kinds[at] == "NOT" else self.group(at)
        self.depth -= 1
        return node

    def group(self, opening: int) -> Expression:
        if self.kinds[self.at] == ")":
            raise self.error("nothing between the parentheses", opening)
        node = self.expression()
        if self.kinds[self.at] != ")":
            raise self.error("a parenthesis that is never closed", opening)
        self.at += 1
        return node

    def missing_before(self, at: int) -> ExpressionError:
        """The error for a piece that is not an operand: the operator before it lacks one, or the piece is misplaced."""
        kind, before = self.kinds[at], self.kinds[at - 1] if at else ""
        if before in _OPERATORS:
            return self.error(f"{before} with nothing after it", at - 1)
        if kind == "end":
            return self.error("a parenthesis that is never closed", at - 1)
        if kind == ")":
            return self.error("a closing parenthesis without an opening one", at)
        return self.error(f"{kind} with nothing before it", at)

    def error(self, reason: str, at: int) -> ExpressionError:
        return ExpressionError(reason, self.text, self.positions[at])


def _pieces(text: str) -> tuple[list[str], list[str], list[int]]:
    """The kinds, texts and positions of all pieces; the last piece is the end."""
    kinds, texts, positions = [], [], []
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _PIECE.match(text, at)
        if match is None:  # only an unclosed quote does not match
            raise ExpressionError("a quote that is never closed", text, text.index('"', at))
        group = match.lastindex or 0
        piece = match[group]
        texts.append(_ESCAPE.sub(r"\1", piece) if group == _LITERAL else piece)
        positions.append(match.start(group) - (group == _LITERAL))
        if group == _WORD_PIECE:
            kinds.append(piece if piece in _OPERATORS else "word")
        else:
            kinds.append(piece if group == _PARENTHESIS else "literal")
        at = match.end()
    return [*kinds, "end"], [*texts, ""], [*positions, end]


def _joined(kind: type[And] | type[Or], parts: Sequence[Expression]) -> Expression:
    return parts[0] if len(parts) == 1 else kind(tuple(parts))

"""Boolean expressions over the words and attributes of messages, and their parser. The grammar:

    expression   conjunction (OR conjunction)*       an empty text matches everything
    conjunction  factor ((AND)? factor)*             AND may be omitted
    factor       NOT factor | ( expression ) | -? "quoted" | { filter } | -? word | -? prefix*

Operators must be in capitals; `and` and other near misses are refused (see `grammar/near_misses.py`). The analyser
turns a word into tokens, all of which are required, and a quoted text into a phrase: tokens that follow each other. A
quoted text of one token is that token, whatever its characters; \\" stands for a quote and \\\\ for a backslash.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import cast

from nearcast.errors import ExpressionError
from nearcast.limits import LIMITS
from nearcast.text.analyser import Analyser
from nearcast.text.derived.atoms import MARK, MOST_PHRASE_TOKENS, MOST_PREFIX_BYTES
from nearcast.text.filters.grammar import parse_filter
from nearcast.text.grammar.near_misses import PREFIX_RULE, near_miss
from nearcast.text.grammar.nodes import And, Atom, Everything, Expression, Not, Or, Phrase, Prefix, Token, Where
from nearcast.text.grammar.pieces import OPERATORS, cut

__all__ = ["And", "Atom", "Everything", "Expression", "Not", "Or", "Parser", "Phrase", "Prefix", "Token", "Where"]

MEMO_SIZE = 65_536
"""The number of words whose tokens a parser caches. A full cache is cleared."""


def parse(text: str, analyser: Analyser) -> Expression:
    """The expression tree of a text. Raises an ExpressionError that points at the first wrong character."""
    return _parser(analyser).parse(text)


_WORD = re.compile(r"\S+")
_PLAIN_WORD = r'(?!(?:AND|OR|NOT)(?:\s|$))[^\s(){}"]++'
# A text of words, some with AND between them: no parenthesis, no quote, no other operator
_ONLY_WORDS = re.compile(rf"\s*+{_PLAIN_WORD}(?:\s++(?:AND\s++)?+{_PLAIN_WORD})*+\s*+")


_PREFIX_IN_PHRASE = re.compile(r"\w\*(?!\S)")


class Parser:
    """Parses expressions with one analyser. Caches the tokens of words: subscriptions share most words."""

    def __init__(self, analyser: Analyser) -> None:
        self.analyser = analyser
        self._words: dict[str, Expression] = {}

    def parse(self, text: str) -> Expression:
        if len(text) > LIMITS.expression_characters:
            reason = f"more than {LIMITS.expression_characters:,} characters: too long,"
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
        node = self._unsigned(word[is_negated:])
        if node is None:
            shown = word if len(word) <= 80 else f"{word[:77]}..."
            reason = f"'{shown}' holds no token: it is a stop word or has no letter or number,"
            if "*" in word:
                reason = f"'{shown}' is no prefix: {PREFIX_RULE}; put a text with a * in quotes,"
            raise ExpressionError(reason, text, position)
        node = Not(node) if is_negated else node
        if len(self._words) >= MEMO_SIZE:
            self._words.clear()
        self._words[word] = node
        return node

    def _unsigned(self, word: str) -> Expression | None:
        """The AND of the tokens of a word, or a prefix; None if it is neither."""
        if "*" in word:
            start = self.analyser.prefix(word[:-1]) if word.endswith("*") else ""
            return Prefix(start) if start and len(start.encode()) <= MOST_PREFIX_BYTES else None
        tokens = self.analyser.tokens(word)
        return _joined(And, [Token(token) for token in dict.fromkeys(tokens)]) if tokens else None


@functools.lru_cache(maxsize=16)
def _parser(analyser: Analyser) -> Parser:
    return Parser(analyser)


class _Descent:
    """The recursive descent over the pieces of a text (see `grammar/pieces.py`)."""

    def __init__(self, parser: Parser, text: str) -> None:
        self.parser = parser
        self.text = text
        self.depth = 0
        self.kinds, self.texts, self.positions = cut(text)
        if self.kinds.count("filter") > LIMITS.expression_filters:
            raise self.error(f"more than {LIMITS.expression_filters:,} filters", self.kinds.index("filter"))
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
        if kind in OPERATORS - {"NOT"} or kind in (")", "end"):
            raise self.missing_before(at)
        self.at += 1
        if kind == "word":
            return self.parser.word(self.texts[at], self.text, self.positions[at])
        if kind == "filter":
            conditions = parse_filter(self.texts[at], self.text, self.positions[at] + 1)
            return _joined(And, [Where(condition) for condition in dict.fromkeys(conditions)])
        if kind in ("NOT", "("):
            return self.nested(at)
        return Not(self.literal(at)) if kind == "-literal" else self.literal(at)

    def literal(self, at: int) -> Expression:
        """The phrase, or the one token, of a quoted text. A text without a token is itself a token."""
        text, analyser = self.texts[at], self.parser.analyser
        if MARK in text:
            raise self.error("U+FFFF in a quoted text, which is no character", at)
        tokens = analyser.tokens(text)
        if len(tokens) > MOST_PHRASE_TOKENS:
            raise self.error(f"a phrase of more than {MOST_PHRASE_TOKENS} words", at)
        if len(text.split()) < 2 and len(tokens) < 2:
            token = analyser.normalise(text)
            if not token:  # the normal form may have removed every character
                raise self.error("nothing between the quotes", at)
            return Token(token)
        if _PREFIX_IN_PHRASE.search(text):
            raise self.error("a prefix within a phrase; write the phrase AND the prefix, or whole words,", at)
        if not tokens:
            raise self.error("only stop words, or no letter and no number, between the quotes", at)
        return Phrase(tuple(tokens)) if len(tokens) > 1 else Token(tokens[0])

    def nested(self, at: int) -> Expression:
        self.depth += 1
        if self.depth > LIMITS.expression_depth:
            raise self.error(f"more than {LIMITS.expression_depth} parentheses and NOTs within each other", at)
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
        if before in OPERATORS:
            return self.error(f"{before} with nothing after it", at - 1)
        if kind == "end":
            return self.error("a parenthesis that is never closed", at - 1)
        if kind == ")":
            return self.error("a closing parenthesis without an opening one", at)
        return self.error(f"{kind} with nothing before it", at)

    def error(self, reason: str, at: int) -> ExpressionError:
        return ExpressionError(reason, self.text, self.positions[at])


def _joined(kind: type[And] | type[Or], parts: Sequence[Expression]) -> Expression:
    return parts[0] if len(parts) == 1 else kind(tuple(parts))

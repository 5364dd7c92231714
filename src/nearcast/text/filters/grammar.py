"""The parser of filters. The grammar, between braces:

filter      condition (, condition)*
condition   column (= | != | < | <= | > | >=) value  |  column [not] in ( value (, value)* )
value       number | true | false | ISO date or time | "text" | words
"""

from __future__ import annotations

import functools
import re

from nearcast.errors import ExpressionError
from nearcast.limits import LIMITS
from nearcast.text.filters.condition import Condition, Operand, number_of, time_of

NOT_ATTRIBUTES = frozenset(
    ("id", "tokens", "text", "x", "y", "lon", "lat", "xmin", "ymin", "xmax", "ymax", "time", "expires")
)
"""Columns of messages that are no attributes: the rest of a subscription is about them."""

_PIECE = re.compile(
    r"""\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|(<=|>=|!=|<>|==|=<|=>|[<>=])|([(),])|([^\s"'<>=!(),{}]+))""",
    re.DOTALL,
)
_DOUBLE, _SINGLE, _OPERATOR, _SIGN, _WORD = range(1, 6)
_ESCAPE = re.compile(r"""\\(["'\\])""")
_MISTAKEN = {"==": "=", "<>": "!=", "=<": "<=", "=>": ">="}
_MOST_CONDITIONS = 64


@functools.lru_cache(maxsize=65_536)
def read_condition(content: str) -> Condition:
    """The condition of a text that was written by `str(Condition)`."""
    return parse_filter(content, content, 0)[0]


def parse_filter(content: str, text: str, position: int) -> tuple[Condition, ...]:
    """The conditions of the filter that is written at this position of `text`, without its braces."""
    return _Reader(content, text, position).whole()


class _Reader:
    def __init__(self, content: str, text: str, position: int) -> None:
        self.text, self.position = text, position
        self.pieces = list[tuple[int, str, int]]()  # (group of _PIECE, text, position)
        at, end = 0, len(content.rstrip())
        while at < end:
            match = _PIECE.match(content, at)
            if match is None:
                raise self.error("a character that no filter has; write texts in quotes,", at)
            group = match.lastindex or 0
            piece = match[group]
            is_quoted = group in (_DOUBLE, _SINGLE)
            self.pieces.append((group, _ESCAPE.sub(r"\1", piece) if is_quoted else piece, match.start(group)))
            at = match.end()
        self.pieces.append((0, "", len(content)))
        self.at = 0

    def whole(self) -> tuple[Condition, ...]:
        if len(self.pieces) == 1:
            raise self.error("nothing between the braces", -1)
        conditions = [self.condition()]
        while self.is_sign(","):
            self.at += 1
            conditions.append(self.condition())
        if self.pieces[self.at][0]:
            raise self.error("conditions are divided by commas", self.pieces[self.at][2])
        if len(conditions) > _MOST_CONDITIONS:
            raise self.error(f"more than {_MOST_CONDITIONS} conditions", 0)
        return tuple(conditions)

    def condition(self) -> Condition:
        column, at = self.column()
        if column in NOT_ATTRIBUTES:
            raise self.error(f"'{column}' is no attribute: filters are on the further columns of messages,", at)
        group, piece, at = self.pieces[self.at]
        if group == _OPERATOR:
            if piece in _MISTAKEN:
                raise self.error(f"'{piece}' is not an operator: write {_MISTAKEN[piece]},", at)
            self.at += 1
            return Condition(column, piece, (self.value(),))
        is_negated = group == _WORD and piece.lower() == "not"
        self.at += is_negated
        if self.is_word("in"):
            self.at += 1
            return Condition(column, "not in" if is_negated else "in", self.values())
        reason = f"'{column}' is compared with nothing: write {column} = value, or {column} in (value, value),"
        raise self.error(reason, at)

    def column(self) -> tuple[str, int]:
        group, piece, at = self.pieces[self.at]
        if group not in (_WORD, _DOUBLE, _SINGLE) or not piece:
            raise self.error("a condition begins with the name of a column", at)
        if group == _WORD and piece.lower() == "not" and self.pieces[self.at + 1][0] == _WORD:
            raise self.error("NOT stands before the braces, or write !=,", at)
        if group == _WORD and number_of(piece) is not None:
            raise self.error("a condition begins with the name of a column: write severity >= 3,", at)
        self.at += 1
        return piece, at

    def values(self) -> tuple[Operand, ...]:
        if not self.is_sign("("):
            raise self.error("`in` takes a list: write in (road, rail),", self.pieces[self.at][2])
        self.at += 1
        found = [self.value()]
        while self.is_sign(","):
            self.at += 1
            found.append(self.value())
            if len(found) > LIMITS.filter_values:
                raise self.error(f"more than {LIMITS.filter_values:,} values in a list", self.pieces[self.at][2])
        if not self.is_sign(")"):
            raise self.error("a list that is never closed", self.pieces[self.at][2])
        self.at += 1
        return tuple(dict.fromkeys(found))

    def value(self) -> Operand:
        group, piece, at = self.pieces[self.at]
        if group in (_DOUBLE, _SINGLE):
            self.at += 1
            return Operand(piece, True)
        words = list[str]()
        while self.pieces[self.at][0] == _WORD:
            words.append(self.pieces[self.at][1])
            self.at += 1
        if not words:
            raise self.error("a value is missing", at)
        found = " ".join(words)
        if len(words) > 1 and any(word.lower() in ("and", "or", "not", "in") for word in words):
            reason = "conditions are divided by commas; for OR write two filters, {…} OR {…}; texts go in quotes,"
            raise self.error(reason, at)
        if found.lower() in ("null", "none"):
            raise self.error("a null never matches, so nothing is compared with it,", at)
        try:
            time_of(found)
        except ValueError:
            raise self.error(f"there is no time {found}; a text goes in quotes,", at) from None
        return Operand(found)

    def is_sign(self, sign: str) -> bool:
        group, piece, _ = self.pieces[self.at]
        return group == _SIGN and piece == sign

    def is_word(self, word: str) -> bool:
        group, piece, _ = self.pieces[self.at]
        return group == _WORD and piece.lower() == word

    def error(self, reason: str, at: int) -> ExpressionError:
        return ExpressionError(reason, self.text, min(self.position + at, len(self.text) - 1))

"""The pieces of an expression's text: parentheses, quoted texts, filters in braces, and words."""

from __future__ import annotations

import re

from nearcast.errors import ExpressionError

_PIECE = re.compile(
    r"\s*(?:([()])"
    r'|-?"((?:[^"\\]|\\.)*+)"'
    r"|\{((?:[^{}\"']|\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+')*+)\}"
    r'|([^\s(){}"]+))',
    re.DOTALL,
)
_PARENTHESIS, _LITERAL, _FILTER, _WORD = 1, 2, 3, 4  # the groups of _PIECE
_ESCAPE = re.compile(r'\\(["\\])')
OPERATORS = frozenset(("AND", "OR", "NOT"))

Pieces = tuple[list[str], list[str], list[int]]


def cut(text: str) -> Pieces:
    """The kinds, texts and positions of all pieces; the last piece is the end.

    A kind is "AND", "OR", "NOT", "(", ")", "literal", "-literal", "filter", "word" or "end".
    """
    kinds, texts, positions = list[str](), list[str](), list[int]()
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _PIECE.match(text, at)
        if match is None:
            raise _unclosed(text, at)
        group = match.lastindex or 0
        piece = match[group]
        texts.append(_ESCAPE.sub(r"\1", piece) if group == _LITERAL else piece)
        begin = match.end() - len(match[0].lstrip())
        positions.append(begin)
        if group == _WORD:
            kinds.append(piece if piece in OPERATORS else "word")
        elif group == _PARENTHESIS:
            kinds.append(piece)
        else:
            kinds.append("filter" if group == _FILTER else "-literal" if text[begin] == "-" else "literal")
        at = match.end()
    return [*kinds, "end"], [*texts, ""], [*positions, end]


def _unclosed(text: str, at: int) -> ExpressionError:
    """The error for the first piece that does not match: a quote or a brace."""
    at += len(text[at:]) - len(text[at:].lstrip())
    if text[at] == "}":
        return ExpressionError("a closing brace without an opening one", text, at)
    if text[at] == "{":
        return ExpressionError("a brace that is never closed", text, at)
    return ExpressionError("a quote that is never closed", text, text.index('"', at))

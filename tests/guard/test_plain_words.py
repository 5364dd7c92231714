"""Names that a stranger would have to decode stay out of the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import nearcast

ROOT = Path(nearcast.__file__).parent

BANNED = frozenset(
    "told tell tells asked ask asks held hung hang hangs desk desks ticket tickets settle settled settles tidy tidied "
    "lanes worded dear parcel wish wishes keeper".split()
)
"""Verbs used as nouns, and metaphors. A name says what a value is: `report`, `rank_params`, `scratch`, `pointers`."""


def words_of(name: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def identifiers(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr


def test_names_are_split_into_words() -> None:
    assert words_of("HTTPReply_told2") == ["http", "reply", "told"]
    tree = ast.parse("class Desk:\n    def f(self, asked): self.held = late")
    assert {"Desk", "f", "self", "asked", "held", "late"} <= set(identifiers(tree))


def test_identifiers_say_what_a_thing_is() -> None:
    found = [
        f"{file.relative_to(ROOT)}: {name}"
        for file in sorted(ROOT.rglob("*.py"))
        for name in sorted({file.stem, *identifiers(ast.parse(file.read_text()))})
        if BANNED & set(words_of(name))
    ]
    assert found == []

"""The catalogue of methods, from their classes and the headers of their modules."""

from __future__ import annotations

import inspect
import re
import sys
from typing import Any, NamedTuple

import nearcast.indexes  # noqa: F401  registers where methods come from
from nearcast.matching.method import Method, find_method, kinds_of, method_names, method_options

HEADER_FIELDS = ("Paper", "Idea", "Layout", "Cost", "Deviates")
_FIELD = re.compile(rf"^({'|'.join(HEADER_FIELDS)}) +(.*(?:\n(?: {{2,}}.*)?)*)", re.MULTILINE)


class MethodInfo(NamedTuple):
    name: str
    paper: str
    kinds: tuple[str, ...]
    options: dict[str, Any]
    idea: str
    cost: str


def methods() -> list[MethodInfo]:
    """Every method: its name, the paper it comes from, the kinds it serves, its options, its idea and its cost."""
    return [_info(name) for name in method_names()]


def header_of(method: type[Method]) -> dict[str, str]:
    """The header of the module that defines a method: Paper, Idea, Layout, Cost, Deviates."""
    text = inspect.cleandoc(sys.modules[method.__module__].__doc__ or "")
    return {name: " ".join(body.split()) for name, body in _FIELD.findall(text)}


def _info(name: str) -> MethodInfo:
    kinds = kinds_of(name)
    method = find_method(kinds[0], name)
    header = header_of(method)
    return MethodInfo(
        method.name, method.paper, kinds, method_options(method), header.get("Idea", ""), header.get("Cost", "")
    )


def methods_markdown() -> str:
    """The page docs/reference/methods.md."""
    lines = [
        "# Methods",
        "",
        "Made by `make docs` from the classes and their module headers; do not edit.",
        "",
        "| method | paper | kinds | options | idea | cost |",
        "|---|---|---|---|---|---|",
    ]
    for info in methods():
        options = ", ".join(f"`{name}={value!r}`" for name, value in info.options.items()) or "none"
        kinds = ", ".join(info.kinds)
        lines.append(f"| `{info.name}` | {info.paper} | {kinds} | {options} | {info.idea} | {info.cost} |")
    return "\n".join(lines) + "\n"

"""The catalogue of methods, from their classes and the headers of their modules."""

from __future__ import annotations

import inspect
import re
import sys
from typing import Any, NamedTuple

import nearcast.indexes  # noqa: F401  registers where methods come from
from nearcast.arguments import a_text
from nearcast.matching.method import Method, find_method, kinds_of, method_names, method_options
from nearcast.model import TOP
from nearcast.topk import method as topk

HEADER_FIELDS = ("Paper", "Idea", "Layout", "Cost", "Deviates")
_FIELD = re.compile(rf"^({'|'.join(HEADER_FIELDS)}) +(.*(?:\n(?: {{2,}}.*)?)*)", re.MULTILINE)


class MethodInfo(NamedTuple):
    name: str
    paper: str
    kinds: tuple[str, ...]
    options: dict[str, Any]
    idea: str
    cost: str


def methods(kind: str | None = None) -> list[MethodInfo]:
    """Every method of an index: its name, the paper it comes from, the kinds it serves, its options, its idea and its
    cost. With a kind, the methods that serve it; those of kind `top` are methods of `nc.TopK`.
    """
    if kind is not None and a_text(kind, "kind") == TOP.name:
        return [_top_info(topk.find_method(name)) for name in topk.method_names() if name != topk.AUTO]
    infos = [_info(name) for name in method_names()]
    return [info for info in infos if kind is None or kind in info.kinds]


def header_of(method: type[Method] | type[topk.TopMethod]) -> dict[str, str]:
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


def _top_info(method: type[topk.TopMethod]) -> MethodInfo:
    header, options = header_of(method), topk.method_options(method)
    return MethodInfo(method.name, method.paper, (TOP.name,), options, header.get("Idea", ""), header.get("Cost", ""))


def methods_markdown() -> str:
    """The page docs/reference/methods.md."""
    lines = ["# Methods", "", "Made by `make docs` from the classes and their module headers; do not edit.", ""]
    lines += ["Methods of an index (`nc.build_index`, `nc.Engine`):", "", *_markdown_table(methods())]
    lines += ["", "Methods of `nc.TopK` (kind `top`):", "", *_markdown_table(methods(TOP.name))]
    return "\n".join(lines) + "\n"


def _markdown_table(infos: list[MethodInfo]) -> list[str]:
    lines = ["| method | paper | kinds | options | idea | cost |", "|---|---|---|---|---|---|"]
    for info in infos:
        options = ", ".join(f"`{name}={value!r}`" for name, value in info.options.items()) or "none"
        kinds = ", ".join(info.kinds)
        lines.append(f"| `{info.name}` | {info.paper} | {kinds} | {options} | {info.idea} | {info.cost} |")
    return lines

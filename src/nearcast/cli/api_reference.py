"""Builds the page docs/reference/python-api.md from the signatures and docstrings of nearcast's public names.

`python -m nearcast.cli.api_reference FILE` writes the page.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, ForwardRef

import nearcast
import nearcast.spark

_RETURNED = (
    ("nearcast.engine.explain", "Explanation"),
    ("nearcast.engine.catalogue", "MethodInfo"),
    ("nearcast.model", "Work"),
)
"""Types that public functions return and that `nearcast` itself does not export."""

_TOP = """# Python API

Made by `make docs` from the public names of `nearcast`; do not edit. The [tutorial](../tutorial.md) shows how they work
together.
"""

_ON_SPARK = """## nearcast.spark

`from nearcast import spark as ncs`. See [Match Spark DataFrames](../how-to/match-spark-dataframes.md).
"""


def api_markdown() -> str:
    """Returns the whole page: functions, then classes, then the types that they return."""
    public = {name: getattr(nearcast, name) for name in nearcast.__all__}
    functions = [_section(name, value) for name, value in public.items() if not inspect.isclass(value)]
    classes = [_section(name, value) for name, value in public.items() if inspect.isclass(value)]
    returned = [_section(name, getattr(import_module(module), name)) for module, name in _RETURNED]
    parts = ["## Functions\n", *functions, "## Classes\n", *classes, "## Types that these return\n", *returned]
    parts += [_ON_SPARK, *(_section(f"spark.{name}", getattr(nearcast.spark, name)) for name in nearcast.spark.__all__)]
    return _TOP + "\n" + "\n".join(parts)


def _section(name: str, value: Any) -> str:
    members = _members(value) if inspect.isclass(value) else ()
    shown = [f"#### {name}.{member}\n\n{text}\n" for member, text in members]
    return "\n".join([f"### {name}\n\n{_entry(name, value)}\n", *shown])


def _members(kind: type) -> Iterator[tuple[str, str]]:
    """The documented public methods and properties that the class itself defines, in the order of its source."""
    for name, value in vars(kind).items():
        if name.startswith("_"):
            continue
        if isinstance(value, property):
            if value.fget is not None and value.fget.__doc__:
                kind_of_value = value.fget.__annotations__.get("return", "")
                yield name, f"Property, `{kind_of_value}`. {inspect.cleandoc(value.fget.__doc__)}"
        elif isinstance(value, classmethod | staticmethod) and value.__func__.__doc__:
            yield name, _entry(f"{kind.__name__}.{name}", value.__func__)
        elif inspect.isfunction(value) and value.__doc__:
            yield name, _entry(name, value)


def _entry(name: str, value: Any) -> str:
    text = inspect.cleandoc(value.__doc__ or "")
    if text.startswith(f"{name}("):  # made by NamedTuple or dataclass: the signature says the same
        text = ""
    paragraphs = [f"```pycon\n{each}\n```" if each.startswith(">>>") else each for each in text.split("\n\n")]
    return "\n\n".join([f"```text\n{_signature(name, value)}\n```", *paragraphs]).strip()


def _signature(name: str, value: Any) -> str:
    """`name(parameters) -> type`, on one line where it fits; the name alone for a class without its own constructor."""
    if inspect.isclass(value) and not {"__init__", "__new__"} & vars(value).keys():
        return name
    signature = inspect.signature(value)
    shown = [each for each in signature.parameters.values() if each.name not in ("self", "cls")]
    parameters = [_parameter(each) for each in shown]
    keyword_only = [each.kind is each.KEYWORD_ONLY for each in shown]
    if any(keyword_only) and not any(each.kind is each.VAR_POSITIONAL for each in shown):
        parameters.insert(keyword_only.index(True), "*")
    returned = signature.return_annotation
    arrow = "" if inspect.isclass(value) or returned is signature.empty else f" -> {_type(returned)}"
    line = f"{name}({', '.join(parameters)}){arrow}"
    return line if len(line) <= 100 else f"{name}(\n    " + ",\n    ".join(parameters) + f",\n){arrow}"


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(parameter.kind.name, "")
    shown = stars + parameter.name
    if parameter.annotation is not parameter.empty:
        shown += f": {_type(parameter.annotation)}"
    if parameter.default is parameter.empty:
        return shown
    default = parameter.default
    return f"{shown} = {default.__module__ + '.' + default.__name__ if inspect.isroutine(default) else repr(default)}"


def _type(annotation: Any) -> str:
    """The annotation as it stands in the source; NamedTuples wrap it."""
    if isinstance(annotation, str):
        return annotation
    if isinstance(annotation, ForwardRef):
        return annotation.__forward_arg__
    return annotation.__name__ if inspect.isclass(annotation) else str(annotation)


def main() -> None:
    """Writes the page to the file named on the command line."""
    Path(sys.argv[1]).write_text(api_markdown())


if __name__ == "__main__":
    main()

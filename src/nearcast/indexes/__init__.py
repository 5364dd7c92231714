"""The methods: one file or folder each; none imports another. A method is imported when it is first used.

The module of a method has the method's name, with `_` for `-` and `_plus` for `+`: `rt+-tree` is `rt_plus_tree`. Other
packages offer methods as entry points of the group ENTRY_POINTS, each under the method's name.
"""

from __future__ import annotations

import importlib
import pkgutil
from importlib.metadata import entry_points

from nearcast.matching.method import SOURCES, Source

ENTRY_POINTS = "nearcast.indexes"


def module_name(method: str) -> str:
    """The name of a method's module."""
    return method.replace("++", "_plus_plus").replace("+", "_plus").replace("-", "_")


def load(method: str) -> None:
    """Import the module of a method, if there is one."""
    if module_name(method) in _modules():
        importlib.import_module(f"{__name__}.{module_name(method)}")
    for point in entry_points(group=ENTRY_POINTS):
        if point.name == method:
            point.load()


def load_all() -> None:
    """Import every method."""
    for module in _modules():
        importlib.import_module(f"{__name__}.{module}")
    for point in entry_points(group=ENTRY_POINTS):
        point.load()


def _modules() -> set[str]:
    return {module.name for module in pkgutil.iter_modules(__path__)}


SOURCES.append(Source(load, load_all))

"""One file per method; none knows another. Every file of this folder is imported, and so registers its method."""

from __future__ import annotations

import importlib
import pkgutil
from importlib.metadata import entry_points

ENTRY_POINTS = "nearcast.indexes"


def discover() -> None:
    """Import every method here, and those that other packages offer as entry points of the group ENTRY_POINTS."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    for point in entry_points(group=ENTRY_POINTS):
        point.load()


discover()

"""The base class of methods that are made of quadtrees with the options tau_num, tau_area, depth and copies."""

from __future__ import annotations

from typing import Any, ClassVar

from nearcast.geo.space import Space
from nearcast.matching.store import RowStore
from nearcast.structures.quadtree.quadtrees import QuadOptions
from nearcast.structures.structure_method import StructureMethod


class QuadtreeMethod(StructureMethod):
    """Subclasses set `structure_type`, a class whose constructor takes a store, a space and QuadOptions."""

    structure_type: ClassVar[type[Any]]

    def __init__(
        self,
        store: RowStore,
        space: Space,
        tau_num: int = 64,
        tau_area: float = QuadOptions().tau_area,
        depth: int = QuadOptions().depth,
        copies: int = QuadOptions().copies,
    ) -> None:
        super().__init__(store, space)
        self.structure = self.structure_type(store, space, QuadOptions(tau_num, tau_area, depth, copies))

"""Grows the k-d tree of a shard plan: leaves of about equal cost, cut where few subscriptions lie across."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.sharding.planning.cuts import best_cut
from nearcast.sharding.routing.areas import LEAF, Areas


class Plane(NamedTuple):
    """Messages and subscription rows in a part of the plane."""

    points: np.ndarray  # float64[n,2]  of messages
    costs: np.ndarray  # float64[n]  of messages
    boxes: np.ndarray  # float64[m,4]  of rows

    def below(self, axis: int, cut: float) -> Plane:
        is_below = self.points[:, axis] < cut
        return Plane(self.points[is_below], self.costs[is_below], self.boxes[self.boxes[:, axis] < cut])

    def above(self, axis: int, cut: float) -> Plane:
        is_above = self.points[:, axis] >= cut
        return Plane(self.points[is_above], self.costs[is_above], self.boxes[self.boxes[:, axis + 2] >= cut])


def grow_areas(plane: Plane, n_shards: int) -> Areas:
    """The tree over a plane, with no leaf divided. Shards are numbered along the leaves: neighbours are near."""
    nodes: list[tuple[int, float, int, int]] = []  # axis, cut, below, above
    leaf_parts: list[int] = []  # the number of shards of each leaf

    def grow(part: Plane, n_parts: int) -> int:
        node = len(nodes)
        nodes.append((LEAF, 0.0, len(leaf_parts), -1))
        cut = best_cut(*part, n_parts) if n_parts > 1 else None
        if cut is None:
            leaf_parts.append(n_parts)
        else:
            below = grow(part.below(cut.axis, cut.at), cut.shards_below)
            above = grow(part.above(cut.axis, cut.at), n_parts - cut.shards_below)
            nodes[node] = (cut.axis, cut.at, below, above)
        return node

    grow(plane, n_shards)
    axes, cuts, below, above = zip(*nodes, strict=True)
    n_leaves = len(leaf_parts)
    return Areas(
        np.array(axes, np.int8),
        np.array(cuts, np.float64),
        np.array(below, np.int32),
        np.array(above, np.int32),
        np.concatenate([[0], np.cumsum(leaf_parts)]).astype(np.int64),
        np.arange(n_shards, dtype=np.int32),
        np.zeros(n_leaves, np.uint8),
        np.array([n_leaves, n_shards], np.int64),
    )

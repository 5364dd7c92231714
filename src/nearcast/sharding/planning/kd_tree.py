"""Grows the k-d tree of a shard plan: leaves of about equal cost, cut where few subscriptions lie across."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.sharding.routing.areas import LEAF, Areas

MOST_UNEVEN = 1.15
"""Cost per shard on the costlier side over the mean. If no cut is as even, one spot is too costly, and no cut helps."""

_NEARLY = 0.03  # cuts this much less even than the best count as equal: the one across the fewest boxes wins
_MIDDLE = (0.3, 0.7)  # shares of the cost: a cut near the edge also crosses few boxes, but leaves slivers


class Plane(NamedTuple):
    """Messages and subscription rows in a part of the plane."""

    points: np.ndarray  # float64[n,2]  of messages
    costs: np.ndarray  # float64[n]  of messages
    boxes: np.ndarray  # float64[m,4]  of rows

    def halves(self, axis: int, cut: float) -> tuple[Plane, Plane]:
        """(the part below the cut, the part above it)."""
        is_below, boxes = self.points[:, axis] < cut, self.boxes
        below = Plane(self.points[is_below], self.costs[is_below], boxes[boxes[:, axis] < cut])
        return below, Plane(self.points[~is_below], self.costs[~is_below], boxes[boxes[:, axis + 2] >= cut])


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
            below, above = part.halves(cut.axis, cut.at)
            parts = (grow(below, cut.shards_below), grow(above, n_parts - cut.shards_below))
            nodes[node] = (cut.axis, cut.at, *parts)
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


class Cut(NamedTuple):
    """A division of the cost in proportion to the shards on each side."""

    axis: int
    at: float  # points below it are on one side, points on it or above it on the other
    shards_below: int
    uneven: float
    crossed: int  # boxes on both sides


def best_cut(points: np.ndarray, costs: np.ndarray, boxes: np.ndarray, n_shards: int) -> Cut | None:
    """The best cut for messages (points float64[n,2], costs float64[n]) and rows (boxes float64[m,4]), or None."""
    cuts = [cut for axis in (0, 1) if (cut := _on_axis(points[:, axis], costs, boxes[:, axis::2], n_shards, axis))]
    if not cuts:
        return None
    evenest = min(cut.uneven for cut in cuts)
    if evenest > MOST_UNEVEN:
        return None
    return min((cut for cut in cuts if cut.uneven <= evenest + _NEARLY), key=lambda cut: (cut.crossed, cut.axis))


def _on_axis(places: np.ndarray, costs: np.ndarray, sides: np.ndarray, n_shards: int, axis: int) -> Cut | None:
    order = np.argsort(places, kind="stable")
    places = places[order]
    spent = np.cumsum(costs[order])
    starts = np.flatnonzero(places[1:] > places[:-1]) + 1  # a cut may only lie between two different places
    if not len(starts):
        return None
    share = spent[starts - 1] / spent[-1]
    below = np.clip(np.rint(share * n_shards), 1, n_shards - 1)
    uneven = np.maximum(share / below, (1 - share) / (n_shards - below)) * n_shards
    at = places[starts]
    crossed = np.searchsorted(np.sort(sides[:, 0]), at) - np.searchsorted(np.sort(sides[:, 1]), at)
    k = _choice(share, uneven, crossed)
    return Cut(axis, float(at[k]), int(below[k]), float(uneven[k]), int(crossed[k]))


def _choice(share: np.ndarray, uneven: np.ndarray, crossed: np.ndarray) -> int:
    is_middle = (share >= _MIDDLE[0]) & (share <= _MIDDLE[1]) & (uneven <= MOST_UNEVEN)
    eligible = np.flatnonzero(is_middle) if is_middle.any() else np.arange(len(share))
    nearly = eligible[uneven[eligible] <= uneven[eligible].min() + _NEARLY]
    return int(nearly[np.lexsort((np.abs(share[nearly] - 0.5), crossed[nearly]))[0]])

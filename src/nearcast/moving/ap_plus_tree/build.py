"""Builds an AP+-tree: each node is divided by words or by place, whichever the cost model says is cheaper."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.moving.ap_plus_tree.costs import Fit, Motion, rebuild_penalty, update_penalty
from nearcast.moving.ap_plus_tree.tree import (
    ACROSS,
    BORDERS,
    DOWN,
    DUMMY,
    K_NODE,
    KIDS,
    KIND,
    LEVEL,
    NONE,
    S_NODE,
    USED_BORDERS,
    USED_KIDS,
    USED_NODES,
    Tree,
    with_nodes,
)

_MOST_COPIES = 6.0  # of a row, on average: grids below each other share this budget
_GAIN = 0.9  # a division must leave at most this share of the rows to verify


class Sample(NamedTuple):
    """What a build reads: rows by position, and where messages are expected."""

    ranks: np.ndarray  # int32[n,k]  the ranks of each row, ascending; -1 behind the last
    counts: np.ndarray  # int64[n]
    boxes: np.ndarray  # float64[n,4]
    chances: np.ndarray  # float64[ranks]  the probability that a message has the term of a rank
    points: np.ndarray  # float64[m,2]  places of messages; none: places are as likely as they are large


class Division(NamedTuple):
    """A way to divide a node. `cost` is in rows to verify in a step."""

    cost: float
    kind: int
    borders: np.ndarray
    across: int
    down: int
    copies: float = 1.0  # of a row, on average


class Node(NamedTuple):
    """A leaf that may be divided."""

    number: int
    items: np.ndarray  # int64[...]  its rows
    inside: np.ndarray  # int64[...]  the messages of the sample that are in its region
    depth: int = 1
    copies: float = _MOST_COPIES  # that may yet be made below it


class Builder:
    """Divides nodes of one tree, as deep as it pays."""

    def __init__(self, tree: Tree, sample: Sample, motion: Motion, fit: Fit) -> None:
        self.tree = tree
        self._sample = sample
        self._motion = motion
        self._fit = fit

    def divide(self, leaf: Node) -> None:
        """Divide a leaf, and its parts, as far as it pays."""
        if len(leaf.items) <= self._fit.theta_p:
            return
        ways = (self._by_words(leaf), self._by_place(leaf))
        best = min((way for way in ways if way is not None), key=lambda way: way.cost, default=None)
        if best is None or best.cost > _GAIN * self._motion.message_rate * len(leaf.items):
            return
        self._become(leaf.number, best)
        parts = self._fill_cuts(leaf) if best.kind == K_NODE else self._fill_cells(leaf, leaf.copies / best.copies)
        for part in parts:
            self.divide(part)

    # -- the two ways

    def _by_words(self, leaf: Node) -> Division | None:
        sample, items, level = self._sample, leaf.items, int(self.tree.nodes[leaf.number, LEVEL])
        if level >= sample.ranks.shape[1]:
            return None
        ranks = sample.ranks[items, level]
        used_up = int(np.count_nonzero(ranks < 0))
        values, weights = np.unique(ranks[ranks >= 0], return_counts=True)
        if len(values) < 2 and (used_up == 0 or len(values) == 0):
            return None
        chances = sample.chances[values]
        # Cuts of about equal cost: a cut costs its rows times the chance of its words.
        shares = np.cumsum(weights * np.maximum(chances, 1e-9))
        cuts = np.minimum((shares / shares[-1] * self._fit.f).astype(np.int64), self._fit.f - 1)
        is_first = np.concatenate([[True], cuts[1:] != cuts[:-1]])
        firsts = np.flatnonzero(is_first)
        in_cut, chance = np.add.reduceat(weights, firsts), np.add.reduceat(chances, firsts)
        cost = self._motion.message_rate * (float((in_cut * np.minimum(1.0, chance)).sum()) + used_up)
        return Division(cost, K_NODE, values[firsts][1:].astype(np.float64), len(firsts), 1)

    def _by_place(self, leaf: Node) -> Division | None:
        boxes, region = self._sample.boxes[leaf.items], self.tree.regions[leaf.number]
        covers = (boxes[:, :2] <= region[:2]).all(axis=1) & (boxes[:, 2:] >= region[2:]).all(axis=1)
        boxes = boxes[~covers]
        side = max(2, math.isqrt(self._fit.f))
        while len(boxes) and side > 1:
            across, down = _borders(boxes[:, 0], boxes[:, 2], side), _borders(boxes[:, 1], boxes[:, 3], side)
            grid = _overlapped(boxes, across, down)
            copies = float(((grid[1] - grid[0] + 1) * (grid[3] - grid[2] + 1)).sum() / len(boxes))
            if copies <= leaf.copies and len(across) + len(down):
                cost = self._grid_cost(grid, across, down, leaf.inside, region)
                cost += self._motion.message_rate * covers.sum()
                cost += self._penalties(len(leaf.items), across, down, leaf.depth)
                borders = np.concatenate([across, down])
                return Division(float(cost), S_NODE, borders, len(across) + 1, len(down) + 1, copies)
            side //= 2
        return None

    def _grid_cost(
        self, grid: np.ndarray, across: np.ndarray, down: np.ndarray, inside: np.ndarray, region: np.ndarray
    ) -> float:
        """Expected rows to verify: the rows of each cell times the chance that a message is there."""
        weights = _counts_in_cells(grid, len(across) + 1, len(down) + 1)
        if len(inside):
            points = self._sample.points[inside]
            columns, lines = (
                np.searchsorted(across, points[:, 0], "right"),
                np.searchsorted(down, points[:, 1], "right"),
            )
            chances = np.bincount(lines * (len(across) + 1) + columns, minlength=weights.size) / len(points)
            return self._motion.message_rate * float((weights.ravel() * chances).sum())
        widths, heights = _shares(across, region[0], region[2]), _shares(down, region[1], region[3])
        return self._motion.message_rate * float((weights * np.outer(heights, widths)).sum())

    def _penalties(self, n_rows: int, across: np.ndarray, down: np.ndarray, depth: int) -> float:
        spans = [borders[-1] - borders[0] for borders in (across, down) if len(borders) > 1]
        cell_side = min((span / len(across) for span in spans), default=0.0)
        n_terms = len(self._sample.chances)
        return update_penalty(self._motion, self._fit, n_rows, cell_side, depth) + rebuild_penalty(
            self._motion, self._fit, n_rows, n_terms, cell_side
        )

    # -- filling

    def _become(self, node: int, way: Division) -> None:
        """Turn a leaf into an inner node without children."""
        tree, used = self.tree, self.tree.used
        kids, borders = grown(tree.kids, int(used[USED_KIDS]) + way.across * way.down), tree.borders
        borders = grown(borders, int(used[USED_BORDERS]) + len(way.borders))
        self.tree = tree._replace(kids=kids, borders=borders)
        own = self.tree.nodes[node]
        own[KIND], own[ACROSS], own[DOWN] = way.kind, way.across, way.down
        own[KIDS], own[BORDERS], own[DUMMY] = used[USED_KIDS], used[USED_BORDERS], NONE
        kids[own[KIDS] : own[KIDS] + way.across * way.down] = NONE
        borders[own[BORDERS] : own[BORDERS] + len(way.borders)] = way.borders
        used[USED_KIDS] += way.across * way.down
        used[USED_BORDERS] += len(way.borders)

    def _leaf(self, level: int, region: np.ndarray) -> int:
        if self.tree.used[USED_NODES] == len(self.tree.nodes):
            self.tree = with_nodes(self.tree, 1)
        node = int(self.tree.used[USED_NODES])
        self.tree.used[USED_NODES] += 1
        self.tree.nodes[node] = 0
        self.tree.nodes[node, LEVEL], self.tree.nodes[node, DUMMY] = level, NONE
        self.tree.regions[node] = region
        return node

    def _fill_cuts(self, leaf: Node) -> Iterator[Node]:
        """Create the cuts; return them with their rows."""
        node, items = leaf.number, leaf.items
        own, region = self.tree.nodes[node].copy(), self.tree.regions[node].copy()
        level, at = int(own[LEVEL]), int(own[BORDERS])
        ranks = self._sample.ranks[items, level]
        borders = self.tree.borders[at : at + own[ACROSS] - 1]
        cuts = np.where(ranks < 0, own[ACROSS], np.searchsorted(borders, ranks, "right"))
        order = np.argsort(cuts, kind="stable")
        starts = np.searchsorted(cuts[order], np.arange(own[ACROSS] + 2))
        for cut in range(int(own[ACROSS]) + 1):
            is_dummy = cut == own[ACROSS]
            if is_dummy and level == 0:
                continue
            child = self._leaf(level if is_dummy else level + 1, region)
            if is_dummy:
                self.tree.nodes[node, DUMMY] = child
            else:
                self.tree.kids[own[KIDS] + cut] = child
            below = items[order[starts[cut] : starts[cut + 1]]]
            yield Node(child, below, leaf.inside, leaf.depth + 1, leaf.copies)

    def _fill_cells(self, leaf: Node, copies: float) -> Iterator[Node]:
        """Create the cells that rows overlap, and the dummy; return them with their rows."""
        node, items, inside = leaf.number, leaf.items, leaf.inside
        own, region = self.tree.nodes[node].copy(), self.tree.regions[node].copy()
        across = self.tree.borders[own[BORDERS] : own[BORDERS] + own[ACROSS] - 1].copy()
        down = self.tree.borders[own[BORDERS] + own[ACROSS] - 1 :][: own[DOWN] - 1].copy()
        boxes = self._sample.boxes[items]
        covers = (boxes[:, :2] <= region[:2]).all(axis=1) & (boxes[:, 2:] >= region[2:]).all(axis=1)
        dummy = self._leaf(int(own[LEVEL]), region)
        self.tree.nodes[node, DUMMY] = dummy
        yield Node(dummy, items[covers], inside, leaf.depth + 1, 0.0)  # all cover the region: by words or not at all
        items, boxes = items[~covers], boxes[~covers]
        cells, owners = _cells_and_rows(_overlapped(boxes, across, down), int(own[ACROSS]))
        points = self._sample.points[inside]
        columns, lines = np.searchsorted(across, points[:, 0], "right"), np.searchsorted(down, points[:, 1], "right")
        message_cells = lines * own[ACROSS] + columns
        xs, ys = np.concatenate([[region[0]], across, [region[2]]]), np.concatenate([[region[1]], down, [region[3]]])
        order = np.argsort(cells, kind="stable")
        used, starts = np.unique(cells[order], return_index=True)
        for cell, first, stop in zip(used.tolist(), starts, [*starts[1:], len(cells)], strict=True):
            line, column = divmod(cell, int(own[ACROSS]))
            child = self._leaf(int(own[LEVEL]), np.array([xs[column], ys[line], xs[column + 1], ys[line + 1]]))
            self.tree.kids[own[KIDS] + cell] = child
            below = items[owners[order[first:stop]]]
            yield Node(child, below, inside[message_cells == cell], leaf.depth + 1, copies)


def _borders(lows: np.ndarray, highs: np.ndarray, parts: int) -> np.ndarray:
    """At most parts - 1 borders, so that the middles of the boxes are spread evenly."""
    quantiles = np.quantile(lows / 2 + highs / 2, np.arange(1, parts) / parts)
    borders = np.unique(quantiles)
    return borders[(borders > lows.min()) & (borders <= highs.max())]


def _overlapped(boxes: np.ndarray, across: np.ndarray, down: np.ndarray) -> np.ndarray:
    """int64[4,n]: first and last column, first and last line of each box. A border belongs to the cell behind it."""
    sides = ((across, 0), (across, 2), (down, 1), (down, 3))
    return np.array([np.searchsorted(borders, boxes[:, k], "right") for borders, k in sides])


def _counts_in_cells(grid: np.ndarray, across: int, down: int) -> np.ndarray:
    """int64[down,across]: how many boxes overlap each cell, by sums over corners."""
    corners = np.zeros((down + 1, across + 1), np.int64)
    left, right, below, above = grid
    np.add.at(corners, (below, left), 1)
    np.add.at(corners, (below, right + 1), -1)
    np.add.at(corners, (above + 1, left), -1)
    np.add.at(corners, (above + 1, right + 1), 1)
    return np.asarray(corners.cumsum(axis=0).cumsum(axis=1)[:down, :across])


def _cells_and_rows(grid: np.ndarray, across: int) -> tuple[np.ndarray, np.ndarray]:
    """(cell, box) of each copy."""
    left, right, below, above = grid
    widths, heights = right - left + 1, above - below + 1
    copies = widths * heights
    owners = np.repeat(np.arange(len(left)), copies)
    k = np.arange(copies.sum()) - np.repeat(np.cumsum(copies) - copies, copies)
    return (below[owners] + k // widths[owners]) * across + left[owners] + k % widths[owners], owners


def _shares(borders: np.ndarray, low: float, high: float) -> np.ndarray:
    """The share of the length that each part has; ends at infinity count as one more part each."""
    if len(borders) == 0:
        return np.ones(1)
    ends = np.concatenate([[low], borders, [high]])
    if not np.isfinite(ends).all():
        step = (borders[-1] - borders[0]) / max(1, len(borders) - 1) if len(borders) > 1 else 1.0
        ends[0], ends[-1] = borders[0] - step, borders[-1] + step
    lengths = np.diff(ends)
    total = lengths.sum()
    return lengths / total if total > 0 else np.full(len(lengths), 1.0 / len(lengths))

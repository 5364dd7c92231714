"""Builds an AP+-tree: each node is divided by words or by place, whichever the cost model says is cheaper."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.ragged import distinct
from nearcast.moving.ap_plus_tree.costs import (
    Fit,
    Motion,
    division_cost,
    leaves_cost,
    rebuild_penalty,
    update_penalty,
)
from nearcast.moving.ap_plus_tree.sample import Sample
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
    PARENT,
    S_NODE,
    USED_BORDERS,
    USED_KIDS,
    USED_NODES,
    Tree,
    with_nodes,
)

_MOST_COPIES = 6.0  # of a row, on average: grids below each other share this budget
_GAIN = 0.9  # a division must cost at most this share of the leaf


class Division(NamedTuple):
    """A way to divide a node."""

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
    entering: np.ndarray  # int64[...]  the messages of the sample that enter it
    positions: np.ndarray  # int64[...]  how many of their ranks are used up
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
        best = min([*self._by_words(leaf), *self._by_place(leaf)], key=lambda way: way.cost, default=None)
        whole = leaves_cost(self._motion, np.array([len(leaf.items)]), self._live(np.array([len(leaf.entering)])))
        if best is None or best.cost > _GAIN * whole:
            return
        self._become(leaf.number, best)
        parts = self._fill_cuts(leaf) if best.kind == K_NODE else self._fill_cells(leaf, leaf.copies / best.copies)
        for part in parts:
            self.divide(part)

    def _live(self, sampled: np.ndarray) -> np.ndarray:
        """The live messages that messages of the sample stand for. None of them may still mean some."""
        return np.asarray((sampled + 0.5) * self._sample.scale)

    # -- the two ways

    def _by_words(self, leaf: Node) -> Iterator[Division]:
        sample, level = self._sample, int(self.tree.nodes[leaf.number, LEVEL])
        if level >= sample.ranks.shape[1]:
            return
        ranks = sample.ranks[leaf.items, level]
        used_up = int(np.count_nonzero(ranks < 0))
        values, weights = np.unique(ranks[ranks >= 0], return_counts=True)
        if len(values) == 0 or (len(values) < 2 and used_up == 0):
            return
        at, owners = sample.below(leaf.entering, leaf.positions)
        found = sample.message_ranks[at]
        places = np.searchsorted(values, found)
        is_value = places < len(values)
        is_value[is_value] = values[places[is_value]] == found[is_value]
        chances = np.bincount(places[is_value], minlength=len(values)) + 0.5
        # Cuts of about equal cost: a cut costs its rows times the messages with its words.
        shares = np.cumsum(weights * chances)
        for parts in _fanouts(self._fit.f, 4):
            cuts = np.minimum((shares / shares[-1] * parts).astype(np.int64), parts - 1)
            firsts = np.flatnonzero(np.concatenate([[True], cuts[1:] != cuts[:-1]]))
            # Words that no row has yet get a cut of their own: nearly every message has one.
            rows = np.concatenate([np.add.reduceat(weights, firsts), [0, used_up]])
            borders = np.append(values[firsts][1:], values[-1] + 1).astype(np.float64)
            messages = np.append(_entering(borders, found, owners)[0], len(leaf.entering) if level > 0 else 0)
            yield Division(self._cost(leaf, rows, messages), K_NODE, borders, len(borders) + 1, 1)

    def _by_place(self, leaf: Node) -> Iterator[Division]:
        boxes, region = self._sample.boxes[leaf.items], self.tree.regions[leaf.number]
        covers = (boxes[:, :2] <= region[:2]).all(axis=1) & (boxes[:, 2:] >= region[2:]).all(axis=1)
        boxes = boxes[~covers]
        if len(boxes) == 0:
            return
        xs, ys = np.sort(boxes[:, 0] / 2 + boxes[:, 2] / 2), np.sort(boxes[:, 1] / 2 + boxes[:, 3] / 2)
        for side in _fanouts(max(2, math.isqrt(self._fit.f)), 2):
            across, down = _borders(xs, side), _borders(ys, side)
            grid = _overlapped(boxes, across, down)
            copies = float(((grid[1] - grid[0] + 1) * (grid[3] - grid[2] + 1)).sum() / len(boxes))
            if copies > leaf.copies or len(across) + len(down) == 0:
                continue
            n_covers = int(covers.sum())
            rows = np.append(_counts_in_cells(grid, len(across) + 1, len(down) + 1).ravel(), n_covers)
            in_cells = np.bincount(self._cells_of(leaf.entering, across, down), minlength=len(rows) - 1)
            messages = np.append(in_cells, len(leaf.entering) if n_covers else 0)
            cost = self._cost(leaf, rows, messages) + self._penalties(leaf, boxes, across, down)
            borders = np.concatenate([across, down])
            yield Division(cost, S_NODE, borders, len(across) + 1, len(down) + 1, copies)

    def _cost(self, leaf: Node, rows: np.ndarray, messages: np.ndarray) -> float:
        entering = float(self._live(np.array([len(leaf.entering)]))[0])
        below = leaves_cost(self._motion, rows, messages * self._sample.scale)  # messages visit empty leaves too
        return below + division_cost(self._motion, self._fit, entering)

    def _cells_of(self, messages: np.ndarray, across: np.ndarray, down: np.ndarray) -> np.ndarray:
        points = self._sample.points[messages]
        columns, lines = np.searchsorted(across, points[:, 0], "right"), np.searchsorted(down, points[:, 1], "right")
        return np.asarray(lines * (len(across) + 1) + columns)

    def _penalties(self, leaf: Node, boxes: np.ndarray, across: np.ndarray, down: np.ndarray) -> float:
        level, n_rows = int(self.tree.nodes[leaf.number, LEVEL]), len(leaf.items)
        n_terms = len(distinct(self._sample.ranks[leaf.items, level])) if level < self._sample.ranks.shape[1] else 0
        velocity = self._motion.velocity or float((boxes[:, 2:] - boxes[:, :2]).mean()) / 4
        leaving = float(_share_leaving(boxes, across, down, velocity)) * len(boxes)
        return update_penalty(self._motion, self._fit, leaving, leaf.depth) + rebuild_penalty(
            self._motion, self._fit, n_rows, n_terms, leaving
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

    def _leaf(self, parent: int, level: int, region: np.ndarray) -> int:
        if self.tree.used[USED_NODES] == len(self.tree.nodes):
            self.tree = with_nodes(self.tree, 1)
        node = int(self.tree.used[USED_NODES])
        self.tree.used[USED_NODES] += 1
        self.tree.nodes[node] = 0
        self.tree.nodes[node, LEVEL], self.tree.nodes[node, DUMMY] = level, NONE
        self.tree.nodes[node, PARENT] = parent
        self.tree.regions[node] = region
        return node

    def _fill_cuts(self, leaf: Node) -> Iterator[Node]:
        """Create the cuts; return them with their rows and messages."""
        node, items, sample = leaf.number, leaf.items, self._sample
        own, region = self.tree.nodes[node].copy(), self.tree.regions[node].copy()
        level, at, n_cuts = int(own[LEVEL]), int(own[BORDERS]), int(own[ACROSS])
        ranks = sample.ranks[items, level]
        borders = self.tree.borders[at : at + n_cuts - 1].copy()
        rows = _Groups(np.where(ranks < 0, n_cuts, np.searchsorted(borders, ranks, "right")), n_cuts + 1)
        places, owners = sample.below(leaf.entering, leaf.positions)
        _, cuts, first = _entering(borders, sample.message_ranks[places], owners)
        messages, following = _Groups(cuts, n_cuts), places - sample.starts[leaf.entering[owners]] + 1
        for cut in range(n_cuts + 1):
            is_dummy = cut == n_cuts
            if is_dummy and level == 0:
                continue
            child = self._leaf(node, level if is_dummy else level + 1, region)
            if is_dummy:
                self.tree.nodes[node, DUMMY] = child
                entering, positions = leaf.entering, leaf.positions
            else:
                self.tree.kids[own[KIDS] + cut] = child
                own_messages = first[messages.of(cut)]
                entering, positions = leaf.entering[owners[own_messages]], following[own_messages]
            yield Node(child, items[rows.of(cut)], entering, positions, leaf.depth + 1, leaf.copies)

    def _fill_cells(self, leaf: Node, copies: float) -> Iterator[Node]:
        """Create all cells, and the dummy if rows are for it; return them with their rows and messages."""
        node, items = leaf.number, leaf.items
        own, region = self.tree.nodes[node].copy(), self.tree.regions[node].copy()
        across = self.tree.borders[own[BORDERS] : own[BORDERS] + own[ACROSS] - 1].copy()
        down = self.tree.borders[own[BORDERS] + own[ACROSS] - 1 :][: own[DOWN] - 1].copy()
        boxes = self._sample.boxes[items]
        covers = (boxes[:, :2] <= region[:2]).all(axis=1) & (boxes[:, 2:] >= region[2:]).all(axis=1)
        if covers.any():  # these rows are divided by words or not at all
            dummy = self._leaf(node, int(own[LEVEL]), region)
            self.tree.nodes[node, DUMMY] = dummy
            yield Node(dummy, items[covers], leaf.entering, leaf.positions, leaf.depth + 1, 0.0)
        items, boxes = items[~covers], boxes[~covers]
        cells, owners = _cells_and_rows(_overlapped(boxes, across, down), int(own[ACROSS]))
        n_cells = int(own[ACROSS]) * int(own[DOWN])
        rows, messages = _Groups(cells, n_cells), _Groups(self._cells_of(leaf.entering, across, down), n_cells)
        xs, ys = np.concatenate([[region[0]], across, [region[2]]]), np.concatenate([[region[1]], down, [region[3]]])
        for cell in range(n_cells):
            line, column = divmod(cell, int(own[ACROSS]))
            corners = np.array([xs[column], ys[line], xs[column + 1], ys[line + 1]])
            child = self._leaf(node, int(own[LEVEL]), corners)
            self.tree.kids[own[KIDS] + cell] = child
            inside = messages.of(cell)
            entering, positions = leaf.entering[inside], leaf.positions[inside]
            yield Node(child, items[owners[rows.of(cell)]], entering, positions, leaf.depth + 1, copies)


class _Groups:
    """Items by group number."""

    def __init__(self, groups: np.ndarray, n: int) -> None:
        self._order = np.argsort(groups, kind="stable")
        self._starts = np.searchsorted(groups[self._order], np.arange(n + 1))

    def of(self, group: int) -> np.ndarray:
        """The positions of a group's items."""
        return np.asarray(self._order[self._starts[group] : self._starts[group + 1]])


def _fanouts(most: int, factor: int) -> Iterator[int]:
    """Numbers of parts to try: the most, and smaller ones down to 2."""
    while most >= 2:
        yield most
        most //= factor


def _entering(borders: np.ndarray, ranks: np.ndarray, owners: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(messages of each cut, cut of each entry, the first rank of each entry). A message enters a cut once."""
    cuts = np.searchsorted(borders, ranks, "right")
    is_first = np.ones(len(cuts), bool)
    is_first[1:] = (cuts[1:] != cuts[:-1]) | (owners[1:] != owners[:-1])
    first = np.flatnonzero(is_first)
    return np.bincount(cuts[first], minlength=len(borders) + 1), cuts[first], first


def _borders(middles: np.ndarray, parts: int) -> np.ndarray:
    """At most parts - 1 borders, so that the ascending middles of the boxes are spread evenly."""
    borders = np.unique(middles[len(middles) * np.arange(1, parts) // parts])
    return borders[borders > middles[0]]


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


def _share_leaving(boxes: np.ndarray, across: np.ndarray, down: np.ndarray, velocity: float) -> float:
    """The share of boxes that leave or enter a cell when their sides move so far, in one direction of two."""
    stays = np.ones(len(boxes))
    for borders, k in ((across, 0), (across, 2), (down, 1), (down, 3)):
        after = np.searchsorted(borders, [boxes[:, k] - velocity, boxes[:, k] + velocity], "right")
        stays *= 1 - (np.searchsorted(borders, boxes[:, k], "right") != after).mean(axis=0)
    return float(1 - stays.mean()) if len(boxes) else 0.0


def _cells_and_rows(grid: np.ndarray, across: int) -> tuple[np.ndarray, np.ndarray]:
    """(cell, box) of each copy."""
    left, right, below, above = grid
    widths, heights = right - left + 1, above - below + 1
    copies = widths * heights
    owners = np.repeat(np.arange(len(left)), copies)
    k = np.arange(copies.sum()) - np.repeat(np.cumsum(copies) - copies, copies)
    return (below[owners] + k // widths[owners]) * across + left[owners] + k % widths[owners], owners

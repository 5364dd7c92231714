"""Dividing rows below a node, from the top down, until every leaf is small enough or cannot be divided."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.indexes.ap_tree.division import Cuts, Divider, Grid, Situation
from nearcast.indexes.ap_tree.entries import write_entry
from nearcast.indexes.ap_tree.nodes import (
    ACROSS,
    BY_PLACE,
    BY_WORDS,
    CHILD,
    COUNT,
    DOWN,
    DUMMY,
    EDGES,
    FIRST,
    HIGH,
    K_NODE,
    KIND,
    LEAF,
    LEVEL,
    NONE,
    ROOM,
    S_NODE,
    USED_CELLS,
    USED_CUTS,
    USED_EDGES,
    USED_ENTRIES,
    USED_NODES,
    WEIGHT,
    Tree,
    column_of,
    covers,
)

Spans = tuple[np.ndarray, np.ndarray]
"""Items, child by child, and where each child's start: those of the dummy come last."""


class Builder:
    """Builds subtrees. A node that is given keeps its number, level, flags, region and copies."""

    def __init__(self, tree: Tree, divider: Divider) -> None:
        self._tree = tree
        self._divider = divider
        self._theta = divider.settings.theta_p

    def build(self, node: int, items: np.ndarray) -> None:
        """Make `node` the root of a tree of these items of the divider's rows."""
        self._tree.shape.nodes[node, WEIGHT] = len(items)
        waiting = [(node, items)]
        while waiting:
            node, items = waiting.pop()
            waiting += self._divide(node, items)

    def _divide(self, node: int, items: np.ndarray) -> list[tuple[int, np.ndarray]]:
        """Make it a leaf, or divide it: then the children that may yet be divided, with their items."""
        facts, flags = self._tree.facts, int(self._tree.facts.flags[node])
        division = None
        if len(items) > self._theta and flags:
            level = int(self._tree.shape.nodes[node, LEVEL])
            situation = Situation(items, level, facts.regions[node].copy(), float(facts.ratios[node]))
            division = self._divider.best(situation, flags)
        if division is None:
            self._make_leaf(node, items)
            return []
        spans = self._cut(node, items, division) if isinstance(division, Cuts) else self._grid(node, items, division)
        return self._fill(node, spans)

    def _make_leaf(self, node: int, items: np.ndarray) -> None:
        """A leaf that is too large and cannot be divided is tried again when it has doubled."""
        self._tree.reserve(entries=len(items))
        shape, facts = self._tree.shape, self._tree.facts
        shape.nodes[node, KIND] = LEAF
        facts.limits[node] = self._theta if len(items) <= self._theta else 2 * len(items)
        _write_leaves(shape, facts, self._divider.rows, (items, np.array((0, len(items)))), np.array((node,)))

    # -- the two kinds of inner nodes

    def _cut(self, node: int, items: np.ndarray, cuts: Cuts) -> Spans:
        n = len(cuts.lows)
        starts = np.zeros(n + 2, np.int64)
        spread = np.empty(len(items), np.int32)
        _spread_by_cut(self._divider.rows, items, cuts.level, cuts.lows, starts, spread)
        self._tree.reserve(nodes=n + 1, cuts=n)
        shape, head = self._tree.shape, self._tree.head
        first, child = int(head[USED_CUTS]), int(head[USED_NODES])
        head[USED_CUTS] += n
        is_single = cuts.lows == cuts.highs
        part = slice(first, first + n)
        shape.lows[part], shape.kids[part, HIGH] = cuts.lows, cuts.highs
        shape.kids[part, CHILD] = 2 * np.arange(child, child + n) + is_single
        level = shape.nodes[node, LEVEL]
        shape.nodes[node, [KIND, LEVEL, FIRST, COUNT, ROOM, EDGES]] = K_NODE, cuts.level, first, n, n, level
        self._add_children(node, np.diff(starts), 1.0)
        shape.nodes[child : child + n, LEVEL] = cuts.level + is_single
        return spread, starts

    def _grid(self, node: int, items: np.ndarray, grid: Grid) -> Spans:
        across, down = len(grid.across) + 1, len(grid.down) + 1
        n = across * down
        starts = np.zeros(n + 2, np.int64)
        region, boxes = self._tree.facts.regions[node].copy(), self._divider.rows.boxes
        copied = _count_cells(boxes, items, region, grid.across, grid.down, starts)
        spread = np.empty(copied, np.int32)
        _spread_by_cell(boxes, items, region, (grid.across, grid.down), starts, spread)
        weights = np.diff(starts)
        self._tree.reserve(nodes=n + 1, cells=n, edges=across + down)
        shape, facts, head = self._tree.shape, self._tree.facts, self._tree.head
        first, edge, child = int(head[USED_CELLS]), int(head[USED_EDGES]), int(head[USED_NODES])
        head[USED_CELLS] += n
        head[USED_EDGES] += across + down - 2
        shape.edges[edge : edge + across + down - 2] = np.concatenate([grid.across, grid.down])
        held = weights[:-1] > 0
        numbers = child + np.cumsum(held) - 1
        shape.cells[first : first + n] = np.where(held, numbers, NONE)
        shape.nodes[node, [KIND, FIRST, ACROSS, DOWN, EDGES]] = S_NODE, first, across, down, edge
        kept = np.concatenate([weights[:-1][held], weights[-1:]])
        self._add_children(node, kept, len(items) / copied)
        facts.regions[numbers[held]] = _cells_of(region, grid)[held]
        return spread, np.concatenate([starts[:-2][held], starts[-2:]])

    def _add_children(self, node: int, weights: np.ndarray, kept: float) -> None:
        """Nodes of these weights, the last of them the dummy, if it has any; each may make `kept` of the copies."""
        shape, facts, head = self._tree.shape, self._tree.facts, self._tree.head
        n = len(weights) - 1 + int(weights[-1] > 0)
        first, is_k = int(head[USED_NODES]), shape.nodes[node, KIND] == K_NODE
        head[USED_NODES] += n
        part = slice(first, first + n)
        shape.nodes[part] = 0
        shape.nodes[part, LEVEL] = shape.nodes[node, LEVEL]
        shape.nodes[part, DUMMY] = NONE
        shape.nodes[part, WEIGHT] = facts.built[part] = weights[:n]
        facts.limits[part] = self._theta
        facts.flags[part] = facts.flags[node]
        facts.ratios[part] = facts.ratios[node] * kept
        facts.regions[part] = facts.regions[node]
        shape.nodes[node, DUMMY] = NONE
        if n == len(weights):
            shape.nodes[node, DUMMY] = first + n - 1
            facts.flags[first + n - 1] &= BY_PLACE if is_k else BY_WORDS

    def _fill(self, node: int, spans: Spans) -> list[tuple[int, np.ndarray]]:
        """Write the small children of the node that was divided last; the large ones are still to do."""
        items, starts = spans
        counts = np.diff(starts)
        end = int(self._tree.head[USED_NODES])
        children = np.arange(end - np.count_nonzero(counts), end)
        starts = starts if counts[-1] else starts[:-1]
        counts = np.diff(starts)
        small = counts <= self._theta
        self._tree.reserve(entries=int(counts[small].sum()))
        which = np.flatnonzero(small)
        numbers = np.full(len(children), NONE, np.int64)
        numbers[which] = children[which]
        _write_leaves(self._tree.shape, self._tree.facts, self._divider.rows, (items, starts), numbers)
        return [(int(children[k]), items[starts[k] : starts[k + 1]]) for k in np.flatnonzero(~small)[::-1]]


def _cells_of(region: np.ndarray, grid: Grid) -> np.ndarray:
    """The region of each cell, row by row from below."""
    xs = np.concatenate([region[:1], np.clip(grid.across, region[0], region[2]), region[2:3]])
    ys = np.concatenate([region[1:2], np.clip(grid.down, region[1], region[3]), region[3:]])
    cells = np.empty((len(ys) - 1, len(xs) - 1, 4))
    cells[:, :, 0], cells[:, :, 2] = xs[:-1], xs[1:]
    cells[:, :, 1], cells[:, :, 3] = ys[:-1, None], ys[1:, None]
    return cells.reshape(-1, 4)


@kernel
def _write_leaves(shape, facts, rows, spans, nodes):
    """Give each node (NONE: left out) its span of the items as entries; the caller has made room."""
    items, starts = spans
    head = facts.head
    for i in range(len(nodes)):
        if nodes[i] < 0:
            continue
        line = shape.nodes[nodes[i]]
        line[FIRST] = head[USED_ENTRIES]
        line[COUNT] = line[ROOM] = starts[i + 1] - starts[i]
        for k in range(starts[i], starts[i + 1]):
            write_entry(shape, head[USED_ENTRIES], rows, items[k])
            head[USED_ENTRIES] += 1


@kernel
def _spread_by_cut(rows, items, level, lows, starts, out):
    """Items in order of their cuts, those without a rank at the level last; stable."""
    n = len(lows)
    which = np.empty(len(items), np.int32)
    for i in range(len(items)):
        at = rows.starts[items[i]] + level
        is_left = at < rows.starts[items[i] + 1]
        which[i] = np.searchsorted(lows, rows.ranks[at], side="right") - 1 if is_left else n
        starts[which[i] + 1] += 1
    for k in range(n + 1):
        starts[k + 1] += starts[k]
    places = starts.copy()
    for i in range(len(items)):
        out[places[which[i]]] = items[i]
        places[which[i]] += 1


@kernel
def _count_cells(boxes, items, region, across, down, starts):
    """Where the items of each cell will start, those that cover the region last; return how many copies there are."""
    n, columns = len(starts) - 2, len(across) + 1
    for i in range(len(items)):
        box = boxes[items[i]]
        if covers(box, region):
            starts[n + 1] += 1
            continue
        left, right = column_of(across, 0, len(across), box[0]), column_of(across, 0, len(across), box[2])
        for y in range(column_of(down, 0, len(down), box[1]), column_of(down, 0, len(down), box[3]) + 1):
            for x in range(left, right + 1):
                starts[y * columns + x + 1] += 1
    for k in range(n + 1):
        starts[k + 1] += starts[k]
    return starts[n + 1]


@kernel
def _spread_by_cell(boxes, items, region, grid, starts, out):
    across, down = grid
    n, columns = len(starts) - 2, len(across) + 1
    places = starts.copy()
    for i in range(len(items)):
        box = boxes[items[i]]
        if covers(box, region):
            out[places[n]] = items[i]
            places[n] += 1
            continue
        left, right = column_of(across, 0, len(across), box[0]), column_of(across, 0, len(across), box[2])
        for y in range(column_of(down, 0, len(down), box[1]), column_of(down, 0, len(down), box[3]) + 1):
            for x in range(left, right + 1):
                out[places[y * columns + x]] = items[i]
                places[y * columns + x] += 1

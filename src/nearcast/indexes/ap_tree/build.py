"""Divides rows below a node, from the top down, until every leaf is small enough or cannot be divided."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import starts_of
from nearcast.indexes.ap_tree import layout
from nearcast.indexes.ap_tree.cells import grid_counts
from nearcast.indexes.ap_tree.division import Cuts, Divider, Grid, Undivided
from nearcast.indexes.ap_tree.layout import Tree, cells_of_box, covers, write_entry


class ChildItems(NamedTuple):
    """Items child by child; those of the dummy come last."""

    items: np.ndarray  # int32[...]
    starts: np.ndarray  # int64[children+1]  where those of each child start


class Builder:
    """Builds subtrees. The root of a subtree keeps its number, level, flags, region and copies."""

    def __init__(self, tree: Tree, divider: Divider) -> None:
        self._tree = tree
        self._divider = divider
        self._theta = divider.settings.theta_p

    def build(self, node: int, items: np.ndarray) -> None:
        """Make `node` the root of a tree of these items of the divider's rows."""
        self._tree.view.nodes[node, layout.WEIGHT] = len(items)
        waiting = [(node, items)]
        while waiting:
            node, items = waiting.pop()
            waiting += self._divide(node, items)

    def _divide(self, node: int, items: np.ndarray) -> list[tuple[int, np.ndarray]]:
        """Make a node a leaf, or divide it and return the children that may be divided further, with their items."""
        facts, flags = self._tree.facts, int(self._tree.facts.flags[node])
        division = None
        if len(items) > self._theta and flags:
            level = int(self._tree.view.nodes[node, layout.LEVEL])
            undivided = Undivided(items, level, facts.regions[node].copy(), float(facts.ratios[node]))
            division = self._divider.best(undivided, flags)
        if division is None:
            self._make_leaf(node, items)
            return []
        below = self._cut(node, items, division) if isinstance(division, Cuts) else self._grid(node, items, division)
        return self._fill(below)

    def _make_leaf(self, node: int, items: np.ndarray) -> None:
        """Make a node a leaf. One that is too large and cannot be divided is tried again when it has doubled."""
        self._tree.reserve(entries=len(items))
        view, facts = self._tree.view, self._tree.facts
        view.nodes[node, layout.KIND] = layout.LEAF
        facts.limits[node] = self._theta if len(items) <= self._theta else 2 * len(items)
        _write_leaves(view, facts, self._divider.rows, ChildItems(items, np.array((0, len(items)))), np.array((node,)))

    def _cut(self, node: int, items: np.ndarray, cuts: Cuts) -> ChildItems:
        n = len(cuts.lows)
        starts = np.zeros(n + 2, np.int64)
        spread = np.empty(len(items), np.int32)
        _spread_by_cut(self._divider.rows, items, cuts.level, cuts.lows, starts, spread)
        self._tree.reserve(nodes=n + 1, cuts=n)
        view, head = self._tree.view, self._tree.head
        first, child = int(head[layout.USED_CUTS]), int(head[layout.USED_NODES])
        head[layout.USED_CUTS] += n
        is_single = cuts.lows == cuts.highs
        part = slice(first, first + n)
        view.lows[part], view.kids[part, layout.HIGH] = cuts.lows, cuts.highs
        view.kids[part, layout.CHILD] = 2 * np.arange(child, child + n) + is_single
        level = view.nodes[node, layout.LEVEL]
        columns = [layout.KIND, layout.LEVEL, layout.FIRST, layout.COUNT, layout.ROOM, layout.EDGES]
        view.nodes[node, columns] = layout.K_NODE, cuts.level, first, n, n, level
        self._add_children(node, np.diff(starts), 1.0)
        view.nodes[child : child + n, layout.LEVEL] = cuts.level + is_single
        return ChildItems(spread, starts)

    def _grid(self, node: int, items: np.ndarray, grid: Grid) -> ChildItems:
        across, down = len(grid.across) + 1, len(grid.down) + 1
        n = across * down
        region, boxes = self._tree.facts.regions[node].copy(), self._divider.rows.boxes
        counts, covering = grid_counts(boxes[items], region, grid.across, grid.down)
        weights = np.append(counts.ravel(), covering)
        starts = starts_of(weights)
        spread = np.empty(starts[-1], np.int32)
        _spread_by_cell(boxes, items, region, grid.across, grid.down, starts, spread)
        self._tree.reserve(nodes=n + 1, cells=n, edges=across + down)
        view, facts, head = self._tree.view, self._tree.facts, self._tree.head
        first, edge, child = int(head[layout.USED_CELLS]), int(head[layout.USED_EDGES]), int(head[layout.USED_NODES])
        head[layout.USED_CELLS] += n
        head[layout.USED_EDGES] += across + down - 2
        view.edges[edge : edge + across + down - 2] = np.concatenate([grid.across, grid.down])
        is_used = weights[:-1] > 0
        numbers = child + np.cumsum(is_used) - 1
        view.cells[first : first + n] = np.where(is_used, numbers, layout.NONE)
        columns = [layout.KIND, layout.FIRST, layout.ACROSS, layout.DOWN, layout.EDGES]
        view.nodes[node, columns] = layout.S_NODE, first, across, down, edge
        kept = np.concatenate([weights[:-1][is_used], weights[-1:]])
        self._add_children(node, kept, len(items) / len(spread))
        facts.regions[numbers[is_used]] = _cells_of(region, grid)[is_used]
        return ChildItems(spread, np.concatenate([starts[:-2][is_used], starts[-2:]]))

    def _add_children(self, node: int, weights: np.ndarray, kept: float) -> None:
        """Add children with these weights; the last, the dummy, only if not empty. Each may make `kept` copies."""
        view, facts, head = self._tree.view, self._tree.facts, self._tree.head
        n = len(weights) - 1 + int(weights[-1] > 0)
        first, is_k = int(head[layout.USED_NODES]), view.nodes[node, layout.KIND] == layout.K_NODE
        head[layout.USED_NODES] += n
        part = slice(first, first + n)
        view.nodes[part] = 0
        view.nodes[part, layout.LEVEL] = view.nodes[node, layout.LEVEL]
        view.nodes[part, layout.DUMMY] = layout.NONE
        view.nodes[part, layout.WEIGHT] = facts.built[part] = weights[:n]
        facts.limits[part] = self._theta
        facts.flags[part] = facts.flags[node]
        facts.ratios[part] = facts.ratios[node] * kept
        facts.regions[part] = facts.regions[node]
        view.nodes[node, layout.DUMMY] = layout.NONE
        if n == len(weights):
            view.nodes[node, layout.DUMMY] = first + n - 1
            facts.flags[first + n - 1] &= layout.BY_PLACE if is_k else layout.BY_WORDS

    def _fill(self, below: ChildItems) -> list[tuple[int, np.ndarray]]:
        """Write the small children of the node that was divided last; return the large ones with their items."""
        items, starts = below
        counts = np.diff(starts)
        end = int(self._tree.head[layout.USED_NODES])
        children = np.arange(end - np.count_nonzero(counts), end)
        starts = starts if counts[-1] else starts[:-1]
        counts = np.diff(starts)
        small = counts <= self._theta
        self._tree.reserve(entries=int(counts[small].sum()))
        leaves = np.where(small, children, layout.NONE)
        _write_leaves(self._tree.view, self._tree.facts, self._divider.rows, ChildItems(items, starts), leaves)
        return [(int(children[k]), items[starts[k] : starts[k + 1]]) for k in np.flatnonzero(~small)[::-1]]


def _cells_of(region: np.ndarray, grid: Grid) -> np.ndarray:
    """The region of each cell, line by line from below."""
    xs = np.concatenate([region[:1], np.clip(grid.across, region[0], region[2]), region[2:3]])
    ys = np.concatenate([region[1:2], np.clip(grid.down, region[1], region[3]), region[3:]])
    cells = np.empty((len(ys) - 1, len(xs) - 1, 4))
    cells[:, :, 0], cells[:, :, 2] = xs[:-1], xs[1:]
    cells[:, :, 1], cells[:, :, 3] = ys[:-1, None], ys[1:, None]
    return cells.reshape(-1, 4)


@kernel
def _write_leaves(view, facts, rows, below, nodes):
    """Write the items of each node as entries; a node that is NONE is left out. The caller has made room."""
    items, starts = below.items, below.starts
    head = facts.head
    for i in range(len(nodes)):
        if nodes[i] < 0:
            continue
        line = view.nodes[nodes[i]]
        line[layout.FIRST] = head[layout.USED_ENTRIES]
        line[layout.COUNT] = line[layout.ROOM] = starts[i + 1] - starts[i]
        for k in range(starts[i], starts[i + 1]):
            write_entry(view, head[layout.USED_ENTRIES], rows, items[k])
            head[layout.USED_ENTRIES] += 1


@kernel
def _spread_by_cut(rows, items, level, lows, starts, out):
    """Write items in the order of their cuts, those without a rank at the level last, and where each cut starts."""
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
def _spread_by_cell(boxes, items, region, across, down, starts, out):
    """Write the items of each cell to out[starts:], those that cover the region last."""
    n, columns = len(starts) - 2, len(across) + 1
    places = starts.copy()
    for i in range(len(items)):
        box = boxes[items[i]]
        if covers(box, region):
            out[places[n]] = items[i]
            places[n] += 1
            continue
        cells = cells_of_box(across, down, box)
        for y in range(cells.below, cells.above + 1):
            for x in range(cells.left, cells.right + 1):
                out[places[y * columns + x]] = items[i]
                places[y * columns + x] += 1

"""What must hold of an AP-tree at any time, computed from the rows alone."""

from __future__ import annotations

import bisect

import numpy as np

from nearcast.indexes.ap_tree import ApTree
from nearcast.indexes.ap_tree.layout import (
    ACROSS,
    BY_PLACE,
    BY_WORDS,
    CHILD,
    COUNT,
    DEAD,
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
    PIVOT,
    ROOM,
    ROOT,
    ROW,
    SECOND,
    THIRD,
    USED_CELLS,
    USED_CUTS,
    USED_EDGES,
    USED_ENTRIES,
    USED_NODES,
    WEIGHT,
    XMAX,
    XMIN,
    YMAX,
    YMIN,
)


class Walk:
    """From the root down with all rows that should be there; every node is compared with what it should be."""

    def __init__(self, method: ApTree) -> None:
        self.structure, self.store = method.structure, method.store
        self.tree = method.structure.tree
        self.settings = method.structure._settings
        self.alive = np.zeros(DEAD, int)

    def expect_sound(self, rows: np.ndarray) -> None:
        self.ranks = {int(row): self.ranks_of(int(row)) for row in rows}
        waiting = [(ROOT, sorted(self.ranks))]
        while waiting:
            node, rows_here = waiting.pop()
            waiting += self.expect_node(node, rows_here)
        used, dead = self.tree.head[:DEAD], self.tree.head[DEAD:]
        assert (used - dead).tolist() == self.alive.tolist(), "what is not alive is counted as dead"

    def ranks_of(self, row: int) -> list[int]:
        arrays = self.store.arrays
        terms = arrays.terms[arrays.offsets[row] :][: arrays.n_terms[row]]
        ranks = sorted(self.structure.ranks.by_term[terms].tolist())
        assert ranks[0] > 0 and len(set(ranks)) == len(ranks)
        return ranks

    def expect_node(self, node: int, rows: list[int]) -> list[tuple[int, list[int]]]:
        line = self.tree.view.nodes[node].tolist()
        assert line[WEIGHT] == len(rows), f"node {node} weighs {line[WEIGHT]}, but {len(rows)} rows lead to it"
        self.alive[USED_NODES] += 1
        if line[KIND] == LEAF:
            self.expect_leaf(node, line, rows)
            return []
        children = self.cuts(node, line, rows) if line[KIND] == K_NODE else self.cells(node, line, rows)
        assert sum(bool(part) for _, part in children) >= 1 or not rows
        return children

    def expect_leaf(self, node: int, line: list[int], rows: list[int]) -> None:
        assert line[COUNT] <= line[ROOM]
        self.alive[USED_ENTRIES] += line[ROOM]
        part = slice(line[FIRST], line[FIRST] + line[COUNT])
        entries, sides = self.tree.view.entries[part], self.tree.view.sides[part]
        assert sorted(entries[:, ROW].tolist()) == rows
        for entry, side in zip(entries.tolist(), sides, strict=True):
            ranks = self.ranks[entry[ROW]]
            third = ranks[max(0, len(ranks) - 3)]
            assert entry[PIVOT] == ranks[-1] and entry[SECOND] == ranks[max(0, len(ranks) - 2)]
            assert entry[THIRD] == (~third if len(ranks) > 3 else third)
            box = self.store.arrays.boxes[entry[ROW]]
            assert side[XMIN] <= box[0] and side[YMIN] <= box[1] and side[XMAX] >= box[2] and side[YMAX] >= box[3]
        limit, flags = int(self.tree.facts.limits[node]), int(self.tree.facts.flags[node])
        assert len(rows) <= limit, "a leaf beyond its limit is divided"
        assert limit >= self.settings.theta_p
        if limit > self.settings.theta_p and flags:
            assert limit % 2 == 0 and limit > 2 * self.settings.theta_p, "it was tried at half of its limit"

    def cuts(self, node: int, line: list[int], rows: list[int]) -> list[tuple[int, list[int]]]:
        """Each row in the cut of its rank at the level, or in the dummy; cuts ascend and do not overlap."""
        view, part = self.tree.view, slice(line[FIRST], line[FIRST] + line[COUNT])
        self.alive[USED_CUTS] += line[ROOM]
        assert 1 <= line[COUNT] <= min(line[ROOM], max(self.settings.f, 2))
        assert self.tree.facts.flags[node] & BY_WORDS
        lows, highs = view.lows[part].tolist(), view.kids[part, HIGH].tolist()
        assert all(low <= high for low, high in zip(lows, highs, strict=True))
        assert all(high < low for high, low in zip(highs[:-1], lows[1:], strict=True))
        parts: list[list[int]] = [[] for _ in lows]
        used_up = []
        for row in rows:
            if len(self.ranks[row]) <= line[LEVEL]:
                used_up.append(row)
                continue
            rank = self.ranks[row][line[LEVEL]]
            cut = bisect.bisect_right(lows, rank) - 1
            assert cut >= 0 and rank <= highs[cut], f"row {row} fits no cut of node {node}"
            parts[cut].append(row)
        children = []
        for kid, rows_here in zip(view.kids[part, CHILD].tolist(), parts, strict=True):
            level = view.nodes[kid >> 1]
            base = level[EDGES] if level[KIND] == K_NODE else level[LEVEL]
            assert base == line[LEVEL] + (kid & 1), "a single term is behind, several are not"
            children.append((kid >> 1, rows_here))
        return children + self.dummy(line, used_up, BY_WORDS)

    def cells(self, node: int, line: list[int], rows: list[int]) -> list[tuple[int, list[int]]]:
        """Each row in every cell that it overlaps, or in the dummy where it covers the region."""
        view, region = self.tree.view, self.tree.facts.regions[node]
        across, down = line[ACROSS], line[DOWN]
        self.alive[USED_CELLS] += across * down
        self.alive[USED_EDGES] += across + down - 2
        assert 2 <= across * down <= self.settings.f
        assert self.tree.facts.flags[node] & BY_PLACE
        edges = view.edges[line[EDGES] : line[EDGES] + across + down - 2].tolist()
        xs, ys = edges[: across - 1], edges[across - 1 :]
        assert xs == sorted(set(xs)) and ys == sorted(set(ys))
        parts: dict[int, list[int]] = {cell: [] for cell in range(across * down)}
        covering = []
        for row in rows:
            box = self.store.arrays.boxes[row]
            if (box[:2] <= region[:2]).all() and (box[2:] >= region[2:]).all():
                covering.append(row)
                continue
            for y in range(bisect.bisect_right(ys, box[1]), bisect.bisect_right(ys, box[3]) + 1):
                for x in range(bisect.bisect_right(xs, box[0]), bisect.bisect_right(xs, box[2]) + 1):
                    parts[y * across + x].append(row)
        children = []
        for cell, rows_here in parts.items():
            child = int(view.cells[line[FIRST] + cell])
            assert child != NONE or not rows_here, f"cell {cell} of node {node} lacks {len(rows_here)} rows"
            if child != NONE:
                inside = self.tree.facts.regions[child]
                assert (inside[:2] >= region[:2]).all() and (inside[2:] <= region[2:]).all()
                children.append((child, rows_here))
        return children + self.dummy(line, covering, BY_PLACE)

    def dummy(self, line: list[int], rows: list[int], flag: int) -> list[tuple[int, list[int]]]:
        if line[DUMMY] == NONE:
            assert not rows
            return []
        assert not self.tree.facts.flags[line[DUMMY]] & flag
        return [(line[DUMMY], rows)]


def expect_sound(method: ApTree) -> None:
    rows = method.store.live_rows()
    Walk(method).expect_sound(rows[method.store.arrays.n_terms[rows] > 0])

"""What must hold of quadtrees, and of pivotal terms on their nodes, at any time, computed from their rows alone."""

from __future__ import annotations

from collections import Counter

import numpy as np

from nearcast.arrays.intmap import ABSENT
from nearcast.indexes.rq_tree import QuadForest
from nearcast.matching.store import RowStore
from nearcast.structures.boxes import outward
from nearcast.structures.quadtree.cells import FINEST
from nearcast.structures.quadtree.nodes import COPIES, GONE, LIMIT, N_FREE, NONE, ROOT, TAU_NUM, USED, QuadtreeArrays
from nearcast.structures.quadtree.pivots import covers
from nearcast.structures.quadtree.quadtrees import PivotalQuadtree

Cell = tuple[int, int, int]
"""Level, column, line."""


def expect_sound_forest(forest: QuadForest, store: RowStore, rows: list[int]) -> None:
    """Each row is below the root of one of its terms, and each of the trees is sound."""
    quad, all_cells = forest.arrays, {}
    for term, root in enumerate(forest.roots.tolist()):
        own = [row for row in rows if forest.filed[row] == term]
        assert root != NONE or not own
        if root != NONE:
            cells = walked(quad, root)
            assert not all_cells.keys() & cells.keys()
            all_cells |= cells
            spans = {row: span_by_hand(quad, store, row) for row in own}
            lists = expect_exact_lists(quad, store, cells, spans, {row: row for row in own})
            expect_counts(quad, cells, lists, spans)
    for row in rows:
        assert forest.filed[row] in store.arrays.terms[store.arrays.offsets[row] :][: store.arrays.n_terms[row]]
    for node in all_cells:
        part = slice(int(quad.lists.offsets[node]), int(quad.lists.offsets[node] + quad.lists.counts[node]))
        has_more = store.arrays.n_terms[quad.lists.rows[part]] > 2
        assert np.array_equal(quad.lists.pivots[part] < 0, has_more)
    expect_no_node_lost(quad, all_cells)
    assert quad.size[0] == 0


def expect_sound(tree: PivotalQuadtree, store: RowStore, rows: list[int], numbers: dict[int, int]) -> None:
    """`rows` are those in the tree, `numbers` what their lists are sorted by."""
    quad, cells = tree.arrays, cells_of(tree.arrays)
    spans = {row: span_by_hand(quad, store, row) for row in rows}
    lists = expect_exact_lists(quad, store, cells, spans, numbers)
    expect_counts(quad, cells, lists, spans)
    expect_exact_sets(tree, cells, lists)


def cells_of(quad: QuadtreeArrays) -> dict[int, Cell]:
    """The cell of each node of the one tree."""
    cells = walked(quad, ROOT)
    expect_no_node_lost(quad, cells)
    return cells


def walked(quad: QuadtreeArrays, root: int) -> dict[int, Cell]:
    """The cell of each node below a root, computed from its parent's."""
    nodes, waiting = quad.nodes, [root]
    cells: dict[int, Cell] = {root: (0, 0, 0)}
    assert nodes.parents[root] == NONE
    while waiting:
        node = waiting.pop()
        level, x, y = cells[node]
        assert (nodes.levels[node], nodes.xs[node], nodes.ys[node]) == (level, x, y)
        if nodes.children[node] == NONE:
            continue
        assert level < nodes.head[LIMIT]
        for quarter in range(4):
            child = int(nodes.children[node]) + quarter
            assert child not in cells and nodes.parents[child] == node
            cells[child] = (level + 1, 2 * x + quarter % 2, 2 * y + quarter // 2)
            waiting.append(child)
    return cells


def expect_no_node_lost(quad: QuadtreeArrays, cells: dict[int, Cell]) -> None:
    """Every number is in a tree or free, and none is both."""
    nodes = quad.nodes
    assert len(cells) + 4 * nodes.head[N_FREE] == nodes.head[USED] <= len(nodes.children)
    for first in nodes.free[: nodes.head[N_FREE]].tolist():
        assert (nodes.levels[first : first + 4] == GONE).all() and first not in cells
        assert not quad.lists.counts[first : first + 4].any() and not quad.lists.rooms[first : first + 4].any()


def span_by_hand(quad: QuadtreeArrays, store: RowStore, row: int) -> list[int]:
    return span_of_box(quad, outward(store.arrays.boxes[[row]])[0].astype(float))


def span_of_box(quad: QuadtreeArrays, box: np.ndarray) -> list[int]:
    """In NumPy, not in a kernel: where each side lies among 2^24 columns or lines."""
    bounds = quad.nodes.bounds
    with np.errstate(all="ignore"):
        shares = (box - np.tile(bounds[:2], 2)) / np.tile(bounds[2:] - bounds[:2], 2) * 2.0**FINEST
    return np.clip(shares, 0, 2.0**FINEST - 1).astype(np.int64).tolist()  # type: ignore[no-any-return]


def cells_at(span: list[int], level: int) -> set[Cell]:
    left, low, right, high = (side >> (FINEST - level) for side in span)
    return {(level, x, y) for x in range(left, right + 1) for y in range(low, high + 1)}


def depth_by_hand(quad: QuadtreeArrays, span: list[int]) -> int:
    """The deepest level with few enough cells. Sides alone are counted: a wide box has millions of fine cells."""
    depth = 0
    for level in range(1, int(quad.nodes.head[LIMIT]) + 1):
        left, low, right, high = (side >> (FINEST - level) for side in span)
        if (right - left + 1) * (high - low + 1) <= quad.nodes.head[COPIES]:
            depth = level
    return depth


def places_by_hand(quad: QuadtreeArrays, cells: dict[int, Cell], span: list[int]) -> set[int]:
    """The nodes at the row's depth, and the leaves above it, whose cells it overlaps."""
    depth = depth_by_hand(quad, span)
    overlapped = {level: cells_at(span, level) for level in range(depth + 1)}
    return {
        node
        for node, cell in cells.items()
        if cell in overlapped.get(cell[0], ()) and (cell[0] == depth or quad.nodes.children[node] == NONE)
    }


def expect_exact_lists(
    quad: QuadtreeArrays, store: RowStore, cells: dict[int, Cell], spans: dict[int, list[int]], numbers: dict[int, int]
) -> dict[int, list[int]]:
    """Each row is in the lists where it belongs, once and in order; entries show a term of it and its rounded box."""
    lists, arrays = quad.lists, store.arrays
    wanted: dict[int, list[int]] = {node: [] for node in cells}
    for row, span in spans.items():
        places = places_by_hand(quad, cells, span)
        assert 1 <= len(places) <= quad.nodes.head[COPIES]
        for node in places:
            wanted[node].append(row)
    found = {}
    for node in cells:
        part = slice(int(lists.offsets[node]), int(lists.offsets[node] + lists.counts[node]))
        assert lists.counts[node] <= lists.rooms[node]
        found[node] = lists.rows[part].tolist()
        assert found[node] == sorted(wanted[node], key=numbers.__getitem__)
        assert np.array_equal(lists.boxes[part], outward(arrays.boxes[lists.rows[part]]))
        for row, term in zip(found[node], lists.pivots[part].tolist(), strict=True):
            assert (~term if term < 0 else term) in arrays.terms[arrays.offsets[row] :][: arrays.n_terms[row]]
    return found


def expect_counts(
    quad: QuadtreeArrays, cells: dict[int, Cell], lists: dict[int, list[int]], spans: dict[int, list[int]]
) -> None:
    """What nodes say is below them; crowded leaves are cut unless nothing can be parted, thin quarters are joined."""
    nodes = quad.nodes
    tau_num, limit = int(nodes.head[TAU_NUM]), int(nodes.head[LIMIT])
    for node, (level, x, y) in cells.items():
        below = [
            other
            for other, (deeper, column, line) in cells.items()
            if deeper >= level and (column >> (deeper - level), line >> (deeper - level)) == (x, y)
        ]
        leaves = [other for other in below if nodes.children[other] == NONE]
        assert nodes.leaves[node] == len(leaves)
        assert nodes.entries[node] == sum(len(lists[other]) for other in below)
        if node in leaves:
            movable = [row for row in lists[node] if depth_by_hand(quad, spans[row]) > level]
            assert nodes.movable[node] == len(movable) < max(nodes.tries[node], tau_num)
            parted = {tuple(side >> (FINEST - limit) for side in spans[row]) for row in movable}
            assert len(movable) < tau_num or len(parted) == 1 or len(movable) < nodes.tries[node]
        else:
            assert nodes.movable[node] == 0
            assert len(leaves) > 4 or 2 * (nodes.entries[node] - len(lists[node])) >= tau_num


def expect_exact_sets(tree: PivotalQuadtree, cells: dict[int, Cell], lists: dict[int, list[int]]) -> None:
    """The sets by definition: a leaf's pivotal terms, a node's are its children's and its own list's; the cover set is
    what all four children have.
    """
    quad = tree.arrays
    own = {node: Counter(int(tree.pivots[row]) for row in rows) for node, rows in lists.items()}
    pivotal: dict[int, set[int]] = {}
    for node in sorted(cells, key=lambda each: -cells[each][0]):
        children = [int(quad.nodes.children[node]) + k for k in range(4)] if quad.nodes.children[node] != NONE else []
        pivotal[node] = set(own[node]).union(*(pivotal[child] for child in children))
    wanted = {(node, term) for node, terms in pivotal.items() for term in terms}
    used = quad.table.values != ABSENT
    found = {
        (key >> 32, key & 0xFFFFFFFF): value
        for key, value in zip(quad.table.keys[used].tolist(), quad.table.values[used].tolist(), strict=True)
    }
    assert set(found) == wanted and quad.size[0] == len(wanted)
    for (node, term), value in found.items():
        first = int(quad.nodes.children[node])
        among = sum(term in pivotal[first + k] for k in range(4)) if first != NONE else 0
        assert value == 8 * own[node][term] + among
        assert bool(covers(value)) == (among == 4)

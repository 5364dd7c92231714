"""What must hold of an IQ-tree at any time, computed from its rows alone: the cheapest cells, lists that follow."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nearcast.arrays.intmap import ABSENT
from nearcast.indexes.iq_tree import CellTree
from nearcast.indexes.iq_tree.cover import WHOLE
from nearcast.indexes.iq_tree.filing import LISTS, LISTS_FREE
from nearcast.matching.store import RowStore
from nearcast.structures.boxes import outward
from nearcast.structures.quadtree.cells import FINEST
from nearcast.structures.quadtree.nodes import GONE, LIMIT, N_FREE, NONE, ROOT, USED
from quad_soundness import Cell, span_by_hand, walked


def expect_sound_cells(tree: CellTree, store: RowStore, rows: list[int]) -> None:
    """The tree holds just these rows."""
    cells = walked(tree.arrays, ROOT)
    wanted: dict[tuple[Cell, int], list[int]] = {}
    for row in rows:
        term = int(tree.filed[row])
        assert term in terms_by_hand(store, row)
        for cell in cover_by_hand(tree, store, row):
            wanted.setdefault((cell, term), []).append(row)
    expect_exact_lists(tree, store, cells, wanted)
    expect_exact_nodes(tree, cells, wanted)


def terms_by_hand(store: RowStore, row: int) -> list[int]:
    arrays = store.arrays
    return arrays.terms[arrays.offsets[row] :][: arrays.n_terms[row]].tolist()  # type: ignore[no-any-return]


def cover_by_hand(tree: CellTree, store: RowStore, row: int) -> list[Cell]:
    span, met = span_by_hand(tree.arrays, store, row), 2 ** int(tree.doublings[row])
    return cheapest(tree, (0, 0, 0), span, met)[1]


def cheapest(tree: CellTree, cell: Cell, span: list[int], met: int) -> tuple[int, list[Cell]]:
    """What the cheapest cells within one cell cost, in shares of WHOLE, and which they are. A cell that is met at most
    once is as good as its quarters.
    """
    own = WHOLE + met * mass_by_hand(tree, cell)
    if own <= 2 * WHOLE or cell[0] == tree.arrays.nodes.head[LIMIT] or is_within(cell, span):
        return own, [cell]
    finer = 0
    cells: list[Cell] = []
    for quarter in quarters(cell):
        if overlaps(quarter, span):
            cost, below = cheapest(tree, quarter, span, met)
            finer, cells = finer + cost, cells + below
    return (finer, cells) if finer < own else (own, [cell])


def mass_by_hand(tree: CellTree, cell: Cell) -> int:
    """The counts of all levels lie one behind the other, line by line."""
    level, x, y = cell
    down = max(0, level - tree.masses.grid)
    first = sum(4**upper for upper in range(level - down))
    at = first + (y >> down) * 2 ** (level - down) + (x >> down)
    return int(tree.masses.cells[at]) // int(4**down)


def quarters(cell: Cell) -> Iterator[Cell]:
    level, x, y = cell
    return ((level + 1, 2 * x + right, 2 * y + up) for up in (0, 1) for right in (0, 1))


def sides(cell: Cell) -> tuple[int, int, int, int]:
    level, x, y = cell
    size = 2 ** (FINEST - level)
    return x * size, y * size, (x + 1) * size - 1, (y + 1) * size - 1


def overlaps(cell: Cell, span: list[int]) -> bool:
    left, low, right, high = sides(cell)
    return span[0] <= right and span[2] >= left and span[1] <= high and span[3] >= low


def is_within(cell: Cell, span: list[int]) -> bool:
    left, low, right, high = sides(cell)
    return span[0] <= left and right <= span[2] and span[1] <= low and high <= span[3]


def expect_exact_lists(
    tree: CellTree, store: RowStore, cells: dict[int, Cell], wanted: dict[tuple[Cell, int], list[int]]
) -> None:
    """Each list is found by its node and term, and has its rows, sorted, once; no list is empty, no number is lost."""
    table, lists = tree.arrays.table, tree.arrays.lists
    used = table.values != ABSENT
    numbers = table.values[used].tolist()
    found = {}
    for key, number in zip(table.keys[used].tolist(), numbers, strict=True):
        part = slice(int(lists.offsets[number]), int(lists.offsets[number] + lists.counts[number]))
        assert 0 < lists.counts[number] <= lists.rooms[number]
        rows = lists.rows[part].tolist()
        found[cells[key >> 32], key & 0xFFFFFFFF] = rows
        assert np.array_equal(lists.boxes[part], outward(store.arrays.boxes[rows]))
        for row, shown in zip(rows, lists.pivots[part].tolist(), strict=True):
            terms = terms_by_hand(store, row)
            assert (shown < 0) == (len(terms) > 2) and (~shown if shown < 0 else shown) in terms
            assert shown != tree.filed[row] or len(terms) == 1
    assert found == wanted
    free = tree.free[: tree.head[LISTS_FREE]].tolist()
    assert sorted([*numbers, *free]) == list(range(tree.head[LISTS])) and tree.arrays.size[0] == len(numbers)
    assert not lists.counts[free].any() and not lists.rooms[free].any()


def expect_exact_nodes(tree: CellTree, cells: dict[int, Cell], wanted: dict[tuple[Cell, int], list[int]]) -> None:
    """Nodes know how much is below them; four that have nothing are gone; none is lost."""
    nodes = tree.arrays.nodes
    for node, (level, x, y) in cells.items():
        below = [
            len(rows)
            for ((deeper, column, line), _), rows in wanted.items()
            if deeper >= level and (column >> (deeper - level), line >> (deeper - level)) == (x, y)
        ]
        assert nodes.entries[node] == sum(below)
        first = int(nodes.children[node])
        assert first == NONE or nodes.entries[first : first + 4].any()
    assert len(cells) + 4 * nodes.head[N_FREE] == nodes.head[USED] <= len(nodes.children)
    for first in nodes.free[: nodes.head[N_FREE]].tolist():
        assert (nodes.levels[first : first + 4] == GONE).all() and first not in cells

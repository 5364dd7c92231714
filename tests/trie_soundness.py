"""Invariants of a trie, computed from the rows alone: order, numbers, ranges, boxes, and free numbers."""

from __future__ import annotations

import numpy as np

from nearcast.matching.store import RowStore
from nearcast.structures.boxes import outward
from nearcast.structures.trie.layout import CHILDREN_USED, N_FREE, NONE, ROOT, ROWS_USED, USED, TrieArrays
from nearcast.structures.trie.trie import Trie, rank_sets


def expect_sound_trie(trie: Trie, store: RowStore, rows: np.ndarray) -> None:
    """The trie holds just these rows."""
    a = trie.arrays
    ranks, starts = rank_sets(store, trie.ranks, rows)
    sets = {row: tuple(ranks[starts[i] : starts[i + 1]].tolist()) for i, row in enumerate(rows.tolist())}
    paths = _paths(a)
    assert sorted(np.flatnonzero(a.leaves >= 0).tolist()) == sorted(sets), "each row is somewhere, and no other"
    order = []
    for node, path in sorted(paths.items(), key=lambda item: item[1]):
        own = _own_rows(a, node)
        assert all(sets[row] == path and a.leaves[row] == node for row in own), f"rows of node {node}"
        order += own
    assert sorted(order) == sorted(sets), "each row is in one list, once"
    assert (np.diff(a.numbers[order]) > 0).all(), "numbers rise in the order of term sets"
    for node in paths:
        _expect_sound_node(a, store, node, order)
    _expect_nothing_lost(a, set(paths))


def _paths(a: TrieArrays) -> dict[int, tuple[int, ...]]:
    """For each node its ranks; children are in order, more frequent than their parent, and know it."""
    paths: dict[int, tuple[int, ...]] = {ROOT: ()}
    waiting = [ROOT]
    while waiting:
        node = waiting.pop()
        first, count = (int(value) for value in a.spans[node, :2])
        ranks = a.children[first : first + count, 0].tolist()
        assert ranks == sorted(set(ranks)), f"children of node {node} are in order"
        assert node == ROOT or all(rank < paths[node][-1] for rank in ranks), f"rarest first, at node {node}"
        for rank, child in a.children[first : first + count].tolist():
            assert child not in paths and a.parents[child] == node and a.ranks[child] == rank
            paths[child] = (*paths[node], rank)
            waiting.append(child)
    return paths


def _own_rows(a: TrieArrays, node: int) -> list[int]:
    first, count = (int(value) for value in a.spans[node, 2:])
    return a.rows[first : first + count].tolist()  # type: ignore[no-any-return]


def _expect_sound_node(a: TrieArrays, store: RowStore, node: int, order: list[int]) -> None:
    below = [row for row in order if _is_below(a, int(a.leaves[row]), node)]
    assert a.below[node] == len(below), f"rows below node {node}"
    if not below:
        assert node == ROOT, f"node {node} has nothing below it"
        return
    assert a.ranges[node].tolist() == [a.numbers[below[0]], a.numbers[below[-1]]], f"range of node {node}"
    inside = [row for row in order if a.ranges[node, 0] <= a.numbers[row] <= a.ranges[node, 1]]
    assert inside == below, f"the range of node {node} has its rows and no other"
    first, count = (int(value) for value in a.spans[node, 2:])
    exact = outward(store.arrays.boxes[_own_rows(a, node)])
    assert np.array_equal(a.row_boxes[first : first + count], exact), f"boxes in the list of node {node}"
    around = _around(outward(store.arrays.boxes[below]))
    assert (a.boxes[node, :2] <= around[:2]).all() and (a.boxes[node, 2:] >= around[2:]).all(), f"box of node {node}"
    n = int(a.spans[node, 1] + a.spans[node, 3])
    assert a.debts[node] == 0 or (n > 32 and 8 * a.debts[node] < n), f"debt of node {node}"
    if not _has_debt_below(a, node):
        assert np.array_equal(a.boxes[node], around), f"the box of node {node} is tight"


def _is_below(a: TrieArrays, node: int, above: int) -> bool:
    while node not in (above, NONE):
        node = int(a.parents[node])
    return node == above


def _has_debt_below(a: TrieArrays, node: int) -> bool:
    if a.debts[node] > 0:
        return True
    first, count = (int(value) for value in a.spans[node, :2])
    return any(_has_debt_below(a, child) for child in a.children[first : first + count, 1].tolist())


def _around(boxes: np.ndarray) -> np.ndarray:
    return np.concatenate([boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)])


def _expect_nothing_lost(a: TrieArrays, nodes: set[int]) -> None:
    free = a.free[: a.head[N_FREE]].tolist()
    assert sorted([*free, *nodes]) == list(range(a.head[USED])), "each node is in use or free"
    for kind, end in ((0, CHILDREN_USED), (1, ROWS_USED)):
        runs = sorted((int(a.spans[node, 2 * kind]), int(a.rooms[node, kind])) for node in nodes)
        runs = [run for run in runs if run[1] > 0]
        assert all(a.spans[node, 2 * kind + 1] <= a.rooms[node, kind] for node in nodes), "runs keep to their room"
        ends = [first + room for first, room in runs]
        starts = [first for first, _ in runs]
        assert all(stop <= start for stop, start in zip(ends, starts[1:], strict=False)), "runs do not overlap"
        assert not ends or ends[-1] <= a.head[end], "runs end within the arena"

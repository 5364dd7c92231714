"""Invariants of the tree methods, checked against the rows: the tree, and the annotations of its nodes."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.intmap import ABSENT
from nearcast.indexes.ir_tree import IrTree
from nearcast.indexes.rt_plus_plus_tree import RtPlusPlusTree
from nearcast.indexes.rt_plus_tree import RtPlusTree
from nearcast.indexes.rt_tree import RtTree
from nearcast.structures.rtree.node_lists import SINGLE, SIZE, ListArrays
from nearcast.structures.rtree.nodes import LEAST, N_FREE, ROOT, USED, TreeArrays
from nearcast.structures.rtree.tree_method import TreeMethod

Paths = dict[int, list[int]]
"""For each row its ancestors, the leaf first and the root last."""


def expect_sound(method: TreeMethod) -> None:
    paths = expect_sound_tree(method)
    if isinstance(method, RtTree | RtPlusTree):
        expect_exact_sets(method, paths)
    elif isinstance(method, RtPlusPlusTree):
        expect_exact_lists(method, paths)
    elif isinstance(method, IrTree):
        expect_exact_files(method, paths)


def expect_sound_tree(method: TreeMethod) -> Paths:
    """Balanced, b to B entries a node but for the root, boxes tight, every row once, no node lost."""
    tree, boxes = method.tree.arrays, method.store.arrays.boxes
    paths: Paths = {}
    reached, waiting = 0, [(ROOT, [ROOT])]
    while waiting:
        node, path = waiting.pop()
        reached += 1
        n = int(tree.counts[node])
        assert n <= tree.slots.shape[1] - 1, f"node {node} has {n} entries"
        assert n >= tree.head[LEAST] or (node == ROOT and (n >= 2 or tree.levels[ROOT] == 0)), f"node {node} has {n}"
        for k, entry in enumerate(tree.slots[node, :n].tolist()):
            if tree.levels[node] == 0:
                assert entry not in paths and tree.leaves[entry] == node
                assert (tree.boxes[node, k] == boxes[entry]).all()
                paths[entry] = path
            else:
                assert tree.levels[entry] == tree.levels[node] - 1 and tree.parents[entry] == node
                assert (tree.boxes[node, k] == around(tree, entry)).all()
                waiting.append((entry, [entry, *path]))
    assert reached + tree.head[N_FREE] == tree.head[USED]
    assert sorted(paths) == np.flatnonzero(tree.leaves >= 0).tolist()
    return paths


def around(tree: TreeArrays, node: int) -> np.ndarray:
    own = tree.boxes[node, : tree.counts[node]]
    return np.concatenate([own[:, :2].min(axis=0), own[:, 2:].max(axis=0)])


def terms_of(method: TreeMethod, row: int) -> list[int]:
    rows = method.store.arrays
    return rows.terms[rows.offsets[row] :][: rows.n_terms[row]].tolist()  # type: ignore[no-any-return]


def expect_exact_sets(method: RtTree | RtPlusTree, paths: Paths) -> None:
    wanted: dict[tuple[int, int], int] = {}
    for row, path in paths.items():
        terms = [int(method.chosen.of_rows[row])] if isinstance(method, RtPlusTree) else terms_of(method, row)
        assert set(terms) <= set(terms_of(method, row))
        for node in path:
            for term in terms:
                wanted[node, term] = wanted.get((node, term), 0) + 1
    assert table_of(*method.annotations.arrays) == wanted
    if isinstance(method, RtPlusTree):
        for row, path in paths.items():
            place = method.tree.arrays.slots[path[0]].tolist().index(row)
            assert method.chosen.in_leaves[path[0], place] == method.chosen.of_rows[row]


def expect_exact_lists(method: RtPlusPlusTree, paths: Paths) -> None:
    """The i-th token at the i-th ancestor below the root, the rest in the leaf; each row as often as it has tokens."""
    orders = method.orders.arrays
    wanted: dict[tuple[int, int], list[int]] = {}
    for row, path in paths.items():
        tokens = orders.terms[orders.offsets[row] :][: len(terms_of(method, row))].tolist()
        assert sorted(tokens) == terms_of(method, row)
        below_root = path[::-1][1:] or [ROOT]
        for i, token in enumerate(tokens):
            wanted.setdefault((below_root[min(i, len(below_root) - 1)], token), []).append(row)
    appearances: dict[int, int] = {}
    found = rows_of_lists(method.annotations.arrays, method.store.arrays.boxes)
    for rows in found.values():
        for row in rows:
            appearances[row] = appearances.get(row, 0) + 1
    assert found == {key: sorted(rows) for key, rows in wanted.items()}
    assert appearances == {row: len(terms_of(method, row)) for row in paths}


def rows_of_lists(lists: ListArrays, exact: np.ndarray) -> dict[tuple[int, int], list[int]]:
    """The rows of each list, sorted. One that is alone lies in the table; the boxes of others are around the exact."""
    found = {}
    for key, which in table_of(lists.keys, lists.values).items():
        if which <= SINGLE:
            found[key] = [SINGLE - which]
            continue
        part = slice(lists.offsets[which], lists.offsets[which] + lists.counts[which])
        found[key] = sorted(lists.rows[part].tolist())
        own = exact[lists.rows[part]]
        assert len(found[key]) > 1, "one row alone lies in the table"
        assert (lists.boxes[part, :2] <= own[:, :2]).all() and (lists.boxes[part, 2:] >= own[:, 2:]).all()
    assert lists.head[SIZE] == len(found)
    return found


def expect_exact_files(method: IrTree, paths: Paths) -> None:
    tree = method.tree.arrays
    wanted: dict[tuple[int, int], int] = {}
    for row, path in paths.items():
        for entry, node in zip([row, *path], path, strict=False):
            bit = 1 << tree.slots[node].tolist().index(entry)
            for term in terms_of(method, row):
                wanted[node, term] = wanted.get((node, term), 0) | bit
    assert table_of(*method.annotations.arrays) == wanted


def table_of(keys: np.ndarray, values: np.ndarray) -> dict[tuple[int, int], int]:
    used = values != ABSENT
    return {
        (key >> 32, key & 0xFFFFFFFF): value
        for key, value in zip(keys[used].tolist(), values[used].tolist(), strict=True)
    }

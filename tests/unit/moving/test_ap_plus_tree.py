"""Upkeep of the AP+-tree: division, collapse, rebuilds and packing lose nothing, and do happen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nearcast.moving.ap_plus_tree import ApPlusTree, costs
from nearcast.moving.ap_plus_tree.tree import KIND, LEAF, NONE, PARENT, ROOT, USED_NODES, Tree
from nearcast.moving.ap_plus_tree.upkeep import subtree
from nearcast.moving.entry_lists.lists import COUNT, NUMBER, ROOM, START, Lists
from nearcast.moving.moving import Moving

SPACE = (0.0, 0.0, 1.0, 1.0)
OPTIONS: dict[str, Any] = {"f": 9, "theta_p": 4, "dead_share": 0.1}


def table(ids: np.ndarray, lows: np.ndarray, words: int, side: float = 0.02) -> dict[str, Any]:
    expressions = [f"w{each % words} AND v{each % 3}" if each % 2 else f"w{each % words}" for each in ids.tolist()]
    columns = {"xmin": lows[:, 0], "ymin": lows[:, 1], "xmax": lows[:, 0] + side, "ymax": lows[:, 1] + side}
    return {"id": ids, "expression": expressions, **columns}


def messages(rng: np.random.Generator, first: int, n: int, words: int, until: int) -> dict[str, Any]:
    tokens = [[f"w{a}", f"w{b}", f"v{c}"] for a, b, c in rng.integers(0, words, (n, 3)).tolist()]
    stamps = pa.array([until] * n, pa.timestamp("us", "UTC"))
    return {"id": first + np.arange(n), "tokens": tokens, "x": rng.random(n), "y": rng.random(n), "expires": stamps}


def numbers(lists: Lists, node: int) -> set[int]:
    start, count, room = (int(lists.heads[node, k]) for k in (START, COUNT, ROOM))
    return set(lists.words[start + NUMBER * room :][:count].tolist())


def leaves_of_rows(tree: Tree, rows: np.ndarray) -> dict[int, set[int]]:
    """The stored list of leaves of each row."""
    heads, words = tree.leaves.heads, tree.leaves.words
    return {
        row: {int(heads[row, 3])}
        if heads[row, COUNT] == 1
        else set(words[heads[row, START] : heads[row, START] + heads[row, COUNT]].tolist())
        for row in rows.tolist()
    }


def require_sound(moving: Moving) -> None:
    """The list of leaves of each row names exactly the leaves that list the row, and parents are right."""
    method = moving._set.method
    assert isinstance(method, ApPlusTree)
    tree, rows = method._tree, moving._set.subscribers.store.live_rows()
    nodes = subtree(tree, ROOT)
    stored = leaves_of_rows(tree, rows)
    listed: dict[int, set[int]] = {row: set() for row in rows.tolist()}
    for node in nodes.tolist():
        if tree.nodes[node, KIND] == LEAF:
            for row in numbers(tree.rows, node):
                listed[row].add(node)
        else:
            assert numbers(tree.rows, node) == set()
        assert tree.nodes[node, PARENT] != NONE or node == ROOT
    assert listed == stored and all(stored.values())
    gone = np.setdiff1d(np.arange(tree.used[USED_NODES]), nodes)
    assert not tree.rows.heads[gone, COUNT].any() and not tree.messages.heads[gone, COUNT].any()


@pytest.mark.parametrize(
    ("crowded", "wanted"),
    [(True, ("rebuilds", "packings")), (False, ("divided leaves", "collapsed nodes"))],
    ids=["crowd", "uniform"],
)
def test_upkeep_keeps_rows_and_messages(
    crowded: bool, wanted: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for price in ("_POST", "_VISIT"):
        monkeypatch.setattr(costs, price, 1.0)  # small leaves
    rng = np.random.default_rng(3)
    ids, seen = np.arange(2400), dict.fromkeys(wanted, 0)
    options = OPTIONS if crowded else OPTIONS | {"theta_p": 16}
    moving, oracle = Moving(None, "ap+-tree", SPACE, **options), Moving(None, "brute", SPACE)
    for both in (moving, oracle):
        both.subscribe(table(ids[:600], np.random.default_rng(5).random((600, 2)) * 0.9, 12))
    for step in range(40):
        center = np.array([0.1, 0.1]) if step % 20 < 10 else np.array([0.8, 0.7])  # a crowd to and fro
        lows = np.clip(center + (rng.random((800, 2)) - 0.5) * 0.15, 0, 0.95) if crowded else rng.random((800, 2)) * 0.9
        known = np.array([each for each in ids.tolist() if each in moving])
        moved = rng.permutation(known)[:800]
        boxes = np.hstack([lows, lows + rng.choice([0.0, 0.02, 0.3] if crowded else [0.02], (800, 1))])[: len(moved)]
        fresh = messages(rng, 1000 * step, 200, 12, step + 5)
        joining = table(ids[600:], rng.random((1800, 2)) * 0.9, 12) if step % 20 == 5 else None
        leaving = [each for each in ids[600:].tolist() if each in moving] if step % 20 == 15 else []
        results = []
        for both in (moving, oracle):
            parts = [both.step(step, fresh, moved, boxes)]
            parts += [both.subscribe(joining)] if joining else []
            parts += [both.unsubscribe(leaving)] if leaving else []
            results.append(pa.concat_tables(parts))
        assert results[0].equals(results[1]), f"step {step}"
        require_sound(moving)
        seen = {name: max(count, moving.report[name]) for name, count in seen.items()}
    assert all(seen.values()), seen


def test_moves_within_their_leaves_follow_no_route() -> None:
    rng = np.random.default_rng(4)
    ids, lows = np.arange(2000), rng.random((2000, 2)) * 0.9
    moving = Moving(table(ids, lows, 50), "ap+-tree", SPACE)
    moving.publish(messages(rng, 0, 2000, 50, 10), now=0)
    moving._set.rebuild_method()
    moving.move(ids, np.hstack([lows + 1e-4, lows + 1e-4 + 0.02]))
    report = moving.report
    assert report["moves in place"] > 10 * report["moves filed anew"], report

"""Upkeep of an AP+-tree: which nodes to divide, to collapse or to rebuild, what they hold, and packing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import distinct
from nearcast.moving.ap_plus_tree.costs import THETA_KL, least_drifting
from nearcast.moving.ap_plus_tree.tree import (
    ACROSS,
    BORDERS,
    DOWN,
    DUMMY,
    FIRST_LEAF,
    GONE,
    INNER,
    K_NODE,
    KIDS,
    KIND,
    LEAF,
    NONE,
    PARENT,
    ROOT,
    S_NODE,
    USED_BORDERS,
    USED_KIDS,
    USED_NODES,
    Tree,
)
from nearcast.moving.entry_lists.lists import COUNT, ROOM, START, Lists, release


class Content(NamedTuple):
    """What a node and those below it list."""

    rows: np.ndarray  # int32[...]
    slots: np.ndarray  # int32[...]  live messages


def weights_of(tree: Tree) -> np.ndarray:
    """int64[nodes]: the entries of rows below each node."""
    n = int(tree.used[USED_NODES])
    weights = tree.rows.heads[:n, COUNT].astype(np.int64)
    _add_up(tree.nodes[:n, PARENT], weights)
    return weights


@kernel
def _add_up(parents, weights):
    """Add the weights of nodes to those above. A node has a larger number than its parent."""
    for node in range(len(weights) - 1, 0, -1):
        if parents[node] >= 0:
            weights[parents[node]] += weights[node]


def to_renew(tree: Tree, built: np.ndarray, theta_p: int, live: int) -> list[tuple[int, str]]:
    """(node, why) of what must change; none lies below another. `built` are the weights at the last build."""
    n = int(tree.used[USED_NODES])
    weights, kinds = weights_of(tree), tree.nodes[:n, KIND]
    is_grown = (kinds == LEAF) & (weights > 2 * np.maximum(theta_p, built))
    is_empty = (kinds != LEAF) & (2 * weights <= theta_p) & (tree.nodes[:n, PARENT] != NONE)
    reasons = dict.fromkeys(np.flatnonzero(is_grown).tolist(), "divided leaves")
    reasons |= dict.fromkeys(np.flatnonzero(is_empty).tolist(), "collapsed nodes")
    large = least_drifting(live, theta_p)
    for node in np.flatnonzero((kinds != LEAF) & (weights >= large)).tolist():
        if has_drifted(tree, node, built, weights):
            reasons[node] = "rebuilds"
    top: list[tuple[int, str]] = []
    below: set[int] = set()
    for node in sorted(reasons):  # parents first
        if node not in below:
            top.append((node, reasons[node]))
            below |= set(subtree(tree, node).tolist())
    return top


def has_drifted(tree: Tree, node: int, built: np.ndarray, weights: np.ndarray) -> bool:
    """Whether the divergence of the weights of a node's parts exceeds theta, and what chance makes of m parts."""
    parts = children(tree, node)
    old, new = built[parts] + 1.0, weights[parts] + 1.0
    was, now = old / old.sum(), new / new.sum()
    return float((was * np.log(was / now)).sum()) > THETA_KL + len(parts) / float(min(old.sum(), new.sum()))


def children(tree: Tree, node: int) -> np.ndarray:
    """int64[...]: the children of an inner node that are there."""
    own = tree.nodes[node]
    count = int(own[ACROSS]) * (int(own[DOWN]) if own[KIND] == S_NODE else 1)
    kids = np.append(tree.kids[own[KIDS] : own[KIDS] + count], own[DUMMY]).astype(np.int64)
    return kids[kids != NONE]


def subtree(tree: Tree, node: int) -> np.ndarray:
    """int64[...]: a node and all below it, parents first."""
    level = np.array([node], np.int64)
    found = [level]
    while True:
        inner = level[tree.nodes[level, KIND] != LEAF]
        if len(inner) == 0:
            return np.concatenate(found)
        level = np.concatenate([children(tree, each) for each in inner.tolist()])
        found.append(level)


def take_apart(tree: Tree, node: int, is_live: np.ndarray) -> Content:
    """Make a node an empty leaf without anything below it; return what was there. Rows keep their other leaves."""
    nodes = subtree(tree, node)
    rows = distinct(_numbers(tree.rows, nodes)).astype(np.int32)
    slots = distinct(_numbers(tree.messages, nodes)).astype(np.int32)
    inner = nodes[tree.nodes[nodes, KIND] != LEAF]
    tree.used[INNER] -= int(tree.messages.heads[inner, COUNT].sum(dtype=np.int64))
    release_lists(tree.rows, nodes)
    release_lists(tree.messages, nodes)
    gone = nodes[1:]
    tree.nodes[gone, KIND], tree.nodes[gone, PARENT], tree.nodes[gone, DUMMY] = LEAF, NONE, NONE
    tree.nodes[node, KIND], tree.nodes[node, DUMMY] = LEAF, NONE
    tree.used[GONE] += len(gone)
    return Content(rows, slots[is_live[slots] != 0])


@kernel
def release_lists(lists, nodes):
    for node in nodes:
        release(lists, lists.heads, node)


def _numbers(lists: Lists, nodes: np.ndarray) -> np.ndarray:
    """The numbers of all entries of some nodes."""
    heads = lists.heads[nodes].astype(np.int64)
    firsts = heads[:, START] + 2 * heads[:, ROOM]
    counts = heads[:, COUNT]
    ends = np.cumsum(counts)
    return lists.words[np.arange(counts.sum()) + np.repeat(firsts - (ends - counts), counts)]


def packed_tree(tree: Tree, built: np.ndarray, rows: np.ndarray) -> tuple[Tree, np.ndarray]:
    """The tree, and the weights, without nodes, children and borders that are gone."""
    kept = np.sort(subtree(tree, ROOT))
    new = np.full(int(tree.used[USED_NODES]), NONE, np.int32)
    new[kept] = np.arange(len(kept))
    nodes = tree.nodes[kept]
    nodes[:, PARENT] = _renumbered(nodes[:, PARENT], new)
    nodes[:, DUMMY] = _renumbered(nodes[:, DUMMY], new)
    inner = np.flatnonzero(nodes[:, KIND] != LEAF)
    is_k = nodes[inner, KIND] == K_NODE
    across, down = nodes[inner, ACROSS].astype(np.int64), nodes[inner, DOWN].astype(np.int64)
    kids, nodes[inner, KIDS] = _packed(tree.kids, nodes[inner, KIDS], np.where(is_k, across, across * down))
    n_borders = np.where(is_k, across - 1, across + down - 2)
    borders, nodes[inner, BORDERS] = _packed(tree.borders, nodes[inner, BORDERS], n_borders)
    row_lists = tree.rows._replace(heads=tree.rows.heads[kept])
    messages = tree.messages._replace(heads=tree.messages.heads[kept])
    renumber_leaves(tree.leaves, rows, new)
    tree.used[USED_NODES], tree.used[USED_KIDS], tree.used[USED_BORDERS] = len(kept), len(kids), len(borders)
    tree.used[GONE] = 0
    made = tree._replace(nodes=nodes, regions=tree.regions[kept], kids=_renumbered(kids, new), borders=borders)
    return made._replace(rows=row_lists, messages=messages), built[kept]


def _renumbered(nodes: np.ndarray, new: np.ndarray) -> np.ndarray:
    return np.where(nodes == NONE, np.int32(NONE), new[nodes])


def _packed(values: np.ndarray, firsts: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(the values of some ranges, one behind the other; where each range begins)."""
    ends = np.cumsum(counts)
    at = np.arange(counts.sum()) + np.repeat(firsts - (ends - counts), counts)
    return values[at], ends - counts


@kernel
def renumber_leaves(leaves, rows, new):
    """Give the leaves in the lists of rows their new numbers."""
    heads, words = leaves.heads, leaves.words
    for i in range(len(rows)):
        row = rows[i]
        heads[row, FIRST_LEAF] = new[heads[row, FIRST_LEAF]]
        if heads[row, COUNT] > 1:
            start = np.int64(heads[row, START])
            for k in range(start, start + heads[row, COUNT]):
                words[k] = new[words[k]]

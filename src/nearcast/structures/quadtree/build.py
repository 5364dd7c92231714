"""Builds quadtrees over many rows at once, level by level.

A level holds the entries of its nodes one node behind the other, each node's in the order of numbers. One pass decides
which nodes are split and counts the entries of each quarter; a second pass moves them in order, so no list is sorted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import starts_of
from nearcast.structures.arena import add_to_parents
from nearcast.structures.boxes import outward
from nearcast.structures.quadtree.cells import FINEST, depth_of, in_quarter, row_span
from nearcast.structures.quadtree.lists import ListArrays, filled_lists
from nearcast.structures.quadtree.nodes import NONE, TAU_NUM, NodeArrays, root_nodes


class _Level(NamedTuple):
    """The nodes of one level, and the rows at or below them."""

    level: int
    xs: np.ndarray  # int32[n]
    ys: np.ndarray  # int32[n]
    parents: np.ndarray  # int32[n]
    items: np.ndarray  # int32[...]  positions among the rows
    starts: np.ndarray  # int64[n+1]


class _Spans(NamedTuple):
    """By position among the rows."""

    spans: np.ndarray  # int32[n,4]
    depths: np.ndarray  # uint8[n]


class _Target(NamedTuple):
    """Lists that are being filled."""

    items: np.ndarray  # int32[...]
    ends: np.ndarray  # int64[lists]  where the next item of each list goes


def build_trees(
    roots: NodeArrays, starts: np.ndarray, rows: np.ndarray, boxes: np.ndarray, terms: np.ndarray
) -> tuple[NodeArrays, ListArrays]:
    """The nodes and lists of trees with these roots over rows with these boxes; `terms` go into the entries.

    `starts` says where the rows of each root start.
    """
    tau_num, limit, copies = roots.head[TAU_NUM:].tolist()
    spans = _Spans(np.empty((len(boxes), 4), np.int32), np.empty(len(boxes), np.uint8))
    _measure(roots.bounds, boxes, copies, limit, spans)
    items = np.arange(len(boxes), dtype=np.int32)
    level: _Level | None = _Level(0, roots.xs, roots.ys, roots.parents, items, starts)
    parts, own, first = [], [], 0
    while level is not None:
        part, own_items, level = _divide(level, spans, first, (tau_num, limit))
        parts.append(part)
        own.append(own_items)
        first += len(part.levels)
    nodes = NodeArrays(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
    nodes = nodes._replace(head=np.array([first, 0, tau_num, limit, copies], np.int64), bounds=roots.bounds)
    items = np.concatenate(own)
    lists = filled_lists(nodes.entries, rows[items], terms[items], outward(boxes)[items])
    add_to_parents(nodes.entries, nodes.parents, first)
    add_to_parents(nodes.leaves, nodes.parents, first)
    return nodes, lists


@kernel
def _measure(bounds, boxes, copies, limit, out):
    for i in range(len(boxes)):
        span = row_span(bounds, boxes[i])
        out.spans[i, 0], out.spans[i, 1], out.spans[i, 2], out.spans[i, 3] = span
        out.depths[i] = depth_of(span, copies, limit)


def _divide(
    level: _Level, spans: _Spans, first: int, rule: tuple[int, int]
) -> tuple[NodeArrays, np.ndarray, _Level | None]:
    """The nodes of a level, numbered from `first` on, the items of their lists, and the level below if there is one.

    The nodes count their own entries and leaves only, without those below.
    """
    n = len(level.xs)
    sizes = np.zeros((n, 5), np.int64)  # the node's own entries, then those of each quarter; the latter 0 in a leaf
    movable = np.zeros(n, np.int32)
    is_split = np.zeros(n, np.bool_)
    _plan(level, spans, rule, sizes, movable, is_split)
    part = root_nodes(n, np.zeros(4), (rule[0], 0, 0))
    part.levels[:], part.xs[:], part.ys[:], part.parents[:] = level.level, level.xs, level.ys, level.parents
    split = np.flatnonzero(is_split)
    part.children[split] = first + n + 4 * np.arange(len(split))
    part.entries[:], part.leaves[:], part.movable[:] = sizes[:, 0], ~is_split, np.where(is_split, 0, movable)
    stuck = ~is_split & (movable >= rule[0])
    part.tries[stuck] = 2 * movable[stuck]
    own_starts, child_starts = starts_of(sizes[:, 0]), starts_of(sizes[split, 1:].ravel())
    own = _Target(np.empty(own_starts[-1], np.int32), own_starts[:-1].copy())
    below = _Target(np.empty(child_starts[-1], np.int32), child_starts[:-1].copy())
    _move(level, spans, is_split, own, below)
    if len(split) == 0:
        return part, own.items, None
    xs = (2 * level.xs[split, None] + np.array([0, 1, 0, 1], np.int32)).ravel()
    ys = (2 * level.ys[split, None] + np.array([0, 0, 1, 1], np.int32)).ravel()
    parents = np.repeat(first + split, 4).astype(np.int32)
    return part, own.items, _Level(level.level + 1, xs, ys, parents, below.items, child_starts)


@kernel
def _plan(level, spans, rule, sizes, movable, is_split):
    """Decide which nodes are split; count the entries that stay and those of each quarter."""
    items, starts, depths, depth = level.items, level.starts, spans.depths, level.level
    tau_num, limit = rule
    for node in range(len(is_split)):
        first, stop = starts[node], starts[node + 1]
        last = NONE
        differ = False
        for k in range(first, stop):
            if depths[items[k]] > depth:
                movable[node] += 1
                if last != NONE and not differ:
                    differ = spans_differ(spans.spans[last], spans.spans[items[k]], limit)
                last = items[k]
        is_split[node] = differ and movable[node] >= tau_num
        sizes[node, 0] = stop - first - movable[node] if is_split[node] else stop - first
        if is_split[node]:
            for k in range(first, stop):
                if depths[items[k]] > depth:
                    for quarter in range(4):
                        span = spans.spans[items[k]]
                        sizes[node, quarter + 1] += in_quarter(span, depth, level.xs[node], level.ys[node], quarter)


@kernel
def spans_differ(one, other, limit):
    """Whether splits down to the deepest level can separate two spans."""
    shift = FINEST - limit
    for side in range(4):
        if one[side] >> shift != other[side] >> shift:
            return True
    return False


@kernel
def _move(level, spans, is_split, own, below):
    """Write the items of each node's list to `own`, and the items of its quarters to `below`."""
    items, starts, depth, group = level.items, level.starts, level.level, 0
    for node in range(len(is_split)):
        for k in range(starts[node], starts[node + 1]):
            item = items[k]
            if not is_split[node] or spans.depths[item] <= depth:
                own.items[own.ends[node]] = item
                own.ends[node] += 1
                continue
            for quarter in range(4):
                if in_quarter(spans.spans[item], depth, level.xs[node], level.ys[node], quarter):
                    below.items[below.ends[group + quarter]] = item
                    below.ends[group + quarter] += 1
        if is_split[node]:
            group += 4

"""Builds quadtrees over many rows at once, level by level.

A level holds the entries of its nodes one node behind the other, each node's in the order of numbers. One pass decides
which nodes are split and counts the entries of each quarter; a second pass moves them. The order is kept, so no list
needs sorting.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import starts_of
from nearcast.structures.quadtree.cells import FINEST, depths_of, in_quarter, row_spans
from nearcast.structures.quadtree.lists import ListArrays, empty_lists, write_entry
from nearcast.structures.quadtree.nodes import NONE, NodeArrays, root_nodes


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


class OwnItems(NamedTuple):
    """The rows that stay in the lists of one level's nodes."""

    items: np.ndarray  # int32[...]  positions among the rows, node by node
    counts: np.ndarray  # int64[n]  by node


def build_nodes(
    boxes: np.ndarray, starts: np.ndarray, bounds: np.ndarray, settings: tuple[int, int, int]
) -> tuple[NodeArrays, list[OwnItems]]:
    """The nodes of trees over these boxes, and what belongs in their lists, by level.

    `starts` says where the boxes of each root start; settings are tau_num, the deepest level and copies.
    """
    tau_num, limit, copies = settings
    spans = _Spans(np.empty((len(boxes), 4), np.int32), np.empty(len(boxes), np.uint8))
    row_spans(bounds, boxes, spans.spans)
    depths_of(spans.spans, copies, limit, spans.depths)
    n_roots, items = len(starts) - 1, np.arange(len(boxes), dtype=np.int32)
    zeros, no_parents = np.zeros(n_roots, np.int32), np.full(n_roots, NONE, np.int32)
    level: _Level | None = _Level(0, zeros, zeros, no_parents, items, starts)
    parts, own, first = [], [], 0
    while level is not None:
        part, own_items, level = _divide(level, spans, first, (tau_num, limit))
        parts.append(part)
        own.append(own_items)
        first += len(part.levels)
    nodes = NodeArrays(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
    return nodes._replace(head=np.array([first, 0, *settings], np.int64), bounds=bounds), own


def _divide(
    level: _Level, spans: _Spans, first: int, rule: tuple[int, int]
) -> tuple[NodeArrays, OwnItems, _Level | None]:
    """The nodes of a level, numbered from `first` on, the items of their lists, and the level below if there is one."""
    n = len(level.xs)
    sizes = np.zeros((n, 5), np.int64)  # the node's own entries, then those of each quarter; the latter 0 in a leaf
    movable = np.zeros(n, np.int32)
    is_split = np.zeros(n, np.bool_)
    _plan(level, spans, rule, sizes, movable, is_split)
    part = root_nodes(n, np.zeros(4), (rule[0], 0, 0))
    part.levels[:], part.xs[:], part.ys[:], part.parents[:] = level.level, level.xs, level.ys, level.parents
    split = np.flatnonzero(is_split)
    part.children[split] = first + n + 4 * np.arange(len(split))
    part.movable[:] = np.where(is_split, 0, movable)
    stuck = ~is_split & (movable >= rule[0])
    part.tries[stuck] = 2 * movable[stuck]
    own_starts, child_starts = starts_of(sizes[:, 0]), starts_of(sizes[split, 1:].ravel())
    own = _Target(np.empty(own_starts[-1], np.int32), own_starts[:-1].copy())
    below = _Target(np.empty(child_starts[-1], np.int32), child_starts[:-1].copy())
    _move(level, spans, is_split, own, below)
    own_items = OwnItems(own.items, sizes[:, 0])
    if len(split) == 0:
        return part, own_items, None
    xs = (2 * level.xs[split, None] + np.array([0, 1, 0, 1], np.int32)).ravel()
    ys = (2 * level.ys[split, None] + np.array([0, 0, 1, 1], np.int32)).ravel()
    parents = np.repeat(first + split, 4).astype(np.int32)
    return part, own_items, _Level(level.level + 1, xs, ys, parents, below.items, child_starts)


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


def fill_lists(own: list[OwnItems], rows: np.ndarray, boxes: np.ndarray, terms: np.ndarray) -> ListArrays:
    """The lists of all nodes, from the items that build_nodes returned."""
    counts = np.concatenate([level.counts for level in own])
    lists = empty_lists(counts, counts)
    first = 0
    for level in own:
        _write(lists, first, level.items, rows, boxes, terms)
        first += len(level.items)
    return lists


@kernel
def _write(lists, first, items, rows, boxes, terms):
    for k in range(len(items)):
        write_entry(lists, first + k, rows[items[k]], terms[items[k]], boxes[items[k]])


@kernel
def sum_up(nodes, counts):
    """Set the entries and leaves of each node. After a build, children have higher numbers than their parents."""
    for node in range(len(counts) - 1, -1, -1):
        nodes.entries[node] += counts[node]
        if nodes.children[node] != NONE:
            nodes.leaves[node] -= 1
        parent = nodes.parents[node]
        if parent != NONE:
            nodes.entries[parent] += nodes.entries[node]
            nodes.leaves[parent] += nodes.leaves[node]

"""The tree over many rows at once, level by level.

A level is its nodes' entries one after another, each node's in the order of numbers. One pass decides which nodes are
cut and counts what goes where, another one moves; order is kept, so no list is sorted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import starts_of
from nearcast.structures.quadtree.cells import FINEST, depths_of, in_quarter, row_spans
from nearcast.structures.quadtree.lists import ListArrays, laid_out, write_entry
from nearcast.structures.quadtree.nodes import NONE, NodeArrays, root_nodes


class _Level(NamedTuple):
    """The nodes of one level, and what lies in them or below."""

    level: int
    xs: np.ndarray  # int32[n]
    ys: np.ndarray  # int32[n]
    parents: np.ndarray  # int32[n]
    items: np.ndarray  # int32[...]  positions among the rows
    starts: np.ndarray  # int64[n+1]


class _Places(NamedTuple):
    """By position among the rows."""

    spans: np.ndarray  # int32[n,4]
    depths: np.ndarray  # uint8[n]


Kept = tuple[np.ndarray, np.ndarray]
"""What stays in the lists of a level: positions among the rows, and how many of them each node has."""


def build_nodes(
    boxes: np.ndarray, starts: np.ndarray, bounds: np.ndarray, settings: tuple[int, int, int]
) -> tuple[NodeArrays, list[Kept]]:
    """The nodes over these boxes, those of each root together, without lists; and what goes into these, by level."""
    tau_num, limit, copies = settings
    places = _Places(np.empty((len(boxes), 4), np.int32), np.empty(len(boxes), np.uint8))
    row_spans(bounds, boxes, places.spans)
    depths_of(places.spans, copies, limit, places.depths)
    n_roots, items = len(starts) - 1, np.arange(len(boxes), dtype=np.int32)
    zeros, no_parents = np.zeros(n_roots, np.int32), np.full(n_roots, NONE, np.int32)
    level: _Level | None = _Level(0, zeros, zeros, no_parents, items, starts)
    parts, kept, first = [], [], 0
    while level is not None:
        part, own, level = _divided(level, places, first, (tau_num, limit))
        parts.append(part)
        kept.append(own)
        first += len(part.levels)
    return _joined(parts, bounds, settings), kept


def _divided(
    level: _Level, places: _Places, first: int, rule: tuple[int, int]
) -> tuple[NodeArrays, Kept, _Level | None]:
    """The nodes of a level, what stays in their lists, and the level below, if any of them is cut."""
    n = len(level.xs)
    sizes = np.zeros((n, 5), np.int64)  # own entries, then those of each quarter; these are 0 in a leaf
    movable = np.zeros(n, np.int32)
    cuts = np.zeros(n, np.bool_)
    _plan(level, places, rule, sizes, movable, cuts)
    part = root_nodes(n, np.zeros(4), (rule[0], 0, 0))
    part.levels[:], part.xs[:], part.ys[:], part.parents[:] = level.level, level.xs, level.ys, level.parents
    cut = np.flatnonzero(cuts)
    part.children[cut] = first + n + 4 * np.arange(len(cut))
    part.movable[:] = np.where(cuts, 0, movable)
    stuck = ~cuts & (movable >= rule[0])
    part.tries[stuck] = 2 * movable[stuck]
    own_starts, child_starts = starts_of(sizes[:, 0]), starts_of(sizes[cut, 1:].ravel())
    own, below = np.empty(own_starts[-1], np.int32), np.empty(child_starts[-1], np.int32)
    _move(level, places, cuts, (own, own_starts[:-1].copy()), (below, child_starts[:-1].copy()))
    kept = own, sizes[:, 0]
    if len(cut) == 0:
        return part, kept, None
    xs = (2 * level.xs[cut, None] + np.array([0, 1, 0, 1], np.int32)).ravel()
    ys = (2 * level.ys[cut, None] + np.array([0, 0, 1, 1], np.int32)).ravel()
    parents = np.repeat(first + cut, 4).astype(np.int32)
    return part, kept, _Level(level.level + 1, xs, ys, parents, below, child_starts)


@kernel
def _plan(level, places, rule, sizes, movable, cuts):
    """Decide which nodes are cut; count what stays, and what each quarter gets."""
    items, starts, depths, depth = level.items, level.starts, places.depths, level.level
    tau_num, limit = rule
    for node in range(len(cuts)):
        first, stop = starts[node], starts[node + 1]
        last = NONE
        differ = False
        for k in range(first, stop):
            if depths[items[k]] > depth:
                movable[node] += 1
                if last != NONE and not differ:
                    differ = spans_differ(places.spans[last], places.spans[items[k]], limit)
                last = items[k]
        cuts[node] = differ and movable[node] >= tau_num
        sizes[node, 0] = stop - first - movable[node] if cuts[node] else stop - first
        if cuts[node]:
            for k in range(first, stop):
                if depths[items[k]] > depth:
                    for quarter in range(4):
                        span = places.spans[items[k]]
                        sizes[node, quarter + 1] += in_quarter(span, depth, level.xs[node], level.ys[node], quarter)


@kernel
def spans_differ(one, other, limit):
    """Whether cutting down to the deepest level would part two spans: it never does where they are one there."""
    shift = FINEST - limit
    for side in range(4):
        if one[side] >> shift != other[side] >> shift:
            return True
    return False


@kernel
def _move(level, places, cuts, own, below):
    """Write what stays to own[0] and what goes down to below[0], each list from its place in own[1] or below[1] on."""
    items, starts, depth, group = level.items, level.starts, level.level, 0
    for node in range(len(cuts)):
        for k in range(starts[node], starts[node + 1]):
            item = items[k]
            if not cuts[node] or places.depths[item] <= depth:
                own[0][own[1][node]] = item
                own[1][node] += 1
                continue
            for quarter in range(4):
                if in_quarter(places.spans[item], depth, level.xs[node], level.ys[node], quarter):
                    below[0][below[1][group + quarter]] = item
                    below[1][group + quarter] += 1
        if cuts[node]:
            group += 4


def _joined(parts: list[NodeArrays], bounds: np.ndarray, settings: tuple[int, int, int]) -> NodeArrays:
    n = sum(len(part.levels) for part in parts)
    joined = NodeArrays(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
    return joined._replace(head=np.array([n, 0, *settings], np.int64), bounds=bounds)


def fill_lists(kept: list[Kept], rows: np.ndarray, boxes: np.ndarray, terms: np.ndarray) -> ListArrays:
    """The lists of all nodes, from what build_nodes kept for them."""
    counts = np.concatenate([counts for _, counts in kept])
    lists = laid_out(counts, counts)
    first = 0
    for items, _ in kept:
        _write(lists, first, items, rows, boxes, terms)
        first += len(items)
    return lists


@kernel
def _write(lists, first, items, rows, boxes, terms):
    for k in range(len(items)):
        write_entry(lists, first + k, rows[items[k]], terms[items[k]], boxes[items[k]])


@kernel
def sum_up(nodes, counts):
    """Set what each node has below it: children have higher numbers than their parents after a build."""
    for node in range(len(counts) - 1, -1, -1):
        nodes.entries[node] += counts[node]
        if nodes.children[node] != NONE:
            nodes.leaves[node] -= 1
        parent = nodes.parents[node]
        if parent != NONE:
            nodes.entries[parent] += nodes.entries[node]
            nodes.leaves[parent] += nodes.leaves[node]

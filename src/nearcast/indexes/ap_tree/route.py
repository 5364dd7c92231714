"""Routes a row: finds the nodes and leaves that its ranks and box lead to, and adds children that are missing."""

from __future__ import annotations

from typing import NamedTuple

from nearcast.arrays.jit import kernel
from nearcast.indexes.ap_tree import layout
from nearcast.indexes.ap_tree.layout import add_leaf, cell_count, covers, first_above, overlapped_cells
from nearcast.structures.arena import larger_room

OUT_TOO_SHORT, TREE_TOO_FULL = -1, -2


class Limits(NamedTuple):
    """The sizes at which nodes stop growing."""

    cuts: int  # of a k-node
    entries: int  # of a new leaf


@kernel
def gather_path(view, facts, rows, item, limits, out):
    """Write all nodes that an item belongs to, parents first, to `out`; return their number.

    Return OUT_TOO_SHORT, or TREE_TOO_FULL if there is no room for more nodes or cuts. Nodes added before that are empty
    and are found again by the next call.
    """
    box = rows.boxes[item]
    out[0] = layout.ROOT
    at, n = 0, 1
    while at < n:
        node = out[at]
        at += 1
        kind = view.nodes[node, layout.KIND]
        if kind == layout.LEAF:
            continue
        if kind == layout.K_NODE:
            first = rows.starts[item] + view.nodes[node, layout.LEVEL]
            rank = rows.ranks[first] if first < rows.starts[item + 1] else 0
            if n == len(out):
                return OUT_TOO_SHORT
            out[n] = _child_by_rank(view, facts, node, rank, limits)
            if out[n] == layout.NONE:
                return TREE_TOO_FULL
            n += 1
        else:
            n = _gather_cells(view, facts, node, limits, box, out, n)
            if n < 0:
                return n
    return n


@kernel
def _child_by_rank(view, facts, node, rank, limits):
    """The child of a k-node for a rank, where 0 is no rank; NONE if it is missing and there is no room."""
    if rank == 0:
        return _dummy_of(view, facts, node, layout.BY_PLACE, limits.entries)
    first, count = view.nodes[node, layout.FIRST], view.nodes[node, layout.COUNT]
    place = first_above(view.lows, first, first + count, rank)
    cut = place - 1  # the last one that starts at this rank or before
    if cut < first or rank > view.kids[cut, layout.HIGH]:
        if count < limits.cuts:
            return _open_cut(view, facts, node, place, rank, limits.entries)
        cut = _widened(view, first, count, cut, rank)
    return view.kids[cut, layout.CHILD] >> 1


@kernel
def _widened(view, first, count, cut, rank):
    """Extend the lighter of the two cuts beside a gap to a rank in it; return that cut. `cut` is the lower one."""
    if cut < first:
        cut = first
    elif cut + 1 < first + count:
        below, above = view.kids[cut, layout.CHILD] >> 1, view.kids[cut + 1, layout.CHILD] >> 1
        if view.nodes[above, layout.WEIGHT] < view.nodes[below, layout.WEIGHT]:
            cut += 1
    view.lows[cut] = min(view.lows[cut], rank)
    view.kids[cut, layout.HIGH] = max(view.kids[cut, layout.HIGH], rank)
    return cut


@kernel
def _open_cut(view, facts, node, place, rank, limit):
    """Add a cut of one rank before the cut at `place`; return its child, or NONE if there is no room."""
    line, head = view.nodes[node], facts.head
    if head[layout.USED_NODES] == len(view.nodes):
        return layout.NONE
    if line[layout.COUNT] == line[layout.ROOM]:
        room = larger_room(line[layout.COUNT])
        if head[layout.USED_CUTS] + room > len(view.lows):
            return layout.NONE
        _move_cuts(view, line[layout.FIRST], head[layout.USED_CUTS], line[layout.COUNT])
        head[layout.DEAD + layout.USED_CUTS] += line[layout.ROOM]
        place += head[layout.USED_CUTS] - line[layout.FIRST]
        line[layout.FIRST], line[layout.ROOM] = head[layout.USED_CUTS], room
        head[layout.USED_CUTS] += room
    _move_cuts(view, place, place + 1, line[layout.FIRST] + line[layout.COUNT] - place)
    line[layout.COUNT] += 1
    child = add_leaf(view, facts, node, line[layout.LEVEL] + 1, limit)
    view.lows[place] = view.kids[place, layout.HIGH] = rank
    view.kids[place, layout.CHILD] = 2 * child + 1
    return child


@kernel
def _move_cuts(view, source, target, count):
    """Copy cuts from the last to the first, since they may move up by one place."""
    for k in range(count - 1, -1, -1):
        view.lows[target + k] = view.lows[source + k]
        view.kids[target + k, layout.HIGH] = view.kids[source + k, layout.HIGH]
        view.kids[target + k, layout.CHILD] = view.kids[source + k, layout.CHILD]


@kernel
def _dummy_of(view, facts, node, flag, limit):
    """The dummy child, which may only be divided as `flag` says; NONE if it is missing and there is no room."""
    if view.nodes[node, layout.DUMMY] == layout.NONE and facts.head[layout.USED_NODES] < len(view.nodes):
        child = add_leaf(view, facts, node, view.nodes[node, layout.LEVEL], limit)
        facts.flags[child] &= flag
        view.nodes[node, layout.DUMMY] = child
    return view.nodes[node, layout.DUMMY]


@kernel
def _gather_cells(view, facts, node, limits, box, out, n):
    """Write the children of an s-node for a box to out[n:]; return the new n, OUT_TOO_SHORT or TREE_TOO_FULL."""
    if n == len(out):
        return OUT_TOO_SHORT
    if covers(box, facts.regions[node]):
        out[n] = _dummy_of(view, facts, node, layout.BY_WORDS, limits.entries)
        return TREE_TOO_FULL if out[n] == layout.NONE else n + 1
    cells = overlapped_cells(view.nodes, view.edges, node, box)
    count = cell_count(cells)
    if n + count > len(out) or facts.head[layout.USED_NODES] + count > len(view.nodes):
        return OUT_TOO_SHORT if n + count > len(out) else TREE_TOO_FULL
    for y in range(cells.below, cells.above + 1):
        for x in range(cells.left, cells.right + 1):
            cell = view.nodes[node, layout.FIRST] + y * view.nodes[node, layout.ACROSS] + x
            if view.cells[cell] == layout.NONE:
                view.cells[cell] = _cell_leaf(view, facts, node, (x, y), limits.entries)
            out[n] = view.cells[cell]
            n += 1
    return n


@kernel
def _cell_leaf(view, facts, node, cell, limit):
    """Add a leaf for a cell (x, y), whose region is the cell's part of the node's region."""
    child = add_leaf(view, facts, node, view.nodes[node, layout.LEVEL], limit)
    first, region = view.nodes[node, layout.EDGES], facts.regions[child]
    counts = (view.nodes[node, layout.ACROSS] - 1, view.nodes[node, layout.DOWN] - 1)
    for k in range(2):
        low, high = facts.regions[node, k], facts.regions[node, k + 2]
        if cell[k] > 0:
            region[k] = min(max(view.edges[first + cell[k] - 1], low), high)
        if cell[k] < counts[k]:
            region[k + 2] = min(max(view.edges[first + cell[k]], low), high)
        first += counts[k]
    return child

"""Where a row lies: the nodes and leaves that its ranks and its box lead to. Children that it lacks are made."""

from __future__ import annotations

from nearcast.arrays.jit import kernel
from nearcast.indexes.ap_tree.nodes import (
    ACROSS,
    BY_PLACE,
    BY_WORDS,
    CHILD,
    COUNT,
    DEAD,
    DOWN,
    DUMMY,
    EDGES,
    FIRST,
    HIGH,
    K_NODE,
    KIND,
    LEAF,
    LEVEL,
    NONE,
    ROOM,
    ROOT,
    USED_CUTS,
    USED_NODES,
    WEIGHT,
    add_leaf,
    cells_in,
    columns_of,
    covers,
)

OUT_TOO_SHORT, TREE_TOO_FULL = -1, -2


@kernel
def gather_path(shape, facts, rows, item, limits, out):
    """Write all nodes that hold an item, or are to hold it, to `out`, parents first; return how many.

    `limits` are (the most cuts of a node, the most entries of a new leaf). Return OUT_TOO_SHORT, or TREE_TOO_FULL where
    there is no room for more nodes or cuts: what was made so far is empty, and found again the next time.
    """
    box = rows.boxes[item]
    out[0] = ROOT
    at, n = 0, 1
    while at < n:
        node = out[at]
        at += 1
        kind = shape.nodes[node, KIND]
        if kind == LEAF:
            continue
        if kind == K_NODE:
            first = rows.starts[item] + shape.nodes[node, LEVEL]
            rank = rows.ranks[first] if first < rows.starts[item + 1] else 0
            if n == len(out):
                return OUT_TOO_SHORT
            out[n] = _child_by_rank(shape, facts, node, rank, limits)
            if out[n] == NONE:
                return TREE_TOO_FULL
            n += 1
        else:
            n = _gather_cells(shape, facts, (node, limits[1]), box, out, n)
            if n < 0:
                return n
    return n


@kernel
def _child_by_rank(shape, facts, node, rank, limits):
    """The child of a k-node for a rank, 0 for none; NONE where it is to be made and there is no room."""
    if rank == 0:
        return _dummy_of(shape, facts, node, BY_PLACE, limits[1])
    first, count = shape.nodes[node, FIRST], shape.nodes[node, COUNT]
    low, high = first, first + count
    while low < high:
        middle = (low + high) >> 1
        if shape.lows[middle] <= rank:
            low = middle + 1
        else:
            high = middle
    cut = low - 1  # the last one that begins at this rank or before
    if cut < first or rank > shape.kids[cut, HIGH]:
        if count < limits[0]:
            return _open_cut(shape, facts, node, low, rank, limits[1])
        cut = _widened(shape, first, count, cut, rank)
    return shape.kids[cut, CHILD] >> 1


@kernel
def _widened(shape, first, count, cut, rank):
    """The lighter of the cuts beside a gap takes the rank in; the one below the gap is `cut`."""
    if cut < first:
        cut = first
    elif cut + 1 < first + count:
        below, above = shape.kids[cut, CHILD] >> 1, shape.kids[cut + 1, CHILD] >> 1
        if shape.nodes[above, WEIGHT] < shape.nodes[below, WEIGHT]:
            cut += 1
    shape.lows[cut] = min(shape.lows[cut], rank)
    shape.kids[cut, HIGH] = max(shape.kids[cut, HIGH], rank)
    return cut


@kernel
def _open_cut(shape, facts, node, place, rank, limit):
    """A new cut for one rank before the cut at `place`; return its child, or NONE where there is no room."""
    line, head = shape.nodes[node], facts.head
    if head[USED_NODES] == len(shape.nodes):
        return NONE
    if line[COUNT] == line[ROOM]:
        room = line[COUNT] + line[COUNT] // 2 + 2
        if head[USED_CUTS] + room > len(shape.lows):
            return NONE
        _move_cuts(shape, line[FIRST], head[USED_CUTS], line[COUNT])
        head[DEAD + USED_CUTS] += line[ROOM]
        place += head[USED_CUTS] - line[FIRST]
        line[FIRST], line[ROOM] = head[USED_CUTS], room
        head[USED_CUTS] += room
    _move_cuts(shape, place, place + 1, line[FIRST] + line[COUNT] - place)
    line[COUNT] += 1
    child = add_leaf(shape, facts, node, line[LEVEL] + 1, limit)
    shape.lows[place] = shape.kids[place, HIGH] = rank
    shape.kids[place, CHILD] = 2 * child + 1
    return child


@kernel
def _move_cuts(shape, source, target, count):
    """From the last on, since they may be moved up by one."""
    for k in range(count - 1, -1, -1):
        shape.lows[target + k] = shape.lows[source + k]
        shape.kids[target + k, HIGH] = shape.kids[source + k, HIGH]
        shape.kids[target + k, CHILD] = shape.kids[source + k, CHILD]


@kernel
def _dummy_of(shape, facts, node, flag, limit):
    """The dummy child, which may be divided as `flag` says alone; NONE where it is to be made and there is no room."""
    if shape.nodes[node, DUMMY] == NONE and facts.head[USED_NODES] < len(shape.nodes):
        child = add_leaf(shape, facts, node, shape.nodes[node, LEVEL], limit)
        facts.flags[child] &= flag
        shape.nodes[node, DUMMY] = child
    return shape.nodes[node, DUMMY]


@kernel
def _gather_cells(shape, facts, which, box, out, n):
    """The children of an s-node for a box; return the new n, or what lacks. `which` is the node, and the most entries
    of a new leaf.
    """
    node, limit = which
    if n == len(out):
        return OUT_TOO_SHORT
    if covers(box, facts.regions[node]):
        out[n] = _dummy_of(shape, facts, node, BY_WORDS, limit)
        return TREE_TOO_FULL if out[n] == NONE else n + 1
    columns = columns_of(shape.nodes, shape.edges, node, box)
    left, right, below, above = columns
    paths = cells_in(columns)
    if n + paths > len(out) or facts.head[USED_NODES] + paths > len(shape.nodes):
        return OUT_TOO_SHORT if n + paths > len(out) else TREE_TOO_FULL
    for y in range(below, above + 1):
        for x in range(left, right + 1):
            cell = shape.nodes[node, FIRST] + y * shape.nodes[node, ACROSS] + x
            if shape.cells[cell] == NONE:
                shape.cells[cell] = _cell_leaf(shape, facts, node, (x, y), limit)
            out[n] = shape.cells[cell]
            n += 1
    return n


@kernel
def _cell_leaf(shape, facts, node, cell, limit):
    """A new leaf for a cell, with the cell's part of the node's region."""
    child = add_leaf(shape, facts, node, shape.nodes[node, LEVEL], limit)
    first, region = shape.nodes[node, EDGES], facts.regions[child]
    counts = (shape.nodes[node, ACROSS] - 1, shape.nodes[node, DOWN] - 1)
    for k in range(2):
        low, high = facts.regions[node, k], facts.regions[node, k + 2]
        if cell[k] > 0:
            region[k] = min(max(shape.edges[first + cell[k] - 1], low), high)
        if cell[k] < counts[k]:
            region[k + 2] = min(max(shape.edges[first + cell[k]], low), high)
        first += counts[k]
    return child

"""The arrays of an AP+-tree.

A k-node divides rows by the rank of their next term into cuts, which together cover all ranks; a row without a next
term is in the dummy. An s-node divides its region into the cells of a grid; a row whose box covers the region is in the
dummy if there is one, and in all cells otherwise. A leaf lists rows. Every node may list messages. Each row has the
list of its leaves, and bounds within which it may move without leaving them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.jit import inline_kernel, lean_kernel
from nearcast.moving.entry_lists.lists import BOX_WIDTH, Lists, empty_lists, list_bytes
from nearcast.moving.entry_lists.place_codes import PlaceCodes

KIND, LEVEL, KIDS, ACROSS, DOWN, BORDERS, DUMMY, PARENT = range(8)
"""Columns of nodes: the kind; how many terms are used up; the first child; cuts (or columns and lines of cells); the
first border; the child for what is divided no further; the node above.
"""

LEAF, K_NODE, S_NODE = range(3)
NONE, ROOT = -1, 0

USED_NODES, USED_KIDS, USED_BORDERS, LACKING, INNER, GONE = range(6)
"""Positions in `used`: sizes; whether a kernel lacked room for a node; messages listed at inner nodes; nodes that were
released and keep their numbers until the tree is packed.
"""

FIRST_LEAF = 3
"""The column of `leaves.heads` for a row's first leaf. A row with one leaf has no room in `leaves.words`."""

CODES_OF_BOUNDS = 8
"""The lowest and the highest code that each side of a row's box (xmin, ymin, xmax, ymax) may have in its leaves."""


class Tree(NamedTuple):
    """The tree as kernels see it. The lists of rows and of messages have one head for each node."""

    nodes: np.ndarray  # int32[n,8]
    regions: np.ndarray  # float64[n,4]
    kids: np.ndarray  # int32[...]  child, or NONE
    borders: np.ndarray  # float64[...]  lowest ranks of cuts; borders between columns, then between lines
    ranks: np.ndarray  # int32[terms]  by term: rarest first
    used: np.ndarray  # int64[6]
    rows: Lists
    messages: Lists
    leaves: Lists  # of each row; entries are one word
    bounds: np.ndarray  # uint16[rows,8]
    codes: PlaceCodes


def empty_tree(codes: PlaceCodes, region: np.ndarray, ranks: np.ndarray) -> Tree:
    """A tree of one empty leaf."""
    lists = (empty_lists(BOX_WIDTH, 0, 0), empty_lists(BOX_WIDTH, 0, 0), empty_lists(1, 0, 0))
    no_kids, no_borders, no_bounds = np.zeros(0, np.int32), np.zeros(0), np.zeros((0, CODES_OF_BOUNDS), np.uint16)
    nodes, regions = np.zeros((0, 8), np.int32), np.zeros((0, 4))
    tree = Tree(nodes, regions, no_kids, no_borders, ranks, np.zeros(6, np.int64), *lists, no_bounds, codes)
    tree = with_nodes(tree, 64)
    tree.regions[ROOT] = region
    tree.nodes[ROOT, DUMMY] = tree.nodes[ROOT, PARENT] = NONE
    tree.used[USED_NODES] = 1
    return tree


def with_nodes(tree: Tree, more: int) -> Tree:
    """The tree with room for so many more nodes."""
    n = int(tree.used[USED_NODES]) + more
    rows = tree.rows._replace(heads=grown(tree.rows.heads, n, fill=0))
    messages = tree.messages._replace(heads=grown(tree.messages.heads, n, fill=0))
    nodes, regions = grown(tree.nodes, n, fill=0), grown(tree.regions, n, fill=0)
    return tree._replace(nodes=nodes, regions=regions, rows=rows, messages=messages)


def with_rows(tree: Tree, n: int) -> Tree:
    """The tree with room for rows below n."""
    leaves = tree.leaves._replace(heads=grown(tree.leaves.heads, n, fill=0))
    return tree._replace(leaves=leaves, bounds=grown(tree.bounds, n, fill=0))


def tree_bytes(tree: Tree) -> int:
    own = (tree.nodes, tree.regions, tree.kids, tree.borders, tree.ranks, tree.bounds)
    return sum(int(array.nbytes) for array in own) + sum(map(list_bytes, (tree.rows, tree.messages, tree.leaves)))


@lean_kernel
def add_leaf(tree, parent, kid, level):
    """Create the empty leaf of an absent child, with its parent's region; return its number, or NONE without room."""
    node = tree.used[USED_NODES]
    if node == len(tree.nodes):
        tree.used[LACKING] = 1
        return np.int64(NONE)
    tree.used[USED_NODES] += 1
    for k in range(8):
        tree.nodes[node, k] = 0
    for k in range(4):
        tree.regions[node, k] = tree.regions[parent, k]
    tree.nodes[node, LEVEL], tree.nodes[node, DUMMY], tree.nodes[node, PARENT] = level, NONE, parent
    if kid == NONE:
        tree.nodes[parent, DUMMY] = node
    else:
        tree.kids[kid] = node
    return node


@inline_kernel
def borders_up_to(borders, first, count, value):
    """How many of the ascending borders[first : first + count] are not above a value: the column of the value."""
    low, high = first, first + count
    while low < high:
        middle = (low + high) >> 1
        if borders[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low - first


@inline_kernel
def cell_range(tree, node, box):
    """The first and last column, and the first and last line, of the cells that a box overlaps."""
    nodes, borders = tree.nodes, tree.borders
    at, across, down = (
        np.int64(nodes[node, BORDERS]),
        np.int64(nodes[node, ACROSS]) - 1,
        np.int64(nodes[node, DOWN]) - 1,
    )
    left, right = borders_up_to(borders, at, across, box[0]), borders_up_to(borders, at, across, box[2])
    below, above = borders_up_to(borders, at + across, down, box[1]), borders_up_to(borders, at + across, down, box[3])
    return left, right, below, above


@lean_kernel
def confine_to_cell(tree, leaf, node, column, line):
    """Confine the region of a new leaf, which is that of its parent, to a cell of the parent."""
    nodes, borders, regions = tree.nodes, tree.borders, tree.regions
    at, across, down = np.int64(nodes[node, BORDERS]), np.int64(nodes[node, ACROSS]), np.int64(nodes[node, DOWN])
    if column > 0:
        regions[leaf, 0] = borders[at + column - 1]
    if column < across - 1:
        regions[leaf, 2] = borders[at + column]
    if line > 0:
        regions[leaf, 1] = borders[at + across - 1 + line - 1]
    if line < down - 1:
        regions[leaf, 3] = borders[at + across - 1 + line]

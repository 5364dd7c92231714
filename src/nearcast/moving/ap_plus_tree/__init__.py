"""AP+-tree: one tree for subscriptions and messages; each node divides by words or by place, by a cost model.

Paper      ap-tree
Idea       Messages are listed in the leaves that they enter. A move compares the old and the new leaves of a row, and
           reads the messages of a leaf only where the row's part of the leaf's region has changed.
Layout     nodes of 32 bytes and a region of 32; entries of rows and of messages are 16 bytes: both corners as codes of
           16 bits, a signature of the terms, a number; for each row its leaves, and 16 bytes of bounds.
Cost       a move within its leaves O(their rows and messages), others O(nodes of the new route) more; an arrival
           O(cuts and cells hit, and the rows of their leaves); at most `copies` copies of a message.
Deviates   Words are taken rarest first, so that the messages of a leaf are few; a node has up to 16,000 parts, if that
           is cheaper. Bounds say whether a move stays in its leaves, without a route. The cost model counts what moves
           read, and a price of visiting a leaf. The moves of a step are taken in order of their leaves. A node is
           rebuilt where the divergence of its cells' weights exceeds that of chance. T_delta is estimated in closed
           form. messages_by="words" and "place" are the variants AP+k-tree and AP+s-tree.

tree.py has the arrays, costs.py the cost model, build.py the divisions, upkeep.py division, collapse and packing,
route.py and leaves.py the routes, change.py and visit.py the kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nearcast.arrays.ragged import distinct
from nearcast.errors import InvalidInput
from nearcast.geo.space import Space
from nearcast.matching.store import RowStore
from nearcast.moving.ap_plus_tree.build import Builder, Node
from nearcast.moving.ap_plus_tree.change import find_messages, insert_rows, move_rows, remove_rows
from nearcast.moving.ap_plus_tree.costs import Fit, Motion
from nearcast.moving.ap_plus_tree.sample import SAMPLE, sample_of
from nearcast.moving.ap_plus_tree.tree import (
    DUMMY,
    FIRST_LEAF,
    GONE,
    INNER,
    KIND,
    LACKING,
    LEAF,
    NONE,
    ROOT,
    USED_NODES,
    empty_tree,
    tree_bytes,
    with_nodes,
    with_rows,
)
from nearcast.moving.ap_plus_tree.upkeep import Content, packed_tree, take_apart, to_renew, weights_of
from nearcast.moving.ap_plus_tree.visit import chain_to, positions_below, push_messages, visit_messages
from nearcast.moving.cell_copies import MessagesByCell
from nearcast.moving.entry_lists.lists import COUNT, IN_PLACE, REFILED, drop_dead_of_heads, with_lacking_room
from nearcast.moving.entry_lists.packed_pairs import unpacked, unpacked_changes
from nearcast.moving.entry_lists.place_codes import place_codes
from nearcast.moving.live_messages import LiveMessages
from nearcast.moving.method import DEAD_SHARE, MovingMethod, difference
from nearcast.moving.pairs import Pairs, SignedPairs


class ApPlusTree(MovingMethod):
    name = "ap+-tree"
    paper = "ap-tree"
    checked_with = (
        {},
        {"f": 4, "theta_p": 2, "copies": 3, "dead_share": 0.0},
        {"f": 9, "theta_p": 3},
        {"messages_by": "words"},
        {"f": 4, "theta_p": 2, "messages_by": "place"},
    )

    def __init__(  # noqa: PLR0913  options: the contract reads their names and defaults from here
        self,
        store: RowStore,
        messages: LiveMessages,
        space: Space,
        f: int = 16_000,
        theta_p: int = 40,
        copies: int = 200,
        dead_share: float = DEAD_SHARE,
        messages_by: str = "tree",
    ) -> None:
        super().__init__(store, messages, space)
        if messages_by not in ("tree", "words", "place"):
            raise InvalidInput(f"messages_by is tree, words (AP+k-tree) or place (AP+s-tree), not '{messages_by}'")
        self._apart = None
        if messages_by != "tree":
            self._apart, copies = MessagesByCell(store, messages, space, messages_by == "words"), 0
        self._fit = Fit(f, theta_p)
        self._copies = copies
        self._dead_share = dead_share
        self.motion = Motion()
        self._changed = 0
        self._work = {"rebuilds": 0, "divided leaves": 0, "collapsed nodes": 0, "packings": 0}
        self._weights = np.zeros(0, np.int64)

    # -- building

    def build(self, rows: np.ndarray, slots: np.ndarray) -> None:
        boxes = self.store.arrays.boxes[rows]
        codes = place_codes(boxes[:: max(1, len(rows) // SAMPLE)], self.space.bounds)
        region = np.array([-np.inf, -np.inf, np.inf, np.inf] if self.space.planar else self.space.bounds)
        self._tree = empty_tree(codes, region, self._first_ranks())
        self._weights, self._changed = np.zeros(0, np.int64), 0
        self._fill(ROOT, Content(rows, slots))
        if self._apart is not None:
            self._apart.build(rows, slots)

    def _first_ranks(self) -> np.ndarray:
        """int32[terms]: the rarest term among the rows has rank 0, terms in no row come last."""
        frequencies = self.store.frequencies
        ranks = np.empty(len(frequencies), np.int32)
        ordered = np.where(frequencies > 0, frequencies, np.iinfo(frequencies.dtype).max)
        ranks[np.argsort(ordered, kind="stable")] = np.arange(len(frequencies))
        return ranks

    def _fill(self, node: int, content: Content) -> None:
        """Divide an empty leaf for its rows and messages, and let them go down from it."""
        self._rank(max(self.store.n_terms, self.messages.n_terms))
        tree, first_new = self._tree, int(self._tree.used[USED_NODES])
        sample = sample_of(self.store, self.messages, tree.ranks, content.rows, content.slots)
        positions = positions_below(sample.message_ranks, sample.starts, chain_to(tree, node))
        builder = Builder(tree, sample, self.motion, self._fit)
        builder.divide(Node(node, np.arange(len(content.rows)), np.arange(len(positions)), positions))
        self._tree = builder.tree
        self._insert(content.rows, node, first_new)
        if self._copies:
            most, own, slots = self._copies, self.messages.arrays, content.slots
            self._run(lambda done: (None, 0, push_messages(self._tree, own, slots, node, most, done)), len(slots))
        self._remember_weights(node, first_new)

    # -- the contract

    def insert(self, rows: np.ndarray) -> None:
        if self._apart is not None:
            self._apart.insert(rows)
        self._insert(rows, ROOT, ROOT)
        self._changed += len(rows)
        self._maintain()

    def remove(self, rows: np.ndarray) -> None:
        remove_rows(self._tree, rows)
        self._changed += len(rows)

    def find(self, rows: np.ndarray) -> Pairs:
        if self._apart is not None:
            return self._apart.find(rows)
        out, n = find_messages(self._tree, self.store.arrays, self.messages.arrays, rows)
        packed = distinct(out[:n])  # a range message may be in several leaves of a row
        return unpacked(packed)

    def move(self, rows: np.ndarray, boxes: np.ndarray) -> SignedPairs:
        if self._apart is not None:
            before = self._apart.find(rows)
            self._move(rows, boxes)
            return difference(before, self._apart.find(rows))
        return self._move(rows, boxes)

    def _move(self, rows: np.ndarray, boxes: np.ndarray) -> SignedPairs:
        arrays, own = self.store.arrays, self.messages.arrays
        self.motion.learn_moves(arrays.boxes[rows], boxes, self.store.live, len(self.messages))
        order = np.argsort(self._tree.leaves.heads[rows, FIRST_LEAF], kind="stable")  # a leaf stays in the cache
        rows, boxes = rows[order], np.ascontiguousarray(boxes[order])
        packed = distinct(self._run(lambda done: move_rows(self._tree, arrays, own, rows, boxes, done), len(rows)))
        self._changed += len(rows)
        self._maintain()
        return unpacked_changes(packed)

    def arrive(self, slots: np.ndarray) -> Pairs:
        self.motion.messages += len(slots)
        if self._apart is not None:
            self._apart.arrive(slots)
        return self._visit(slots, self._copies)

    def leave(self, slots: np.ndarray) -> Pairs:
        return self._visit(slots, 0)

    def sweep(self) -> bool:
        if self.messages.n_dead <= self._dead_share * len(self.messages):
            return False
        if self._apart is not None:
            return self._apart.sweep()
        tree = self._tree
        n = int(tree.used[USED_NODES])
        drop_dead_of_heads(tree.messages, n, self.messages.arrays.is_live)
        tree.used[INNER] = tree.messages.heads[:n, COUNT][tree.nodes[:n, KIND] != LEAF].sum(dtype=np.int64)
        return True

    # -- parts

    def _insert(self, rows: np.ndarray, node: int, first_new: int) -> None:
        """Let rows into their leaves; those outside a node, and below `first_new`, have them already."""
        self._rank(self.store.n_terms)
        self._tree = with_rows(self._tree, len(self.store.arrays.flags))
        arrays = self.store.arrays
        self._run(
            lambda done: (None, 0, insert_rows(self._tree, arrays, rows, (node, first_new), done)),
            len(rows),
        )

    def _visit(self, slots: np.ndarray, most_copies: int) -> Pairs:
        self._rank(self.messages.n_terms)
        arrays, own = self.store.arrays, self.messages.arrays
        packed = distinct(
            self._run(lambda done: visit_messages(self._tree, arrays, own, slots, most_copies, done), len(slots))
        )
        return unpacked(packed)

    def _rank(self, n_terms: int) -> None:
        """Give terms that came after the build the next ranks."""
        known = len(self._tree.ranks)
        if n_terms > known:
            ranks = np.concatenate([self._tree.ranks, np.arange(known, n_terms + n_terms // 4, dtype=np.int32)])
            self._tree = self._tree._replace(ranks=ranks)

    def _run(self, kernel: Callable[[int], tuple[Any, int, int]], total: int) -> np.ndarray:
        """Call a kernel until all is done, with more room each time; return its packed pairs."""
        parts, done = [np.empty(0, np.int64)], 0
        while True:
            out, n, done = kernel(done)
            if n:
                parts.append(out[:n])
            if done == total:
                return np.concatenate(parts)
            self._make_room()

    def _make_room(self) -> None:
        tree = self._tree
        if tree.used[LACKING]:
            tree.used[LACKING] = 0
            tree = with_nodes(tree, 1024)
        rows, messages, leaves = (with_lacking_room(lists) for lists in (tree.rows, tree.messages, tree.leaves))
        self._tree = tree._replace(rows=rows, messages=messages, leaves=leaves)

    # -- upkeep

    def _maintain(self) -> None:
        """Divide, collapse and rebuild nodes once as many rows changed as there are; pack a tree half of old nodes."""
        if self._changed < max(4 * self._fit.theta_p, self.store.live):
            return
        self._changed = 0
        n = int(self._tree.used[USED_NODES])
        self._remember_weights(n, n)  # nodes that kernels created are new
        for node, why in to_renew(self._tree, self._weights, self._fit.theta_p, self.store.live):
            self._work[why] += 1
            self._fill(node, take_apart(self._tree, node, self.messages.arrays.is_live))
        if 2 * self._tree.used[GONE] > self._tree.used[USED_NODES]:
            self._work["packings"] += 1
            self._tree, self._weights = packed_tree(self._tree, self._weights, self.store.live_rows())

    def _remember_weights(self, node: int, first_new: int) -> None:
        """Note the weights of a node and of the nodes from `first_new` on: later ones are compared with them."""
        weights = weights_of(self._tree)
        known = self._weights
        self._weights = np.concatenate([known, weights[len(known) :]])
        self._weights[first_new:] = weights[first_new:]
        if node < len(weights):
            self._weights[node] = weights[node]

    @property
    def nbytes(self) -> int:
        return tree_bytes(self._tree) + (0 if self._apart is None else self._apart.nbytes)

    @property
    def report(self) -> dict[str, int]:
        tree = self._tree
        n = int(tree.used[USED_NODES])
        heads, is_leaf = tree.messages.heads[:n], tree.nodes[:n, KIND] == LEAF
        kinds = np.bincount(tree.nodes[:n, KIND], minlength=3).tolist()
        return {
            "leaves": kinds[LEAF] - int(tree.used[GONE]),
            "k-nodes": kinds[1],
            "s-nodes": kinds[2],
            "absent dummies": int(np.count_nonzero(tree.nodes[:n, DUMMY] == NONE)) - kinds[LEAF],
            "copies of rows": int(tree.rows.heads[:n, COUNT].sum(dtype=np.int64)),
            "copies of messages": int(heads[:, COUNT].sum(dtype=np.int64)),
            "copies of messages at inner nodes": int(heads[~is_leaf, COUNT].sum(dtype=np.int64)),
            "most copies of a message": self._copies,
            "moves in place": int(tree.leaves.control[IN_PLACE]),
            "moves filed anew": int(tree.leaves.control[REFILED]),
            **self._work,
        }

"""AP+-tree: one tree for moving rows and live messages; each node divides by words or by place, by a cost model.

Paper      ap-tree
Idea       Messages are listed in the leaves that they enter. A move compares the old and the new route of a row through
           the tree, and reads the messages of a node only where the row's part of the node's region has changed.
Layout     nodes of 32 bytes and a region of 32; entries of rows and of messages are 16 bytes: both corners as codes of
           16 bits, a signature of the terms, a number.
Cost       a move O(nodes of both routes, and the messages of those that change); an arrival O(cuts and cells hit, and
           the rows of their leaves); at most `copies` copies of a message.
Deviates   A row's list of leaves is found by its route, not stored. A message stays at a node where a cell that it
           enters is absent, or where its copies would be too many. Messages of a divided leaf stay there until they
           expire. Drift rebuilds the whole tree. T_delta is estimated in closed form. messages_by="words" and "place"
           are the variants AP+k-tree and AP+s-tree.

tree.py has the arrays, costs.py the cost model, build.py the divisions, route.py the routes, change.py the kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nearcast.errors import InvalidInput
from nearcast.geo.space import Space
from nearcast.matching.store import RowStore
from nearcast.moving.ap_plus_tree.build import Builder, Node, Sample
from nearcast.moving.ap_plus_tree.change import (
    find_messages,
    insert_rows,
    move_rows,
    remove_rows,
    visit_messages,
)
from nearcast.moving.ap_plus_tree.costs import Fit, Motion
from nearcast.moving.ap_plus_tree.tree import (
    DUMMY,
    KIND,
    LACKING,
    LEAF,
    NONE,
    ROOT,
    USED_NODES,
    empty_tree,
    tree_bytes,
    with_nodes,
)
from nearcast.moving.cell_copies import MessagesByCell
from nearcast.moving.entry_lists.copies import BEGINS
from nearcast.moving.entry_lists.lists import COUNT, ROOM, START, drop_dead_of_heads, release, with_lacking_room
from nearcast.moving.entry_lists.place_codes import place_codes
from nearcast.moving.live_messages import LiveMessages
from nearcast.moving.method import MovingMethod, difference
from nearcast.moving.pairs import Pairs, SignedPairs

_SAMPLE = 20_000
_THETA_KL = 0.001


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
        f: int = 200,
        theta_p: int = 40,
        copies: int = 200,
        dead_share: float = 0.25,
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
        self._rebuilds = self._divisions = self._changed = 0
        self._weights = np.zeros(0, np.int64)

    # -- building

    def build(self, rows: np.ndarray, slots: np.ndarray) -> None:
        boxes = self.store.arrays.boxes[rows]
        codes = place_codes(boxes[:: max(1, len(rows) // _SAMPLE)], self.space.bounds)
        region = np.array([-np.inf, -np.inf, np.inf, np.inf] if self.space.planar else self.space.bounds)
        self._tree = empty_tree(codes, region, self._first_ranks())
        sample = self._sample(rows, slots)
        builder = Builder(self._tree, sample, self.motion, self._fit)
        builder.divide(Node(ROOT, np.arange(len(rows)), np.arange(len(sample.points))))
        self._tree = builder.tree
        self._changed = 0
        self._insert(rows)
        self._weights = self._tree.rows.heads[: self._tree.used[USED_NODES], COUNT].copy()
        if self._apart is None:
            self._visit(slots, self._copies)
        else:
            self._apart.build(rows, slots)

    def _first_ranks(self) -> np.ndarray:
        """int32[terms]: the most frequent term has rank 0."""
        frequencies = self.store.frequencies
        ranks = np.empty(len(frequencies), np.int32)
        ranks[np.argsort(-frequencies, kind="stable")] = np.arange(len(frequencies))
        return ranks

    def _sample(self, rows: np.ndarray, slots: np.ndarray) -> Sample:
        store, own = self.store.arrays, self.messages.arrays
        counts = store.n_terms[rows].astype(np.int64)
        ranks = np.full((len(rows), int(counts.max()) if len(rows) else 0), np.iinfo(np.int32).max, np.int32)
        for k in range(ranks.shape[1]):
            has = counts > k
            ranks[has, k] = self._tree.ranks[store.terms[store.offsets[rows[has]] + k]]
        ranks.sort(axis=1)
        ranks[ranks == np.iinfo(np.int32).max] = -1
        drawn = slots[:: max(1, len(slots) // _SAMPLE)]
        middles = own.boxes[drawn, :2] / 2 + own.boxes[drawn, 2:] / 2
        return Sample(ranks, counts, store.boxes[rows], self._chances(drawn), middles)

    def _chances(self, slots: np.ndarray) -> np.ndarray:
        """By rank: the share of messages with the term, or of rows where there are few messages."""
        chances = np.zeros(len(self._tree.ranks))
        if len(slots) >= 100:
            batch, _ = self.messages.batch(slots)
            terms = batch.terms[batch.terms < len(chances)]
            np.add.at(chances, self._tree.ranks[terms], 1.0 / len(slots))
        else:
            frequencies = self.store.frequencies
            chances[self._tree.ranks[: len(frequencies)]] = frequencies / max(1, self.store.live)
        return np.minimum(1.0, chances)

    # -- the contract

    def insert(self, rows: np.ndarray) -> None:
        if self._apart is not None:
            self._apart.insert(rows)
        self._insert(rows)
        self._changed += len(rows)
        self._maintain()

    def remove(self, rows: np.ndarray) -> None:
        self._run(lambda done: (None, 0, remove_rows(self._tree, self.store.arrays, rows, done)), len(rows))
        self._changed += len(rows)

    def find(self, rows: np.ndarray) -> Pairs:
        if self._apart is not None:
            return self._apart.find(rows)
        arrays, own = self.store.arrays, self.messages.arrays
        self._rank(self.store.n_terms)
        # Rows that are done are left out of the next call: find_messages always starts with the first.
        parts, done = [], 0
        while True:
            out, n, more = find_messages(self._tree, arrays, own, rows[done:])
            parts.append(out[:n])
            done += more
            if done == len(rows):
                break
            self._make_room()
        packed = np.unique(np.concatenate(parts))  # a range message may be in several leaves of a row
        return Pairs((packed >> 32).astype(np.int32), (packed & (BEGINS - 1)).astype(np.int32))

    def move(self, rows: np.ndarray, boxes: np.ndarray) -> SignedPairs:
        if self._apart is not None:
            before = self._apart.find(rows)
            self._move(rows, boxes)
            return difference(before, self._apart.find(rows))
        return self._move(rows, boxes)

    def _move(self, rows: np.ndarray, boxes: np.ndarray) -> SignedPairs:
        arrays, own, boxes = self.store.arrays, self.messages.arrays, np.ascontiguousarray(boxes)
        self.motion.learn_moves(arrays.boxes[rows], boxes, self.store.live)
        packed = np.unique(self._run(lambda done: move_rows(self._tree, arrays, own, rows, boxes, done), len(rows)))
        self._changed += len(rows)
        self._maintain()
        signs = np.where(packed & BEGINS, 1, -1).astype(np.int8)
        return SignedPairs((packed >> 32).astype(np.int32), (packed & (BEGINS - 1)).astype(np.int32), signs)

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
        drop_dead_of_heads(self._tree.messages, int(self._tree.used[USED_NODES]), self.messages.arrays.is_live)
        return True

    # -- parts

    def _insert(self, rows: np.ndarray) -> None:
        self._rank(self.store.n_terms)
        self._run(lambda done: (None, 0, insert_rows(self._tree, self.store.arrays, rows, ROOT, done)), len(rows))

    def _visit(self, slots: np.ndarray, most_copies: int) -> Pairs:
        self._rank(self.messages.n_terms)
        arrays, own = self.store.arrays, self.messages.arrays
        packed = np.unique(
            self._run(lambda done: visit_messages(self._tree, arrays, own, slots, most_copies, done), len(slots))
        )
        return Pairs((packed >> 32).astype(np.int32), (packed & 0xFFFFFFFF).astype(np.int32))

    def _rank(self, n_terms: int) -> None:
        """Give terms that came after the build the next ranks: they are rare."""
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
        self._tree = tree._replace(rows=with_lacking_room(tree.rows), messages=with_lacking_room(tree.messages))

    def _maintain(self) -> None:
        """Divide leaves that grew, and rebuild the tree when the weights of its leaves have drifted."""
        if self._changed < max(4 * self._fit.theta_p, self.store.live):
            return
        self._changed = 0
        counts = self._tree.rows.heads[: self._tree.used[USED_NODES], COUNT]
        if _divergence(self._weights, counts) > _THETA_KL:
            self._rebuilds += 1
            self.build(self.store.live_rows(), self.messages.slots())
            return
        for leaf in np.flatnonzero(counts > 4 * np.maximum(self._fit.theta_p, self._built(len(counts)))).tolist():
            self._divide(leaf)

    def _built(self, n: int) -> np.ndarray:
        """int64[n]: the rows of each node when it was last considered for a division."""
        self._weights = np.concatenate([self._weights, np.zeros(n - len(self._weights), np.int64)])
        return self._weights

    def _divide(self, leaf: int) -> None:
        """Divide a leaf that grew. Its messages stay where they are: every row below finds them on its route."""
        head = self._tree.rows.heads[leaf]
        first = int(head[START]) + 2 * int(head[ROOM])
        rows = self._tree.rows.words[first : first + int(head[COUNT])].astype(np.int32)
        self._weights[leaf] = len(rows)
        sample = self._sample(rows, self.messages.slots()[:0])
        builder = Builder(self._tree, sample, self.motion, self._fit)
        builder.divide(Node(leaf, np.arange(len(rows)), np.arange(0)))
        self._tree = builder.tree
        if self._tree.nodes[leaf, KIND] != LEAF:
            self._divisions += 1
            release(self._tree.rows, self._tree.rows.heads, leaf)
            self._run(lambda done: (None, 0, insert_rows(self._tree, self.store.arrays, rows, leaf, done)), len(rows))

    @property
    def nbytes(self) -> int:
        return tree_bytes(self._tree) + (0 if self._apart is None else self._apart.nbytes)

    @property
    def report(self) -> dict[str, int]:
        tree = self._tree
        n = int(tree.used[USED_NODES])
        kinds = np.bincount(tree.nodes[:n, KIND], minlength=3).tolist()
        return {
            "leaves": kinds[LEAF],
            "k-nodes": kinds[1],
            "s-nodes": kinds[2],
            "absent dummies": int(np.count_nonzero(tree.nodes[:n, DUMMY] == NONE)) - kinds[LEAF],
            "copies of rows": int(tree.rows.heads[:n, COUNT].sum(dtype=np.int64)),
            "copies of messages": int(tree.messages.heads[:n, COUNT].sum(dtype=np.int64)),
            "most copies of a message": self._copies,
            "rebuilds": self._rebuilds,
            "divided leaves": self._divisions,
        }


def _divergence(built: np.ndarray, counts: np.ndarray) -> float:
    """The Kullback-Leibler divergence of the leaves' weights at the build from those now."""
    old = np.zeros(len(counts))
    old[: len(built)] = built
    was, now = (old + 1) / (old + 1).sum(), (counts + 1) / (counts + 1).sum()
    return float((was * np.log(was / now)).sum())

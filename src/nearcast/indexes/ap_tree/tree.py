"""The tree of a method: built, changed, kept in shape."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nearcast.arrays.ragged import distinct
from nearcast.geo.space import Space
from nearcast.indexes.ap_tree.build import Builder
from nearcast.indexes.ap_tree.change import emptied, insert_items, remove_items
from nearcast.indexes.ap_tree.division import Divider, Settings
from nearcast.indexes.ap_tree.drift import drifted
from nearcast.indexes.ap_tree.nodes import BY_PLACE, BY_WORDS, DUMMY, KIND, LEAF, NONE, ROOT, USED_NODES, WEIGHT, Tree
from nearcast.indexes.ap_tree.pack import is_loose, packed
from nearcast.indexes.ap_tree.ranks import Ranks
from nearcast.indexes.ap_tree.route import OUT_TOO_SHORT, TREE_TOO_FULL
from nearcast.matching.sample import sample_messages
from nearcast.matching.store import RowStore
from nearcast.model import MessageBatch
from nearcast.structures.expected_messages import ExpectedMessages as Expected

MOST = 2048

_PATH = 256
_LOOK = 32  # the tree is looked over for drift whenever one row in so many has changed
_WORK = 8  # rows that may be built anew for each row that has changed: what drift costs is bounded by that
_SHARE = 1000  # of the rows, one in so many is the least that a node built anew for drift must have


class Upkeep(NamedTuple):
    """What was done to keep the tree in shape since it was made."""

    splits: int = 0  # leaves that were divided, or found to be as good as they are
    collapses: int = 0  # nodes that became leaves again
    rebuilds: int = 0  # nodes built anew for drift
    rebuilt_rows: int = 0  # rows below those
    changed: int = 0  # rows that came or went since the last look
    credit: int = 0  # rows that may be built anew


class ApTreeStore:
    """Rows in, rows out; leaves are divided and nodes collapsed as it goes."""

    def __init__(self, store: RowStore, space: Space, settings: Settings) -> None:
        settings.check()
        self._store = store
        self._space = space
        self._settings = settings
        self.sample: MessageBatch | None = None
        self.done = Upkeep()
        self._path = np.empty(_PATH, np.int32)
        self.start(np.zeros(0, np.int32))

    def expect(self, messages: MessageBatch) -> None:
        self.sample = sample_messages(messages, MOST) if messages.size else None

    # -- building

    def start(self, rows: np.ndarray) -> None:
        """Build anew, of these rows alone."""
        self.ranks = Ranks()
        self.ranks.start(self._store.frequencies)
        self.tree = Tree()
        self.tree.reserve(nodes=1)
        facts = self.tree.facts
        self.tree.head[USED_NODES] = 1
        self.tree.shape.nodes[ROOT] = 0
        self.tree.shape.nodes[ROOT, DUMMY] = NONE
        facts.built[ROOT], facts.flags[ROOT], facts.ratios[ROOT] = 0, BY_WORDS | BY_PLACE, self._settings.copies
        facts.regions[ROOT] = _region(self._store.arrays.boxes[rows], self._space)
        self._learn()
        self._build(ROOT, rows)

    def _learn(self) -> None:
        """Take the frequencies of now for the chances of terms."""
        self.expected = Expected(self.sample, self.ranks.by_term, self._store.frequencies, self.ranks.count)

    def _build(self, node: int, rows: np.ndarray) -> None:
        ranked = self.ranks.of_rows(self._store, rows)
        self.expected.know(self.ranks.count)
        Builder(self.tree, Divider(ranked, self._settings, self.expected)).build(
            node, np.arange(len(rows), dtype=np.int32)
        )

    def rebuild(self, node: int) -> int:
        """Build what is below a node anew; return of how many rows."""
        rows = distinct(emptied(self.tree.shape, self.tree.facts, node))
        self._build(node, rows)
        return len(rows)

    # -- changes

    @property
    def _limits(self) -> tuple[int, int]:
        return self._settings.f, self._settings.theta_p

    def insert(self, rows: np.ndarray) -> None:
        ranked = self.ranks.of_rows(self._store, rows)
        done, large = 0, []
        while True:
            done, needed, more = insert_items(self.tree.shape, self.tree.facts, ranked, done, self._limits, self._path)
            large.append(more)
            if done == len(rows):
                break
            self._make_room(needed)
        divided = np.concatenate(large).tolist()
        for node in divided:
            self.rebuild(node)
        self.done = self.done._replace(splits=self.done.splits + len(divided))
        self._tidy(len(rows))

    def _make_room(self, needed: int) -> None:
        """For one more row: for so many entries, or for what lacks."""
        if needed == OUT_TOO_SHORT:
            self._path = np.empty(2 * len(self._path), np.int32)
        elif needed == TREE_TOO_FULL:
            self.tree.reserve(nodes=len(self._path), cuts=2 * self._settings.f + 4)
        else:
            self.tree.reserve(entries=needed)

    def remove(self, rows: np.ndarray) -> None:
        least, changed = self._settings.theta_p // 2, len(rows)
        small = [rows[:0]]
        while len(rows):
            ranked = self.ranks.of_rows(self._store, rows)
            shape, facts = self.tree.shape, self.tree.facts
            done, lacking, more = remove_items(shape, facts, ranked, least, self._limits, self._path)
            small.append(more)
            rows = rows[done:]
            if len(rows):
                self._make_room(lacking)
        collapsed = 0
        for node in np.concatenate(small).tolist():
            if self.tree.shape.nodes[node, KIND] != LEAF:
                self.rebuild(node)
                collapsed += 1
        self.done = self.done._replace(collapses=self.done.collapses + collapsed)
        self._tidy(changed)

    def _tidy(self, changed: int) -> None:
        """After so many rows have changed."""
        if self._settings.rebuild:
            self._follow_drift(changed)
        if is_loose(self.tree):
            self.tree = packed(self.tree)

    def _follow_drift(self, changed: int) -> None:
        """Build nodes anew that no longer fit, within the work that the changes since the build allow."""
        n = int(self.tree.shape.nodes[ROOT, WEIGHT])
        changed += self.done.changed
        if _LOOK * changed < n:
            self.done = self.done._replace(changed=changed)
            return
        credit = min(self.done.credit + _WORK * changed, n)
        least = max(n // _SHARE, self._settings.theta_p + 1)
        nodes = drifted(self.tree.shape, self.tree.facts, least, self._settings.theta_kl, credit).tolist()
        if nodes:
            self._learn()
        rows = sum(self._rebuild_all() if node == ROOT else self.rebuild(node) for node in nodes)
        self.done = self.done._replace(
            rebuilds=self.done.rebuilds + len(nodes),
            rebuilt_rows=self.done.rebuilt_rows + rows,
            changed=0,
            credit=max(0, credit - rows),
        )

    def _rebuild_all(self) -> int:
        rows = distinct(emptied(self.tree.shape, self.tree.facts, ROOT))
        self.start(rows)
        return len(rows)

    # -- files

    @property
    def nbytes(self) -> int:
        return self.tree.nbytes + int(self.ranks.by_term.nbytes + self.expected.chances.nbytes)

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays = self.tree.state() | {"ranks": self.ranks.by_term, "chances": self.expected.chances}
        if self.sample is not None:
            arrays |= {f"expected_{name}": array for name, array in self.sample._asdict().items()}
        return arrays, {"ranks": self.ranks.count, "upkeep": self.done._asdict()}

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        self.tree.restore(arrays)
        self.ranks.by_term, self.ranks.count = arrays["ranks"], header["ranks"]
        self.done = Upkeep(**header["upkeep"])
        if "expected_ids" in arrays:
            self.sample = MessageBatch(*(arrays[f"expected_{name}"] for name in MessageBatch._fields))
        self._learn()
        self.expected.chances = arrays["chances"]


def _region(boxes: np.ndarray, space: Space) -> np.ndarray:
    """Where the rows are, within the bounds of the space if some are: one huge box shall not make all others small."""
    bounds = np.array(space.bounds)
    if len(boxes) == 0:
        return bounds
    hull = np.concatenate([boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)])
    inside = np.concatenate([np.maximum(hull[:2], bounds[:2]), np.minimum(hull[2:], bounds[2:])])
    return inside if (inside[:2] <= inside[2:]).all() else hull

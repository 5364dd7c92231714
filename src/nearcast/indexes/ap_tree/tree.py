"""The structure of `ap-tree`: builds and changes the tree, and keeps its division fit for the rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nearcast.arrays.ragged import distinct
from nearcast.geo.space import Space
from nearcast.indexes.ap_tree import layout
from nearcast.indexes.ap_tree.build import Builder
from nearcast.indexes.ap_tree.change import drifted, emptied, insert_items, remove_items
from nearcast.indexes.ap_tree.cuts import Ranks
from nearcast.indexes.ap_tree.division import Divider, Settings
from nearcast.indexes.ap_tree.layout import ROOT, Tree
from nearcast.indexes.ap_tree.pack import is_loose, packed
from nearcast.indexes.ap_tree.route import OUT_TOO_SHORT, TREE_TOO_FULL, Limits
from nearcast.matching.store import RowStore
from nearcast.structures.expected_messages import ExpectedMessages, SampledStructure

_PATH = 256
_CHECK = 32  # the tree is checked for drift whenever one row in 32 has changed
_WORK = 8  # rows that may be rebuilt for each row that has changed: this bounds the cost of drift
_SHARE = 1000  # a node that is rebuilt for drift has at least one in a thousand of the rows


class Upkeep(NamedTuple):
    """The work done so far to keep the division fit."""

    splits: int = 0  # full leaves that were divided, or found to be best undivided
    collapses: int = 0  # nodes that became leaves again
    rebuilds: int = 0  # nodes rebuilt for drift
    rebuilt_rows: int = 0  # rows below those
    changed: int = 0  # rows inserted or removed since the last check
    credit: int = 0  # rows that may be rebuilt


class ApTreeStore(SampledStructure):
    """The tree, its term ranks and its expected messages."""

    def __init__(self, store: RowStore, space: Space, settings: Settings) -> None:
        settings.check()
        self._store = store
        self._space = space
        self._settings = settings
        self._limits = Limits(settings.f, settings.theta_p)
        self.done = Upkeep()
        self._path = np.empty(_PATH, np.int32)
        self.build(np.zeros(0, np.int32))

    def build(self, rows: np.ndarray) -> None:
        self.ranks = Ranks(self._store.frequencies)
        self.tree = Tree()
        self.tree.reserve(nodes=1)
        facts = self.tree.facts
        self.tree.head[layout.USED_NODES] = 1
        self.tree.view.nodes[ROOT] = 0
        self.tree.view.nodes[ROOT, layout.DUMMY] = layout.NONE
        facts.built[ROOT], facts.ratios[ROOT] = 0, self._settings.copies
        facts.flags[ROOT] = layout.BY_WORDS | layout.BY_PLACE
        facts.regions[ROOT] = _region(self._store.arrays.boxes[rows], self._space)
        self._learn()
        self._divide(ROOT, rows)

    def _learn(self) -> None:
        """Estimate the probabilities of terms from the sample and the present frequencies."""
        self.expected = ExpectedMessages(self.sample, self.ranks.by_term, self._store.frequencies, self.ranks.count)

    def _divide(self, node: int, rows: np.ndarray) -> None:
        ranked = self.ranks.of_rows(self._store, rows)
        self.expected.extend_to(self.ranks.count)
        divider = Divider(ranked, self._settings, self.expected)
        Builder(self.tree, divider).build(node, np.arange(len(rows), dtype=np.int32))

    def rebuild(self, node: int) -> int:
        """Rebuild the part of the tree below a node; return its number of rows."""
        rows = distinct(emptied(self.tree.view, self.tree.facts, node))
        self._divide(node, rows)
        return len(rows)

    def insert(self, rows: np.ndarray) -> None:
        ranked = self.ranks.of_rows(self._store, rows)
        done, large = 0, []
        while True:
            done, needed, more = insert_items(self.tree.view, self.tree.facts, ranked, done, self._limits, self._path)
            large.append(more)
            if done == len(rows):
                break
            self._make_room(needed)
        divided = np.concatenate(large).tolist()
        for node in divided:
            self.rebuild(node)
        self.done = self.done._replace(splits=self.done.splits + len(divided))
        self._maintain(len(rows))

    def _make_room(self, needed: int) -> None:
        """Make room for one more row: for so many entries, or for what a code of gather_path says."""
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
            view, facts = self.tree.view, self.tree.facts
            done, lacking, more = remove_items(view, facts, ranked, least, self._limits, self._path)
            small.append(more)
            rows = rows[done:]
            if len(rows):
                self._make_room(lacking)
        collapsed = 0
        for node in np.concatenate(small).tolist():
            if self.tree.view.nodes[node, layout.KIND] != layout.LEAF:
                self.rebuild(node)
                collapsed += 1
        self.done = self.done._replace(collapses=self.done.collapses + collapsed)
        self._maintain(changed)

    def _maintain(self, changed: int) -> None:
        """Follow drift and pack the tree, after so many rows have changed."""
        if self._settings.rebuild:
            self._follow_drift(changed)
        if is_loose(self.tree):
            self.tree = packed(self.tree)

    def _follow_drift(self, changed: int) -> None:
        """Rebuild nodes that no longer fit, within the work that the changes since the build allow."""
        n = int(self.tree.view.nodes[ROOT, layout.WEIGHT])
        changed += self.done.changed
        if _CHECK * changed < n:
            self.done = self.done._replace(changed=changed)
            return
        credit = min(self.done.credit + _WORK * changed, n)
        least = max(n // _SHARE, self._settings.theta_p + 1)
        nodes = drifted(self.tree.view, self.tree.facts, least, self._settings.theta_kl, credit).tolist()
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
        rows = distinct(emptied(self.tree.view, self.tree.facts, ROOT))
        self.build(rows)
        return len(rows)

    @property
    def nbytes(self) -> int:
        return self.tree.nbytes + int(self.ranks.by_term.nbytes + self.expected.chances.nbytes)

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays = self.tree.state() | {"ranks": self.ranks.by_term, "chances": self.expected.chances}
        return arrays | self._sample_state(), {"ranks": self.ranks.count, "upkeep": self.done._asdict()}

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        self.tree.restore(arrays)
        self.ranks.by_term, self.ranks.count = arrays["ranks"], header["ranks"]
        self.done = Upkeep(**header["upkeep"])
        self._restore_sample(arrays)
        self._learn()
        self.expected.chances = arrays["chances"]


def _region(boxes: np.ndarray, space: Space) -> np.ndarray:
    """The box around the rows, clipped to the space unless all rows are outside: a huge box must not dwarf the rest."""
    bounds = np.array(space.bounds)
    if len(boxes) == 0:
        return bounds
    hull = np.concatenate([boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)])
    inside = np.concatenate([np.maximum(hull[:2], bounds[:2]), np.minimum(hull[2:], bounds[2:])])
    return inside if (inside[:2] <= inside[2:]).all() else hull

"""The paper's index of rows: a quadtree with inverted files in its leaves, and bounds for rows, groups and cells.

The index is made at once. Rows that come later are in plain lists until there are many; then, and when many thetas have
changed, it is made anew, with fresh quantiles of alpha* and fresh limits of cells.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.jit import kernel
from nearcast.geo.space import Space
from nearcast.topk.dissemination.bulk import FEWEST_YOUNG, BulkBuilt
from nearcast.topk.dissemination.contract import Concerned
from nearcast.topk.dissemination.igpt.build import make_lists, set_cells
from nearcast.topk.dissemination.igpt.cells import NONE, least_place_of, lower_least_place, make_cells
from nearcast.topk.dissemination.igpt.groups import move_posting, theta_star
from nearcast.topk.dissemination.igpt.search import (
    CELLS,
    CELLS_PRUNED,
    ENDED_EARLY,
    GROUPS,
    GROUPS_PRUNED,
    PREFIX_PRUNED,
    SCANNED,
    SCORED,
    UNSEEN_PRUNED,
    Index,
    Query,
    Scratch,
    find_rows,
)
from nearcast.topk.dissemination.norm_lists.scan import message_of
from nearcast.topk.embedding import Embedding
from nearcast.topk.rows import TopRows
from nearcast.topk.score import Metric
from nearcast.topk.window import Window

CHANGES_PER_ROW = 8
"""The index is made anew after so many changes of thetas for each row: limits of cells only fall in between."""


class Places(NamedTuple):
    """How places are compared: exactly, and by bounds."""

    space: Space
    embedding: Embedding


class Igpt(BulkBuilt):
    """`prunes_groups` False leaves out the bounds on groups and cells: the paper's IPT."""

    name = "igpt"

    def __init__(self, rows: TopRows, metric: Metric, places: Places, prunes_groups: bool, leaf: int) -> None:
        super().__init__(rows, metric)
        self.leaf = leaf
        self.space, self.embedding = places
        self.prunes_groups = prunes_groups
        self._counters = np.zeros(10, np.int64)
        self._message = message_of(64)
        self.build(np.empty(0, np.int32), np.empty(0))

    def _make(self, numbers: np.ndarray, weights: np.ndarray) -> None:
        self._weights = weights
        cells, leaves = make_cells(self.rows.arrays, numbers, self.space, self.leaf)
        inner = set_cells(self.rows, numbers, leaves, cells, self.metric)
        postings, directory = make_lists(self.rows, numbers, leaves, weights, inner)
        self._leaves = np.zeros(len(self.rows.arrays.ks), np.int32)
        self._leaves[numbers] = leaves
        places = (self.metric, self.embedding)
        self._index = Index(self.rows.arrays, cells, postings, directory, weights, *places, self.prunes_groups)
        whole = (np.full(self.rows.high, NONE, np.int32), np.empty(self.rows.high, np.int32))
        n_cells = len(cells.boxes)
        by_cell = (np.empty(n_cells + 4, np.int32), np.empty(n_cells))
        self._scratch = Scratch(*whole, *by_cell, np.empty(self.rows.high), np.empty(3), self._counters)
        self._n_changed = 0

    # -- rows

    def add(self, numbers: np.ndarray, weights: np.ndarray) -> None:
        super().add(numbers, weights)
        self._weights = weights

    def _forget(self, numbers: np.ndarray) -> None:
        forget_rows(self.rows.arrays, self._index.postings, self._index.directory, numbers)

    def thetas_changed(self, numbers: np.ndarray) -> None:
        old = self.old_of(numbers)
        self._n_changed += len(old)
        if self._n_changed > CHANGES_PER_ROW * max(self._n_built, FEWEST_YOUNG):
            self.build(self.rows.live_rows(), self._weights)
            return
        index = self._index._replace(rows=self.rows.arrays)
        refile(self.rows.arrays, index.postings, index.directory, index.cells, self._leaves, old)

    def terms_moved(self, kept: np.ndarray) -> None:
        super().terms_moved(kept)
        own, ranked = (
            grown(column, len(self.rows.arrays.terms), fill=0)[kept]
            for column in (self._index.directory.own, self._index.directory.ranked)
        )
        self._index = self._index._replace(directory=self._index.directory._replace(own=own, ranked=ranked))

    def renumber(self) -> None:
        super().renumber()
        self._scratch.seen[:] = NONE

    # -- messages

    def _find_old(self, window: Window, arrival: int, weights: np.ndarray) -> Concerned:
        n_terms = int(window.ring.counts[arrival & (len(window.ring.ids) - 1)])
        if n_terms > len(self._message.terms):
            self._message = message_of(2 * n_terms)
        sums = (np.empty(n_terms + 1), np.empty(n_terms + 1))
        query = Query(self._message, *sums, self.values_of(len(weights)), np.zeros(1, np.int64))
        scratch, index = self._scratch, self._index._replace(rows=self.rows.arrays, weights=weights)
        n = int(find_rows(index, query, window.ring, arrival, scratch))
        return Concerned(scratch.candidates[:n], scratch.scores[:n])

    @property
    def nbytes(self) -> int:
        index = self._index
        arrays = (*index.cells, *index.postings, *index.directory, self._leaves, self._scratch.seen)
        return int(sum(array.nbytes for array in arrays)) + super().nbytes

    @property
    def stats(self) -> dict[str, int]:
        names = {
            "cells": CELLS,
            "cells_pruned": CELLS_PRUNED,
            "groups": GROUPS,
            "groups_pruned": GROUPS_PRUNED,
            "ended_early": ENDED_EARLY,
            "scanned": SCANNED,
            "prefix_pruned": PREFIX_PRUNED,
            "unseen_pruned": UNSEEN_PRUNED,
            "scored": SCORED,
        }
        return {name: int(self._counters[at]) for name, at in names.items()}


@kernel
def forget_rows(rows, postings, directory, numbers):
    for row in numbers:
        for k in range(rows.offsets[row], rows.offsets[row] + rows.n_terms[row]):
            postings.rows[directory.own[k]] = -1


@kernel
def refile(rows, postings, directory, cells, leaves, numbers):
    """Move the postings of rows whose theta changed, and lower the limits of their cells."""
    for row in numbers:
        key = theta_star(rows.numbers, row)
        for k in range(rows.offsets[row], rows.offsets[row] + rows.n_terms[row]):
            move_posting(postings, directory, rows.offsets, directory.own[k], key)
        lower_least_place(cells, leaves[row], least_place_of(rows.numbers, row))

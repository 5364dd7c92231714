"""The paper's index of rows: a quadtree with inverted files in its leaves, and bounds for rows, groups and cells.

The index is made at once. Rows that come later are in plain lists until there are many; then, and when many thetas have
changed, it is made anew, with fresh quantiles of alpha* and fresh limits of cells.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.jit import kernel
from nearcast.geo.space import Space
from nearcast.topk.dissemination.contract import Concerned, Dissemination
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
    UNSEEN_PRUNED,
    Index,
    Query,
    Scratch,
    follow_ups,
    search_cells,
)
from nearcast.topk.dissemination.norm_lists.scan import MessageTerms, read_message
from nearcast.topk.dissemination.plain_lists import PlainLists
from nearcast.topk.dissemination.verify import keep_concerned
from nearcast.topk.rows import TopRows
from nearcast.topk.score import Metric, clear_values, set_values
from nearcast.topk.window import Window

LARGEST_YOUNG_SHARE = 0.1
FEWEST_YOUNG = 16
CHANGES_PER_ROW = 8
"""The index is made anew after so many changes of thetas for each row: limits of cells only fall in between."""


class Igpt(Dissemination):
    """`prunes_groups` False leaves out the bounds on groups and cells: the paper's IPT."""

    name = "igpt"

    def __init__(self, rows: TopRows, metric: Metric, space: Space, prunes_groups: bool, leaf: int) -> None:
        super().__init__(rows, metric)
        self.leaf = leaf
        self.space = space
        self.prunes_groups = prunes_groups
        self._young = PlainLists(rows, metric)
        self._is_young = np.empty(0, bool)
        self._counters = np.zeros(9, np.int64)
        self._n_scored = 0
        self._build(np.empty(0, np.int32), np.empty(0))

    def _build(self, numbers: np.ndarray, weights: np.ndarray) -> None:
        """Make the index of these rows; no row is young."""
        young = np.flatnonzero(self._is_young).astype(np.int32)
        self._young.remove(young)
        self._is_young = np.zeros(len(self.rows.arrays.ks), bool)
        self._weights = weights
        cells, leaves = make_cells(self.rows.arrays, numbers, self.space, self.leaf)
        postings, directory = make_lists(self.rows, numbers, leaves, weights)
        inner = set_cells(self.rows, numbers, leaves, cells, self.metric.planar)
        self._leaves = np.zeros(len(self.rows.arrays.ks), np.int32)
        self._leaves[numbers] = leaves
        self._index = Index(
            self.rows.arrays, cells, postings, directory, inner, weights, self.metric, self.prunes_groups
        )
        whole = (np.full(self.rows.high, NONE, np.int32), np.empty(self.rows.high, np.int32))
        self._scratch = Scratch(*whole, np.empty(len(cells.boxes) + 4, np.int32), self._counters)
        self._scores = np.empty(self.rows.high)
        self._n_built, self._n_changed = len(numbers), 0

    # -- rows

    def add(self, numbers: np.ndarray, weights: np.ndarray) -> None:
        self._is_young = grown(self._is_young, len(self.rows.arrays.ks), fill=0)
        n_young = int(np.count_nonzero(self._is_young)) + len(numbers)
        if n_young > max(FEWEST_YOUNG, LARGEST_YOUNG_SHARE * self._n_built):
            self._build(self.rows.live_rows(), weights)
            return
        self._young.add(numbers, weights)
        self._is_young[numbers] = True

    def remove(self, numbers: np.ndarray) -> None:
        is_young = self._is_young[numbers]
        self._young.remove(numbers[is_young])
        self._is_young[numbers] = False
        forget_rows(self.rows.arrays, self._index.postings, self._index.directory, numbers[~is_young])

    def thetas_changed(self, numbers: np.ndarray) -> None:
        old = numbers[~self._is_young[numbers]]
        self._n_changed += len(old)
        if self._n_changed > CHANGES_PER_ROW * max(self._n_built, FEWEST_YOUNG):
            self._build(self.rows.live_rows(), self._weights)
            return
        index = self._index._replace(rows=self.rows.arrays)
        refile(self.rows.arrays, index.postings, index.directory, index.cells, self._leaves, old)

    def terms_moved(self, kept: np.ndarray) -> None:
        self._young.terms_moved(kept)
        own, ranked = (
            grown(column, len(self.rows.arrays.terms), fill=0)[kept]
            for column in (self._index.directory.own, self._index.directory.ranked)
        )
        self._index = self._index._replace(directory=self._index.directory._replace(own=own, ranked=ranked))

    def renumber(self) -> None:
        self._young.renumber()
        self._scratch.seen[:] = NONE

    # -- messages

    def find(self, window: Window, arrival: int, weights: np.ndarray) -> Concerned:
        ring, at = window.ring, arrival & (len(window.ring.ids) - 1)
        n_terms, place, values = int(ring.counts[at]), ring.places[at], self.values_of(len(weights))
        terms = MessageTerms(np.empty(n_terms, np.int32), np.empty(n_terms), np.empty(n_terms), np.empty((n_terms, 5)))
        read_message(ring, arrival, weights, terms)
        sums = (np.empty(n_terms + 1), np.empty(n_terms + 1))
        query = Query(terms.terms, terms.weights, *sums, values, place, arrival)
        follow_ups(n_terms, query)
        set_values(ring, arrival, values)
        index = self._index._replace(rows=self.rows.arrays)
        n = int(search_cells(index, query, n_terms, self._scratch))
        self._n_scored += n
        candidates = self._scratch.candidates
        n = keep_concerned(self.rows.arrays, self.metric, values, place, candidates, n, self._scores)
        clear_values(ring, arrival, values)
        more = (
            self._young.find(window, arrival, weights)
            if self._is_young.any()
            else Concerned(candidates[:0], sums[0][:0])
        )
        return Concerned(np.concatenate([candidates[:n], more.rows]), np.concatenate([self._scores[:n], more.scores]))

    @property
    def nbytes(self) -> int:
        index = self._index
        arrays = (*index.cells, *index.postings, *index.directory, index.inner, self._leaves, self._scratch.seen)
        return int(sum(array.nbytes for array in arrays)) + self._young.nbytes

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
        }
        return {name: int(self._counters[at]) for name, at in names.items()} | {"scored": self._n_scored}


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

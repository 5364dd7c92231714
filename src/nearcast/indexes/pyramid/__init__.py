"""Pyramid: grids by box size, under the rarest term.

Paper      nearcast; our own design, based on the four papers and on the memory hierarchy of current machines.
Idea       Each row is filed only under its rarest term. A crowded term has a few grids, each for boxes of about the
           size of its cells; a point message reads one cell of each grid. A box is encoded as four bytes, the positions
           of its edges within the cell, and eight boxes are tested at a time. A 64-bit mask of the places of its boxes
           lets a message skip most terms.
Layout     immutable runs (masks and nodes by term, grids by crowded term, lists of 8 or 12 bytes an entry), and a small
           young part of plain posting lists. Removing a row overwrites the box of its entries. Runs merge as they grow.
Cost       match: a few cache misses a term; insert and remove O(log n) amortised; 8 bytes for each copy of a row with
           one term, 12 for other rows.
Deviates   nothing.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.errors import InvalidInput
from nearcast.geo.space import Space
from nearcast.indexes.pyramid.box_codes import Axes, mapped_boxes
from nearcast.indexes.pyramid.build import built_run
from nearcast.indexes.pyramid.run import MOST_PLAIN, RunArrays, mark_dead
from nearcast.indexes.pyramid.single import PointMemory
from nearcast.indexes.pyramid.view import PyramidView, RoomHint, TermlessView
from nearcast.matching.method import Method
from nearcast.matching.store import RowStore, StoreView
from nearcast.model import Hits, MessageBatch, Work
from nearcast.structures.keyword_lists import KeywordLists
from nearcast.structures.postings import NO_POSTINGS

NOWHERE, YOUNG, FIRST_RUN = 0, 1, 2


class Pyramid(Method):
    name = "pyramid"
    paper = "nearcast"
    cost_ns = (60.0, 1.0)
    effort_ceiling = 0.1
    checked_with = ("", "crowded=2 young=0", "crowded=3 young=40")
    changes_in_place = False  # a change makes new runs; dead entries are marked when no reader may see them
    rebuild_growth = math.inf  # never rebuilt from outside: each merge of runs uses the current frequencies

    def __init__(
        self, store: RowStore, space: Space, crowded: int = 64, young: int = 65_536, termless: bool = False
    ) -> None:
        super().__init__(store, space)
        if not 1 <= crowded <= MOST_PLAIN:
            raise InvalidInput(f"crowded is 1 to {MOST_PLAIN}, not {crowded}")
        self._crowded = crowded
        self._view = TermlessView if termless else PyramidView  # whether all rows lack terms
        self._most_young = young
        self._hint, self._memory = RoomHint(), PointMemory()
        self._clear()

    def _clear(self) -> None:
        self._young = KeywordLists(self.store)
        self._runs: dict[int, RunArrays] = {}
        self._live = np.zeros(256, np.int64)  # by home: live rows
        self._built_with = np.zeros(256, np.int64)  # by home: its live rows when it was built
        self._homes = np.zeros(0, np.uint8)  # by row: NOWHERE, YOUNG, or the number of its run
        self._firsts = np.zeros(0, np.int32)  # by row: the term under which its run files it

    # -- changes

    def build(self, rows: np.ndarray) -> None:
        self._clear()
        self._make_room()
        if len(rows):
            self._make_run(np.sort(rows), FIRST_RUN)

    def insert(self, rows: np.ndarray) -> None:
        self._make_room()
        if self._live[YOUNG] + len(rows) <= self._most_young:
            self._young.insert(rows)
            self._add_to(rows, YOUNG)
        else:
            self._merge(rows)

    def _make_room(self) -> None:
        self._homes = grown(self._homes, self.store.high, fill=NOWHERE)
        self._firsts = grown(self._firsts, self.store.high)

    def remove(self, rows: np.ndarray) -> None:
        homes = self._homes[rows]
        for home in np.flatnonzero(np.bincount(homes)).tolist():
            gone = rows[homes == home]
            if home == YOUNG:
                self._young.remove(gone)
            else:
                self._mark_dead(self._runs[home], gone)
            self._homes[gone] = NOWHERE
            self._live[home] -= len(gone)
            if home != YOUNG:
                self._shrink(home)

    def _mark_dead(self, run: RunArrays, rows: np.ndarray) -> None:
        steps = np.empty((len(rows), 4), np.int32)
        mapped_boxes(Axes(run.x_knots, run.y_knots), self.store.arrays.boxes[rows], steps)
        mark_dead(run, self._firsts[rows], steps, rows)

    def _shrink(self, home: int) -> None:
        """Rebuild a run once half of its rows are dead; drop a run without rows."""
        if self._live[home] == 0:
            del self._runs[home]
        elif 2 * self._live[home] < self._built_with[home]:
            self._make_run(np.flatnonzero(self._homes == home).astype(np.int32), home)

    def _merge(self, rows: np.ndarray) -> None:
        """Make one run of these rows, the young rows, and each run that has no more rows than were gathered so far.

        So each run is at least twice as large as the next smaller one: there are log n runs, and a row moves log n
        times.
        """
        gathered = len(rows) + self._live[YOUNG]
        absorbed = [YOUNG]
        for home in sorted(self._runs, key=lambda number: self._live[number]):
            if self._live[home] > gathered:
                break
            gathered += self._live[home]
            absorbed.append(home)
        is_absorbed = np.zeros(256, np.bool_)
        is_absorbed[absorbed] = True
        old = np.flatnonzero(is_absorbed[self._homes]).astype(np.int32)
        for home in absorbed:
            self._runs.pop(home, None)
            self._live[home] = 0
        self._young = KeywordLists(self.store)
        self._make_run(np.sort(np.concatenate([old, rows])), self._free_number())

    def _free_number(self) -> int:
        return next(number for number in range(FIRST_RUN, 256) if number not in self._runs)

    def _make_run(self, rows: np.ndarray, home: int) -> None:
        self._runs[home], self._firsts[rows] = built_run(self.store, rows, self.space.bounds, self._crowded)
        self._live[home], self._built_with[home] = 0, len(rows)
        self._add_to(rows, home)

    def _add_to(self, rows: np.ndarray, home: int) -> None:
        self._homes[rows] = home
        self._live[home] += len(rows)

    # -- matching

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        return self.searcher(self.store.view()).match(messages)

    def searcher(self, store: StoreView) -> PyramidView:
        young = self._young.arrays if self._live[YOUNG] else NO_POSTINGS
        return self._view(tuple(self._runs.values()), young, store, self._hint, self._memory)

    @property
    def nbytes(self) -> int:
        runs = sum(int(array.nbytes) for run in self._runs.values() for array in run)
        return runs + self._young.nbytes + int(self._homes.nbytes + self._firsts.nbytes)

    # -- files

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays, header = self._young.state()
        for number, run in self._runs.items():
            arrays |= {f"run{number}_{name}": array for name, array in run._asdict().items()}
        arrays |= {"homes": self._homes, "firsts": self._firsts, "live": self._live, "built_with": self._built_with}
        return arrays, {"young": header, "runs": list(self._runs)}

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        self._young.restore(arrays, header["young"])
        self._homes, self._firsts = arrays["homes"], arrays["firsts"]
        self._live, self._built_with = arrays["live"], arrays["built_with"]
        self._runs = {
            number: RunArrays(*(arrays[f"run{number}_{name}"] for name in RunArrays._fields))
            for number in header["runs"]
        }

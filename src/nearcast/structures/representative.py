"""Representative terms: which terms represent a row, and in which order. A strategy decides.

`idf` puts the term first that is rarest among all live rows, because rare terms prune best. `locality` puts the term
first that is rarest in the row's cell of a grid, and breaks ties by the frequency among all rows. `df` puts the most
frequent term first; at a build it covers greedily: the most frequent term represents all rows that have it, then the
term that most of the remaining rows have, and so on. `random` is a hash of row and term.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from nearcast.arrays.intmap import IntMap, IntMapArrays, count_down, count_up, find, home_slot
from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import starts_of
from nearcast.errors import InvalidInput
from nearcast.geo.space import Space
from nearcast.matching.store import RowStore, gathered
from nearcast.structures.term_order import NO_TERM

STRATEGIES = ("random", "df", "idf", "locality")
RANDOM, DF, IDF, LOCALITY = range(4)
_WIDE = (1 << 62) - 1


class _Grid(NamedTuple):
    """Equal cells over the space. A box outside belongs to the nearest cell."""

    xmin: float
    ymin: float
    width: float
    height: float
    side: int


class _Measures(NamedTuple):
    """What the order of terms depends on."""

    strategy: int
    frequencies: np.ndarray  # int64[n_terms]  live rows that have the term
    grid: _Grid
    local: IntMapArrays  # (cell, term) -> live rows


class Representatives:
    """Chooses and orders the terms of rows. Its frequencies follow every insert and removal."""

    def __init__(self, store: RowStore, space: Space, tokens: str, cells: int) -> None:
        if tokens not in STRATEGIES:
            raise InvalidInput(f"tokens is one of {', '.join(STRATEGIES)}, not {tokens!r}")
        if not isinstance(cells, int) or not 1 <= cells <= 2**30:
            raise InvalidInput(f"cells is a whole number from 1 to {2**30}, not {cells!r}")
        self._store = store
        self._strategy = STRATEGIES.index(tokens)
        xmin, ymin, xmax, ymax = space.bounds
        self._grid = _Grid(xmin, ymin, xmax - xmin, ymax - ymin, math.isqrt(cells))
        self._local = IntMap()  # (cell, term) -> live rows there; empty unless by locality

    @property
    def nbytes(self) -> int:
        return self._local.nbytes

    def start(self, rows: np.ndarray) -> None:
        """Count these rows only."""
        self._local = IntMap()
        self.add(rows)

    def add(self, rows: np.ndarray) -> None:
        """Count rows that are inserted."""
        if self._strategy == LOCALITY:
            # Some at a time: most of their terms are already counted in their cells, and need no room.
            for first in range(0, len(rows), 1 << 17):
                some = rows[first : first + (1 << 17)]
                self._local.reserve(self._local.size + int(self._store.arrays.n_terms[some].sum(dtype=np.int64)))
                self._local.size += _count(self._store.arrays, self._grid, self._local.arrays, some, True)

    def forget(self, rows: np.ndarray) -> None:
        """Stop counting rows that are removed; they are still in the store."""
        if self._strategy == LOCALITY:
            self._local.size -= _count(self._store.arrays, self._grid, self._local.arrays, rows, False)

    def firsts(self, rows: np.ndarray) -> np.ndarray:
        """int32[n]: the first term of each row in the order of the strategy."""
        out = np.full(len(rows), NO_TERM, np.int32)
        _firsts(self._store.arrays, self._measures, rows, out)
        return out

    def cover(self, rows: np.ndarray) -> np.ndarray:
        """int32[n]: the same for the rows of a build, where `df` covers greedily."""
        if self._strategy != DF:
            return self.firsts(rows)
        arrays = self._store.arrays
        terms = gathered(arrays.terms, arrays.offsets[rows], arrays.n_terms[rows])
        counts = np.bincount(terms, minlength=self._store.n_terms)
        starts, out = starts_of(counts), np.full(len(rows), NO_TERM, np.int32)
        _cover(arrays, rows, counts, starts, out)
        return out

    def orders(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(values int32, starts): the terms of each row in the order of the strategy."""
        starts = starts_of(self._store.arrays.n_terms[rows])
        out = np.empty(starts[-1], np.int32)
        _orders(self._store.arrays, self._measures, rows, starts, out)
        return out, starts

    @property
    def _measures(self) -> _Measures:
        return _Measures(self._strategy, self._store.frequencies, self._grid, self._local.arrays)

    def state(self) -> dict[str, np.ndarray]:
        return {f"local_{name}": array for name, array in self._local.arrays._asdict().items()}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self._local = IntMap.from_arrays(IntMapArrays(arrays["local_keys"], arrays["local_values"]))


@kernel
def _cell(grid, box):
    """The cell of the centre of a box. The centre may be infinite, so it is clipped before it becomes an integer."""
    x = (box[0] / 2 + box[2] / 2 - grid.xmin) / grid.width * grid.side
    y = (box[1] / 2 + box[3] / 2 - grid.ymin) / grid.height * grid.side
    column = np.int64(min(max(x, 0.0), grid.side - 1.0))
    return np.int64(min(max(y, 0.0), grid.side - 1.0)) * grid.side + column


@kernel
def _count(arrays, grid, table, rows, is_insert):
    """Count the terms of inserted or removed rows in their cells; return how many pairs are new, or are gone."""
    changed = 0
    for i in range(len(rows)):
        cell = _cell(grid, arrays.boxes[rows[i]])
        first = arrays.offsets[rows[i]]
        for k in range(first, first + arrays.n_terms[rows[i]]):
            key = (cell << 32) | arrays.terms[k]
            changed += count_up(table, key) if is_insert else count_down(table, key)
    return changed


@kernel
def _measure(measures, cell, row, term):
    """A number by which terms are sorted, ascending."""
    frequency = measures.frequencies[term]
    if measures.strategy == IDF:
        return frequency
    if measures.strategy == DF:
        return -frequency
    if measures.strategy == RANDOM:
        return home_slot((np.int64(row) << 32) | term, _WIDE)
    return (np.int64(find(measures.local, (cell << 32) | term)) << 32) | frequency


@kernel
def _firsts(arrays, measures, rows, out):
    for i in range(len(rows)):
        cell = _cell(measures.grid, arrays.boxes[rows[i]])
        first = arrays.offsets[rows[i]]
        least = np.int64(0)
        for k in range(first, first + arrays.n_terms[rows[i]]):
            measure = np.int64(_measure(measures, cell, rows[i], arrays.terms[k]))
            if out[i] == NO_TERM or measure < least:
                out[i] = arrays.terms[k]
                least = measure


@kernel
def _orders(arrays, measures, rows, starts, out):
    for i in range(len(rows)):
        cell = _cell(measures.grid, arrays.boxes[rows[i]])
        first, n = arrays.offsets[rows[i]], np.int64(arrays.n_terms[rows[i]])
        by = np.empty(n, np.int64)
        for k in range(n):
            by[k] = _measure(measures, cell, rows[i], arrays.terms[first + k])
        order = np.argsort(by, kind="mergesort")
        for k in range(n):
            out[starts[i] + k] = arrays.terms[first + order[k]]


@kernel
def _members(arrays, rows, starts):
    """For each term, the positions in `rows` of the rows that have it."""
    out, ends = np.empty(starts[-1], np.int32), starts.copy()
    for i in range(len(rows)):
        first = arrays.offsets[rows[i]]
        for k in range(first, first + arrays.n_terms[rows[i]]):
            out[ends[arrays.terms[k]]] = i
            ends[arrays.terms[k]] += 1
    return out


@kernel
def _cover(arrays, rows, counts, starts, out):
    """The greedy cover. Terms are chained by the number of uncovered rows that have them. A term whose number has
    fallen meanwhile moves to a lower chain when its turn comes, so it is visited about as often as its number falls.
    """
    members = _members(arrays, rows, starts)
    chains, following = np.full(counts.max() + 1 if len(counts) else 1, NO_TERM), np.full(len(counts), NO_TERM)
    for term in range(len(counts) - 1, -1, -1):
        following[term] = chains[counts[term]]
        chains[counts[term]] = term
    number = len(chains) - 1
    while number > 0:
        term = chains[number]
        if term == NO_TERM:
            number -= 1
            continue
        chains[number] = following[term]
        if counts[term] < number:
            following[term] = chains[counts[term]]
            chains[counts[term]] = term
            continue
        for k in range(starts[term], starts[term + 1]):
            i = members[k]
            if out[i] == NO_TERM:
                out[i] = term
                first = arrays.offsets[rows[i]]
                for at in range(first, first + arrays.n_terms[rows[i]]):
                    counts[arrays.terms[at]] -= 1

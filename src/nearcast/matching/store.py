"""The row store: the content of every live row, once, for all methods.

Rows are numbered in the order in which they are added. The number of a removed row is not used again, so readers of an
older version skip newer rows by their numbers. A store that nobody reads while it changes may reuse numbers. Methods
keep row numbers, and copies of what they want inline; they read the rest here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import starts_of
from nearcast.geo.shapes.arrays import ShapeArrays
from nearcast.geo.shapes.columns import NO_SHAPES, ShapeColumns
from nearcast.geo.shapes.table import ShapeTable
from nearcast.geo.space import Space
from nearcast.matching.predicate import (
    FLAG_EXPIRES,
    FLAG_LEAVING,
    FLAG_LIVE,
    FLAG_NEGATIVE,
    FLAG_SHAPED,
    NEEDS_VERIFYING,
)
from nearcast.matching.row_params import MatchParams, RowParams
from nearcast.model import NEVER, NO_SHAPE, RowBatch


class RowArrays(NamedTuple):
    """What kernels read. A row is a subscription's (clause, box); flags are 0 where no live row is."""

    boxes: np.ndarray  # float64[n,4]
    offsets: np.ndarray  # int64[n]   where the row's terms lie: positive ones, then negative ones
    n_terms: np.ndarray  # uint16[n]  how many positive terms
    n_not: np.ndarray  # uint16[n]  how many negative terms
    flags: np.ndarray  # uint8[n]   FLAG_* of the predicate
    terms: np.ndarray  # int32[...]


class RowDetails(NamedTuple):
    """What is read of rows that a method has found: whose they are, and what else they demand."""

    owner_ids: np.ndarray  # int64[n]
    shapes: np.ndarray  # int32[n]    shape of each row, or NO_SHAPE; empty where no row ever had a shape
    expires: np.ndarray  # int64[n]    or empty where no row ever had an expiry
    hidden: np.ndarray  # int32[...]  removed rows that methods may still find, ascending


class StoreView(NamedTuple):
    """The rows of one version. Later versions write only behind these rows, or to rows that no reader sees any more."""

    arrays: RowArrays
    details: RowDetails
    shapes: ShapeArrays
    n_terms: int
    in_id_order: bool
    id_step: int | None
    needs_verifying: bool  # some rows demand more than a method decides

    @property
    def high(self) -> int:
        return len(self.arrays.flags)


NO_ROWS = np.empty(0, np.int32)
_FEW = 64


class RowStore:
    """Rows of one kind: `match` without `params`. Shapes and expiry times take memory only where some row has them."""

    def __init__(self, space: Space, params: RowParams | None = None, reuses_numbers: bool = False) -> None:
        self.params = MatchParams() if params is None else params
        types = (np.int64, np.uint16, np.uint16, np.uint8, np.int32)
        self._rows = RowArrays(np.empty((0, 4)), *(np.empty(0, dtype) for dtype in types))  # with spare room
        self._views: RowArrays | None = None
        self.owner_ids = np.empty(0, np.int64)
        self._shapes = np.empty(0, np.int32)
        self._expires = np.empty(0, np.int64)
        self.shape_table = ShapeTable(space)
        self._frequencies = np.zeros(0, np.int64)
        self.n_terms = 0  # terms are 0 .. n_terms - 1; what a message brings beyond that is in no row
        self.high = 0  # rows ever numbered
        self.live = 0
        self.in_id_order = True  # a larger row number never has a smaller owner id
        self.id_step: int | None = None  # owner id - row number, where all rows have the same: ids given by counting
        self.live_unverified = 0  # live rows that the method alone cannot decide: see verify.py
        self._arena_used = 0
        self._arena_dead = 0
        self._free: list[int] | None = [] if reuses_numbers else None  # numbers of removed rows

    @property
    def arrays(self) -> RowArrays:
        """Views of the rows numbered so far; cached until rows are added."""
        views = self._views  # None after a change: this is read for every single message
        if views is None:
            views = RowArrays._make([*(column[: self.high] for column in self._rows[:-1]), self._rows.terms])
            self._views = views
        return views

    def view(self, hidden: np.ndarray = NO_ROWS) -> StoreView:
        """What readers see until the next change. `hidden` are the hidden rows, ascending."""
        high = self.high
        return StoreView(
            self.arrays,
            RowDetails(self.owner_ids[:high], self._shapes[:high], self._expires[:high], hidden),
            self.shape_table.view(),
            self.n_terms,
            self.in_id_order,
            self.id_step,
            self.live_unverified > 0 or len(hidden) > 0,
        )

    @property
    def frequencies(self) -> np.ndarray:
        """int64[n_terms]: how many live rows hold each term."""
        return self._frequencies[: self.n_terms]

    @property
    def expires(self) -> np.ndarray:
        """int64[high], or empty where no row ever had an expiry."""
        return self._expires[: self.high]

    @property
    def nbytes(self) -> int:
        return sum(int(a.nbytes) for a in self.state()[0].values())

    def add(self, batch: RowBatch, shapes: ShapeColumns = NO_SHAPES) -> np.ndarray:
        """Store the rows of a batch and their shapes; return their row numbers."""
        n_terms = len(batch.terms) + len(batch.not_terms)
        rows = self._numbers(batch)
        self._make_room(n_terms)
        self._know(batch.terms)
        self._know(batch.not_terms)
        new = _NewRows(*batch[:8])
        n_timed, n_unverified = _write_rows(self._rows, self.owner_ids, self._frequencies, rows, new, self._arena_used)
        self._arena_used += n_terms
        self._add_shapes(rows, batch.shapes, shapes)
        if n_timed or len(self._expires):
            self._expires = grown(self._expires, self.high, fill=NEVER)
            self._expires[rows] = batch.expires
        self.params.put(self, rows, batch)
        self.live += batch.size
        self.live_unverified += n_unverified
        return rows

    def remove(self, rows: np.ndarray) -> None:
        """Forget these rows, each named once: live ones, or hidden ones that no reader sees any more."""
        flags = self._rows.flags[rows]
        shaped = rows[flags & FLAG_SHAPED > 0]
        if len(shaped):
            self.shape_table.discard(self._shapes[shaped])
        terms = gathered(self._rows.terms, self._rows.offsets[rows], self._rows.n_terms[rows])
        _add_at(self._frequencies, terms, -1)
        self._arena_dead += len(terms) + int(self._rows.n_not[rows].sum(dtype=np.int64))
        self.live -= len(rows)
        self.live_unverified -= int(np.count_nonzero(flags & NEEDS_VERIFYING))
        self._rows.flags[rows] = 0
        if self._free is not None:
            self._free += rows.tolist()
        if self._arena_dead > 1024 and 2 * self._arena_dead > self._arena_used:
            self._compact_terms()

    def live_rows(self) -> np.ndarray:
        """int32: the rows of the present version."""
        return np.flatnonzero(self.arrays.flags & (FLAG_LIVE | FLAG_LEAVING) == FLAG_LIVE).astype(np.int32)

    def stored_rows(self) -> np.ndarray:
        """int32: the live rows, and removed ones that readers of older versions may still see."""
        return np.flatnonzero(self.arrays.flags & FLAG_LIVE).astype(np.int32)

    def terms_in_use(self) -> np.ndarray:
        """The terms of the live rows, positive and negative, in any order, some repeated."""
        rows = self.live_rows()
        counts = self._rows.n_terms[rows].astype(np.int64) + self._rows.n_not[rows]
        return gathered(self._rows.terms, self._rows.offsets[rows], counts)

    def flag(self, rows: np.ndarray, flag: int) -> None:
        self._rows.flags[rows] |= np.uint8(flag)

    def shapes_of(self, rows: np.ndarray) -> np.ndarray:
        return self._shapes[rows] if len(self._shapes) else np.full(len(rows), NO_SHAPE, np.int32)

    def batch(self, rows: np.ndarray) -> tuple[RowBatch, ShapeColumns]:
        """The content of these live rows, as it was given."""
        boxes, offsets, positive, negative, flags = (column[rows] for column in self._rows[:-1])
        shapes = np.where(flags & FLAG_SHAPED > 0, self.shapes_of(rows), NO_SHAPE)
        columns = self.shape_table.columns(shapes[shapes != NO_SHAPE])
        numbers = np.full(len(rows), NO_SHAPE, np.int32)
        numbers[shapes != NO_SHAPE] = np.arange(columns.size)
        expires = self._expires[rows] if len(self._expires) else np.full(len(rows), NEVER)
        batch = RowBatch(
            self.owner_ids[rows],
            gathered(self._rows.terms, offsets, positive),
            starts_of(positive),
            gathered(self._rows.terms, offsets + positive, negative),
            starts_of(negative),
            boxes,
            numbers,
            np.where(flags & FLAG_EXPIRES > 0, expires, NEVER),
            self.params.of_rows(rows),
        )
        return batch, columns

    # -- parts of add and remove

    def _numbers(self, batch: RowBatch) -> np.ndarray:
        """int32: numbers for new rows."""
        first, ids, reused = self.high, batch.owner_ids, list[int]()
        if self._free:
            start = max(0, len(self._free) - batch.size)
            reused, self._free = self._free[start:], self._free[:start]
        self.high += batch.size - len(reused)
        self.in_id_order = self.in_id_order and not reused and self._continues_in_order(first, ids)
        self.id_step = None if reused else _common_step(ids, first, self.id_step)
        fresh = np.arange(first, self.high, dtype=np.int32)
        return np.concatenate([np.array(reused, np.int32), fresh]) if reused else fresh

    def _make_room(self, n_terms: int) -> None:
        """Make room for all numbered rows, and for so many more terms."""
        self._views = None
        if self.high <= len(self.owner_ids) and self._arena_used + n_terms <= len(self._rows.terms):
            return
        *columns, flags, terms = self._rows
        larger = [grown(column, self.high) for column in columns]
        terms = grown(terms, self._arena_used + n_terms)
        self._rows = RowArrays._make([*larger, grown(flags, self.high, fill=0), terms])
        self.owner_ids = grown(self.owner_ids, self.high)

    def _continues_in_order(self, first: int, ids: np.ndarray) -> bool:
        if len(ids) == 0:
            return True
        follows = first == 0 or bool(self.owner_ids[first - 1] < ids[0])
        return follows and (len(ids) == 1 or bool((ids[1:] >= ids[:-1]).all()))

    def _add_shapes(self, rows: np.ndarray, numbers: np.ndarray, shapes: ShapeColumns) -> None:
        if shapes.size or len(self._shapes):
            self._shapes = grown(self._shapes, self.high, fill=NO_SHAPE)
        if shapes.size == 0:
            return
        # Each row holds a shape of its own number, so that removing one row never takes another's shape.
        shaped = np.flatnonzero(numbers != NO_SHAPE)
        if len(shaped):
            self._shapes[rows[shaped]] = self.shape_table.add(shapes.take(numbers[shaped]))

    def _know(self, terms: np.ndarray) -> None:
        if len(terms):
            highest = max(terms.tolist()) if len(terms) <= _FEW else int(terms.max())  # 0.3 us instead of 3
            self.n_terms = max(self.n_terms, highest + 1)
            self._frequencies = grown(self._frequencies, self.n_terms, fill=0)

    def _compact_terms(self) -> None:
        rows, own = self.stored_rows(), self._rows
        counts = own.n_terms[rows].astype(np.int64) + own.n_not[rows]
        offsets = own.offsets.copy()  # readers still use the old ones, with the old terms
        offsets[rows] = starts_of(counts)[:-1]
        terms = gathered(own.terms, own.offsets[rows], counts)
        self._rows, self._views = own._replace(terms=terms, offsets=offsets), None
        self._arena_used, self._arena_dead = len(self._rows.terms), 0

    # -- files

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, int]]:
        """Arrays and header for saving."""
        n = self.high
        rows = self.arrays._asdict() | {"terms": self._rows.terms[: self._arena_used]}
        more = {
            "owner_ids": self.owner_ids[:n],
            "row_shapes": self._shapes[:n],
            "expires": self._expires[:n],
            "frequencies": self.frequencies,
        }
        counts = {"high": n, "live": self.live, "live_unverified": self.live_unverified, "arena_dead": self._arena_dead}
        counts["in_id_order"] = self.in_id_order
        if self.id_step is not None:
            counts["id_step"] = self.id_step
        return rows | more, counts

    @classmethod
    def restored(
        cls,
        arrays: dict[str, np.ndarray],
        header: dict[str, int],
        shapes: ShapeTable,
        params: RowParams,
        space: Space,
        reuses_numbers: bool = False,
    ) -> RowStore:
        made = cls(space, params, reuses_numbers)
        made._rows = RowArrays(*(arrays[name] for name in RowArrays._fields))
        made.owner_ids, made._frequencies = arrays["owner_ids"], arrays["frequencies"]
        made.n_terms = len(made._frequencies)
        made._shapes, made._expires = arrays["row_shapes"], arrays["expires"]
        made.shape_table = shapes
        made.high, made.live, made.live_unverified = header["high"], header["live"], header["live_unverified"]
        made._arena_used = len(made._rows.terms)
        made._arena_dead, made.in_id_order = header["arena_dead"], bool(header["in_id_order"])
        made.id_step = header.get("id_step")
        if reuses_numbers:
            made._free = np.flatnonzero(made.arrays.flags == 0).tolist()
        return made


def _common_step(ids: np.ndarray, first: int, known: int | None) -> int | None:
    """Owner id - row number, if it is the same for all rows: for these, from number `first` on, and for those before,
    whose step is known; None where they differ.
    """
    if len(ids) == 0:
        return known
    step = int(ids[0]) - first
    if first and step != known:
        return None
    is_common = len(ids) == 1 or bool((ids == np.arange(first, first + len(ids)) + step).all())
    return step if is_common else None


class _NewRows(NamedTuple):
    """What `_write_rows` reads of a RowBatch."""

    owner_ids: np.ndarray
    terms: np.ndarray
    term_starts: np.ndarray
    not_terms: np.ndarray
    not_starts: np.ndarray
    boxes: np.ndarray
    shapes: np.ndarray
    expires: np.ndarray


@kernel
def _write_rows(rows, owner_ids, frequencies, numbers, new, at):
    """Write new rows under these numbers, and their terms from rows.terms[at] on: all but shapes and expiry.

    Returns the number of rows that expire, and of rows that demand more than a method decides.
    """
    n_timed = n_unverified = 0
    for i in range(len(numbers)):
        row = numbers[i]
        owner_ids[row] = new.owner_ids[i]
        for side in range(4):
            rows.boxes[row, side] = new.boxes[i, side]
        rows.offsets[row] = at
        rows.n_terms[row] = new.term_starts[i + 1] - new.term_starts[i]
        rows.n_not[row] = new.not_starts[i + 1] - new.not_starts[i]
        flags = FLAG_NEGATIVE if rows.n_not[row] else 0
        if new.shapes[i] != NO_SHAPE:
            flags |= FLAG_SHAPED
        if new.expires[i] != NEVER:
            flags |= FLAG_EXPIRES
            n_timed += 1
        n_unverified += flags != 0
        rows.flags[row] = FLAG_LIVE | flags
        for k in range(new.term_starts[i], new.term_starts[i + 1]):
            rows.terms[at] = new.terms[k]
            frequencies[new.terms[k]] += 1
            at += 1
        for k in range(new.not_starts[i], new.not_starts[i + 1]):
            rows.terms[at] = new.not_terms[k]
            at += 1
    return n_timed, n_unverified


@kernel
def scatter(values, starts, offsets, out):
    """Copy each row of a ragged array to its offset in `out`."""
    for i in range(len(offsets)):
        for k in range(starts[i + 1] - starts[i]):
            out[offsets[i] + k] = values[starts[i] + k]


def gathered(values: np.ndarray, offsets: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """int32: the values of each row, of which there are `counts` from its offset on, one row after the other."""
    starts = starts_of(counts)
    out = np.empty(starts[-1], np.int32)
    _gather(values, offsets, starts, out)
    return out


@kernel
def _gather(values, offsets, starts, out):
    for i in range(len(offsets)):
        for k in range(starts[i + 1] - starts[i]):
            out[starts[i] + k] = values[offsets[i] + k]


@kernel
def _add_at(counts, terms, by):
    for k in range(len(terms)):
        counts[terms[k]] += by

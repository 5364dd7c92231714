"""The live subscriptions of `Moving`: their rows, which ids are known, and what a move makes of their rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.intmap import ABSENT
from nearcast.arrays.ragged import distinct, starts_of, take
from nearcast.errors import InvalidInput
from nearcast.geo.circle import CircleRegion
from nearcast.geo.shapes.columns import NO_SHAPES, ShapeColumns
from nearcast.geo.space import FINE, Space, coordinate_faults, fault_reason
from nearcast.matching.intake import checked_rows
from nearcast.matching.owners import Owners
from nearcast.matching.predicate import FLAG_CHAINED, FLAG_SHAPED
from nearcast.matching.store import RowStore
from nearcast.model import NO_SHAPE, RowBatch
from nearcast.moving.method import EVERYWHERE


class KnownOwners(Owners):
    """Rows by subscription id, and whether an id has rows."""

    def has(self, ids: np.ndarray) -> np.ndarray:
        """bool[n]"""
        return np.asarray(self._first.get(ids) != ABSENT)

    def first_rows(self, ids: np.ndarray) -> np.ndarray:
        """int32[n]: the first row of each id, or ABSENT."""
        return self._first.get(ids)


class Moves(NamedTuple):
    """New places of some subscriptions, checked: each subscription once."""

    rows: np.ndarray  # int32[n]  rows that keep all but their box
    boxes: np.ndarray  # float64[n,4]
    replaced_ids: np.ndarray  # int64[...]  subscriptions whose rows are made anew, as `batch`
    batch: RowBatch
    shapes: ShapeColumns


class Subscribers:
    """Rows of live subscriptions. A subscription whose expression can never hold is known, and has no row."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.store = RowStore(space, reuses_numbers=True)
        self.owners = KnownOwners()
        self.without_rows: set[int] = set()

    def __len__(self) -> int:
        return len(self.owners) + len(self.without_rows)

    def __contains__(self, subscription: int) -> bool:
        return bool(self.are_known(np.array([subscription], np.int64))[0])

    @property
    def nbytes(self) -> int:
        return self.store.nbytes + self.store.shape_table.nbytes + self.owners.nbytes

    def are_known(self, ids: np.ndarray) -> np.ndarray:
        """bool[n]: whether each id is subscribed."""
        known = self.owners.has(ids)
        if self.without_rows:
            known |= np.isin(ids, np.fromiter(self.without_rows, np.int64))
        return known

    def known_ids(self) -> np.ndarray:
        """int64[...]: all ids that are subscribed, some of them repeated."""
        without = np.fromiter(self.without_rows, np.int64, len(self.without_rows))
        return np.concatenate([self.store.owner_ids[self.store.live_rows()], without])

    def rows_of(self, ids: np.ndarray) -> np.ndarray:
        """int32[...]: all rows of these ids, which do not repeat, in their order."""
        return self.owners.rows(ids)

    def first_rows(self, ids: np.ndarray) -> np.ndarray:
        """int32[n]: the first row of each id, or -1."""
        return self.owners.first_rows(ids)

    def expired(self, now: int) -> np.ndarray:
        """int64[...]: the subscriptions whose expiry is not after `now`."""
        if len(self.store.expires) == 0:
            return np.empty(0, np.int64)
        rows = self.store.live_rows()
        return distinct(np.sort(self.store.owner_ids[rows[self.store.expires[rows] <= now]]))

    def add(self, ids: np.ndarray, batch: RowBatch, shapes: ShapeColumns) -> np.ndarray:
        """Store subscriptions whose ids are not known; return their rows. `ids` are those with and without rows."""
        rows = self.store.add(batch, shapes)
        self.store.flag(self.owners.add(batch.owner_ids, rows, self.store.high), FLAG_CHAINED)
        self.without_rows |= set(ids[~self.owners.has(ids)].tolist())
        return rows

    def discard(self, ids: np.ndarray) -> None:
        """Forget subscriptions, and their rows."""
        self.store.remove(self.rows_of(ids))
        self.owners.remove(ids)
        self.without_rows -= set(ids.tolist())

    def moves(self, ids: np.ndarray, places: np.ndarray) -> Moves:
        """The moves of known subscriptions to boxes (float64[n,4]) or points (float64[n,2]). Ids do not repeat."""
        if self.without_rows:
            has_rows = self.owners.has(ids)
            ids, places = ids[has_rows], places[has_rows]
        rows = self.rows_of(ids)
        owners = self.store.owner_ids[rows]
        is_first = np.ones(len(rows), bool)
        is_first[1:] = owners[1:] != owners[:-1]
        move_of_row = np.cumsum(is_first) - 1
        is_plain = self.store.arrays.flags[rows] & (FLAG_SHAPED | FLAG_CHAINED) == 0
        if is_plain.all():
            boxes = places if places.shape[1] == 4 else places[:, [0, 1, 0, 1]]
            return Moves(rows, boxes, ids[:0], RowBatch.empty(), NO_SHAPES)
        plain_boxes = places[move_of_row[is_plain]][:, [0, 1, -2, -1]]
        other_moves = distinct(move_of_row[~is_plain])
        batch, shapes = self._rows_at(rows[~is_plain], places[other_moves])
        return Moves(rows[is_plain], plain_boxes, ids[other_moves], batch, shapes)

    def tied_to_places(self, ids: np.ndarray) -> np.ndarray:
        """int64[...]: those of these subscriptions that have another region than a circle or a point, so that they
        cannot follow a point.
        """
        rows = self.rows_of(ids[self.owners.has(ids)])
        is_plain = self.store.arrays.flags[rows] & (FLAG_SHAPED | FLAG_CHAINED) == 0
        boxes = self.store.arrays.boxes[rows]
        is_point = (boxes[:, 0] == boxes[:, 2]) & (boxes[:, 1] == boxes[:, 3])
        follows = np.where(is_plain, is_point, self._are_circles(rows) | is_point)
        return np.asarray(self.store.owner_ids[rows[~follows]])

    def _are_circles(self, rows: np.ndarray) -> np.ndarray:
        shapes = self.store.shapes_of(rows)
        out = np.zeros(len(rows), bool)
        shaped = np.flatnonzero(self.store.arrays.flags[rows] & FLAG_SHAPED)
        geometries = self.store.shape_table.columns(shapes[shaped]).geometries
        out[shaped] = [geometry is None for geometry in geometries]
        return out

    def _rows_at(self, rows: np.ndarray, places: np.ndarray) -> tuple[RowBatch, ShapeColumns]:
        """The rows of subscriptions, one after another, at new places, one for each subscription."""
        if len(rows) == 0:
            return RowBatch.empty(), NO_SHAPES
        batch, shapes = self.store.batch(rows)
        heads = _clause_heads(batch)
        owners = batch.owner_ids[heads]
        move_of_head = np.cumsum(np.concatenate([[False], owners[1:] != owners[:-1]]))
        shape_of_move = np.full(len(places), NO_SHAPE, np.int32)
        circles: list[CircleRegion] = []
        boxes = [places[k : k + 1, [0, 1, -2, -1]] for k in range(len(places))]
        if places.shape[1] == 2:
            firsts = heads[np.concatenate([[True], owners[1:] != owners[:-1]])]
            for k in np.flatnonzero(batch.shapes[firsts] != NO_SHAPE).tolist():
                radius = float(shapes.circles[batch.shapes[firsts[k]], 2])
                shape_of_move[k] = len(circles)
                circles.append(CircleRegion(float(places[k, 0]), float(places[k, 1]), radius, self.space.planar))
                boxes[k] = circles[-1].boxes(self.space)
        box_starts = starts_of(np.array([len(each) for each in boxes], np.int64))
        counts = np.diff(box_starts)[move_of_head]
        at = np.arange(counts.sum()) - np.repeat(starts_of(counts)[:-1] - box_starts[move_of_head], counts)
        numbers = shape_of_move[np.repeat(move_of_head, counts)]
        moved = _with_places(batch, np.repeat(heads, counts), np.concatenate(boxes)[at], numbers)
        return moved, ShapeColumns.of(circles)


def _clause_heads(batch: RowBatch) -> np.ndarray:
    """The first row of each clause: rows of one owner with the same terms are neighbours, one for each box."""
    is_head = np.ones(batch.size, bool)
    for i in range(1, batch.size):
        is_head[i] = batch.owner_ids[i] != batch.owner_ids[i - 1] or not (
            _same(batch.terms, batch.term_starts, i) and _same(batch.not_terms, batch.not_starts, i)
        )
    return np.flatnonzero(is_head)


def _same(terms: np.ndarray, starts: np.ndarray, i: int) -> bool:
    return np.array_equal(terms[starts[i - 1] : starts[i]], terms[starts[i] : starts[i + 1]])


def _with_places(batch: RowBatch, heads: np.ndarray, boxes: np.ndarray, shapes: np.ndarray) -> RowBatch:
    """Copies of these rows with new boxes and shape numbers."""
    terms, term_starts = take(batch.terms, batch.term_starts, heads)
    not_terms, not_starts = take(batch.not_terms, batch.not_starts, heads)
    return RowBatch(
        batch.owner_ids[heads], terms, term_starts, not_terms, not_starts, boxes, shapes, batch.expires[heads]
    )


def moving_rows(batch: RowBatch, n_shapes: int = 0) -> RowBatch:
    """The rows as moving methods see them: terms shifted by one, and EVERYWHERE for rows without terms."""
    batch = checked_rows(batch, n_shapes=n_shapes)
    counts = np.diff(batch.term_starts)
    lengths = np.maximum(counts, 1)
    starts = starts_of(lengths)
    terms = np.full(starts[-1], EVERYWHERE, np.int32)
    has_terms = np.repeat(counts > 0, lengths)
    terms[has_terms] = batch.terms + 1
    return batch._replace(terms=terms, term_starts=starts, not_terms=batch.not_terms + np.int32(1))


def check_places(ids: np.ndarray, places: np.ndarray, space: Space) -> None:
    """Raise InvalidInput for the first place that is not valid: NaN, infinite, out of range, min above max."""
    names = ("xmin", "ymin", "xmax", "ymax") if places.shape[1] == 4 else ("x", "y", "x", "y")
    boxes = np.ascontiguousarray(places[:, [0, 1, -2, -1]])
    codes = coordinate_faults(boxes, space)
    if (codes != FINE).any():
        row = int((codes != FINE).argmax())
        column, reason = fault_reason(int(codes[row]), boxes[row].tolist(), names, space.planar)
        raise InvalidInput(f"the place of subscription {ids[row]}: {reason}", row=row, column=column)

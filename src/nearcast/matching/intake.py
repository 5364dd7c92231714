"""The gate of the matcher: batches of the right types, and terms in range, since kernels check nothing."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.ragged import sorted_sets, take
from nearcast.errors import InvalidInput
from nearcast.model import MAX_TERMS_PER_ROW, NO_SHAPE, MessageBatch, RankBatch, RowBatch


def checked_messages(messages: MessageBatch, n_terms: int) -> MessageBatch:
    """The batch in the kernels' types, without the terms that no row has."""
    terms = _plain(messages.terms, np.int32)
    starts = _plain(messages.term_starts, np.int64)
    if len(terms) and (int(terms.max()) >= n_terms or int(terms.min()) < 0):
        terms, starts = sorted_sets(np.where(terms < n_terms, terms, -1), starts)
    boxes = _plain(messages.boxes, np.float64)
    _require_finite(boxes)
    return MessageBatch(_plain(messages.ids, np.int64), terms, starts, boxes, _plain(messages.times, np.int64))


def checked_rows(batch: RowBatch) -> RowBatch:
    """The batch in the kernels' types, its terms sorted sets."""
    boxes = _plain(batch.boxes, np.float64)
    _require_finite(boxes)
    terms, term_starts = _checked_terms(batch.terms, batch.term_starts)
    not_terms, not_starts = _checked_terms(batch.not_terms, batch.not_starts)
    return RowBatch(
        _plain(batch.owner_ids, np.int64),
        terms,
        term_starts,
        not_terms,
        not_starts,
        boxes,
        _plain(batch.shapes, np.int32),
        _plain(batch.expires, np.int64),
    )


def checked_ranks(batch: RankBatch) -> RankBatch:
    """The batch in the kernels' types; one row for each subscription, and what it asks for within 0 .. 1."""
    rows = checked_rows(batch.rows)
    alphas, thresholds = _plain(batch.alphas, np.float64), _plain(batch.thresholds, np.float64)
    for name, values in (("alpha", alphas), ("threshold", thresholds)):
        bad = ~((values >= 0.0) & (values <= 1.0))
        if len(values) != rows.size or bad.any():
            raise InvalidInput("one number within 0 .. 1 for each row", row=_first(bad), column=name)
    if len(rows.not_terms) or (rows.shapes != NO_SHAPE).any():
        raise InvalidInput("a ranked row has no NOT terms and no shape")
    if len(np.unique(rows.owner_ids)) != rows.size:
        raise InvalidInput("a ranked subscription has one row", column="id")
    return RankBatch(rows, alphas, thresholds)


def ranks_by_owner(batch: RankBatch) -> RankBatch:
    """The rows in order of their owners' ids."""
    order = np.argsort(batch.rows.owner_ids, kind="stable")
    return RankBatch(by_owner(batch.rows), batch.alphas[order], batch.thresholds[order])


def by_owner(batch: RowBatch) -> RowBatch:
    """The rows in order of their owners' ids."""
    ids = batch.owner_ids
    if len(ids) < 2 or (ids[1:] >= ids[:-1]).all():
        return batch
    order = np.argsort(ids, kind="stable")
    terms, term_starts = take(batch.terms, batch.term_starts, order)
    not_terms, not_starts = take(batch.not_terms, batch.not_starts, order)
    return RowBatch(
        ids[order],
        terms,
        term_starts,
        not_terms,
        not_starts,
        batch.boxes[order],
        batch.shapes[order],
        batch.expires[order],
    )


def _checked_terms(terms: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    terms, starts = _plain(terms, np.int32), _plain(starts, np.int64)
    if len(terms) and int(terms.min()) < 0:
        raise InvalidInput("a row names a term below 0; look tokens up in the vocabulary first")
    if len(starts) > 1 and int(np.diff(starts).max()) > MAX_TERMS_PER_ROW:
        row = int(np.diff(starts).argmax())
        raise InvalidInput(f"a row may have {MAX_TERMS_PER_ROW} terms at most", row=row, column="tokens")
    return sorted_sets(terms, starts)


def _require_finite(boxes: np.ndarray) -> None:
    bad = ~(np.isfinite(boxes).all(axis=1) & (boxes[:, 0] <= boxes[:, 2]) & (boxes[:, 1] <= boxes[:, 3]))
    if bad.any():
        raise InvalidInput("a box must be finite, with min <= max", row=int(bad.argmax()))


def _first(mask: np.ndarray) -> int | None:
    return int(mask.argmax()) if mask.any() else None


def _plain(array: np.ndarray, dtype: type) -> np.ndarray:
    """Contiguous and of one type, so that a kernel is compiled once. Read-only arrays are another type to Numba."""
    plain: np.ndarray = np.ascontiguousarray(array, dtype)
    return plain if plain.flags.writeable else plain.copy()

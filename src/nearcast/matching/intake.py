"""Validation of batches: the right types, and terms in range. Kernels check nothing."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import sorted_sets, take
from nearcast.errors import InvalidInput
from nearcast.model import MATCH, MAX_TERMS_PER_ROW, NO_SHAPE, Kind, MessageBatch, Parameter, RowBatch


def checked_messages(messages: MessageBatch, n_terms: int) -> MessageBatch:
    """The batch in the kernels' types, without the terms that no row has."""
    terms = _plain(messages.terms, np.int32)
    starts = _plain(messages.term_starts, np.int64)
    if len(terms) and (int(terms.max()) >= n_terms or int(terms.min()) < 0):
        terms, starts = sorted_sets(np.where(terms < n_terms, terms, -1), starts)
    boxes = _plain(messages.boxes, np.float64)
    _require_finite(boxes)
    return MessageBatch(_plain(messages.ids, np.int64), terms, starts, boxes, _plain(messages.times, np.int64))


def checked_rows(batch: RowBatch, kind: Kind = MATCH) -> RowBatch:
    """The batch in the kernels' types, its terms sorted sets, its parameters within the kind's ranges."""
    boxes = _plain(batch.boxes, np.float64)
    terms, term_starts = _plain(batch.terms, np.int32), _plain(batch.term_starts, np.int64)
    not_terms, not_starts = _plain(batch.not_terms, np.int32), _plain(batch.not_starts, np.int64)
    if not _are_fine(terms, term_starts, not_terms, not_starts, boxes):
        _require_finite(boxes)
        terms, term_starts = _as_sets(terms, term_starts)
        not_terms, not_starts = _as_sets(not_terms, not_starts)
    checked = RowBatch(
        _plain(batch.owner_ids, np.int64),
        terms,
        term_starts,
        not_terms,
        not_starts,
        boxes,
        _plain(batch.shapes, np.int32),
        _plain(batch.expires, np.int64),
        {parameter.name: _checked_parameter(batch, parameter) for parameter in kind.parameters},
    )
    if kind.is_plain:
        _require_plain(checked, kind)
    return checked


def _checked_parameter(batch: RowBatch, parameter: Parameter) -> np.ndarray:
    values = _plain(batch.params.get(parameter.name, np.empty(0)), np.float64)
    is_bad = ~((values >= parameter.low) & (values <= parameter.high))
    if len(values) != batch.size or is_bad.any():
        reason = f"one number within {parameter.low:g} .. {parameter.high:g} for each row"
        raise InvalidInput(reason, row=int(is_bad.argmax()) if is_bad.any() else None, column=parameter.name)
    return values


def _require_plain(batch: RowBatch, kind: Kind) -> None:
    if len(batch.not_terms) or (batch.shapes != NO_SHAPE).any():
        raise InvalidInput(f"a row of kind '{kind.name}' has no NOT terms and no shape")
    if len(np.unique(batch.owner_ids)) != batch.size:
        raise InvalidInput(f"a subscription of kind '{kind.name}' has one row", column="id")


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
        {name: values[order] for name, values in batch.params.items()},
    )


@kernel
def _are_fine(terms, term_starts, not_terms, not_starts, boxes):
    """Whether nothing about these rows must be changed or refused."""
    are_sets = _are_sets(terms, term_starts) and _are_sets(not_terms, not_starts)
    return are_sets and _first_bad_box(boxes) == len(boxes)


def _as_sets(terms: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each row's terms, sorted and without repeats. Raises InvalidInput if a row has too many, or one below 0."""
    if len(terms) and int(terms.min()) < 0:
        raise InvalidInput("a row names a term below 0; look tokens up in the vocabulary first")
    if len(starts) > 1 and int(np.diff(starts).max()) > MAX_TERMS_PER_ROW:
        row = int(np.diff(starts).argmax())
        raise InvalidInput(f"a row may have {MAX_TERMS_PER_ROW} terms at most", row=row, column="tokens")
    return sorted_sets(terms, starts)


@kernel
def _are_sets(terms, starts):
    """Whether each row's terms ascend without repeats, none is negative, and no row has too many."""
    for row in range(len(starts) - 1):
        if starts[row + 1] - starts[row] > MAX_TERMS_PER_ROW:
            return False
        for k in range(starts[row], starts[row + 1]):
            if terms[k] < 0 or (k > starts[row] and terms[k] <= terms[k - 1]):
                return False
    return True


def _require_finite(boxes: np.ndarray) -> None:
    row = _first_bad_box(boxes)
    if row < len(boxes):
        raise InvalidInput("a box must be finite, with min <= max", row=row)


@kernel
def _first_bad_box(boxes):
    """The first box that is not finite or has a minimum above its maximum; the number of boxes if there is none."""
    for row in range(len(boxes)):
        box = boxes[row]
        is_finite = np.isfinite(box[0]) and np.isfinite(box[1]) and np.isfinite(box[2]) and np.isfinite(box[3])
        if not (is_finite and box[0] <= box[2] and box[1] <= box[3]):
            return row
    return len(boxes)


def _plain(array: np.ndarray, dtype: type) -> np.ndarray:
    """The array, contiguous, writeable and of one type, so that each kernel is compiled once."""
    plain: np.ndarray = np.ascontiguousarray(array, dtype)
    return plain if plain.flags.writeable else plain.copy()

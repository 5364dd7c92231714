"""Validation of batches: shapes, types, starts, order and ranges. Kernels check nothing."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.checked import checked_column, require_starts
from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import distinct, sorted_sets, take
from nearcast.errors import InvalidInput
from nearcast.model import LARGEST_TERM, MATCH, MAX_TERMS_PER_ROW, NO_SHAPE, Kind, MessageBatch, Parameter, RowBatch

FINE, NOT_SETS, BAD_STARTS, BAD_BOX = 0, 1, 2, 3
"""What is found about a batch of messages."""


def checked_messages(messages: MessageBatch, n_terms: int) -> MessageBatch:
    """The batch in the kernels' types, its terms sorted sets, without the terms that no row has."""
    ids = checked_column(messages.ids, np.int64, "ids")
    n = len(ids)
    terms = checked_column(messages.terms, np.int32, "terms")
    starts = checked_column(messages.term_starts, np.int64, "term_starts", n + 1)
    boxes = checked_column(messages.boxes, np.float64, "boxes", n, 4)
    state, row = _state_of_messages(terms, starts, boxes, n_terms)
    if state == BAD_STARTS:
        require_starts(starts, len(terms), "term_starts")
    if state == BAD_BOX:
        raise InvalidInput("a box must be finite, with min <= max", row=row)
    if state == NOT_SETS:
        terms, starts = sorted_sets(np.where(terms < n_terms, terms, -1), starts)
        _require_finite(boxes)
    return MessageBatch(ids, terms, starts, boxes, checked_column(messages.times, np.int64, "times", n))


def checked_terms(given: np.ndarray) -> np.ndarray:
    """The terms of one message as int32, a sorted set without negative values."""
    terms = checked_column(given, np.int32, "terms")
    if len(terms) and (terms[0] < 0 or (terms[1:] <= terms[:-1]).any()):
        return distinct(np.sort(terms[terms >= 0]))
    return terms


@kernel
def _state_of_messages(terms, starts, boxes, n_terms):
    """(what of a batch must be changed or refused, the row). The starts are checked in full before NOT_SETS."""
    state, n_values = FINE, len(terms)
    if starts[0] != 0 or starts[len(starts) - 1] != n_values:
        return BAD_STARTS, 0
    for row in range(len(starts) - 1):
        first, stop = starts[row], starts[row + 1]
        if first > stop or stop > n_values:
            return BAD_STARTS, row
        last = -1
        for k in range(first, stop):
            if terms[k] <= last:
                state = NOT_SETS
            last = terms[k]
        if last >= n_terms:
            state = NOT_SETS
    bad = _first_bad_box(boxes)
    return (BAD_BOX, bad) if state == FINE and bad < len(boxes) else (state, 0)


def checked_rows(batch: RowBatch, kind: Kind = MATCH, n_shapes: int = 0) -> RowBatch:
    """The batch in the kernels' types: its terms sorted sets, its parameters within the kind's ranges, its shapes among
    `n_shapes`, the rows of one owner neighbours.
    """
    ids = checked_column(batch.owner_ids, np.int64, "id")
    n, boxes = len(ids), checked_column(batch.boxes, np.float64, "boxes", len(ids), 4)
    terms, term_starts = _ragged(batch.terms, batch.term_starts, n, "term")
    not_terms, not_starts = _ragged(batch.not_terms, batch.not_starts, n, "not")
    if not _are_fine(terms, term_starts, not_terms, not_starts, boxes):
        _require_finite(boxes)
        terms, term_starts = _as_sets(terms, term_starts)
        not_terms, not_starts = _as_sets(not_terms, not_starts)
    shapes = checked_column(batch.shapes, np.int32, "shapes", n)
    if n and not NO_SHAPE <= int(shapes.min()) <= int(shapes.max()) < max(n_shapes, 0):
        raise InvalidInput(f"a row names a shape that is not among the {n_shapes} given", column="shapes")
    expires = checked_column(batch.expires, np.int64, "expires", n)
    params = {parameter.name: _checked_parameter(batch, n, parameter) for parameter in kind.parameters}
    checked = RowBatch(ids, terms, term_starts, not_terms, not_starts, boxes, shapes, expires, params)
    if kind.is_plain:
        _require_plain(checked, kind)
    return checked if _are_neighbours(ids) else by_owner(checked)


def _ragged(values: np.ndarray, starts: np.ndarray, n: int, name: str) -> tuple[np.ndarray, np.ndarray]:
    values = checked_column(values, np.int32, "terms" if name == "term" else "not_terms")
    starts = checked_column(starts, np.int64, f"{name}_starts", n + 1)
    require_starts(starts, len(values), f"{name}_starts")
    return values, starts


def _checked_parameter(batch: RowBatch, n: int, parameter: Parameter) -> np.ndarray:
    if parameter.name not in batch.params:
        raise InvalidInput("one number for each row is needed", column=parameter.name)
    values = checked_column(batch.params[parameter.name], np.float64, parameter.name, n)
    is_bad = ~((values >= parameter.low) & (values <= parameter.high))
    if is_bad.any():
        reason = f"one number within {parameter.low:g} .. {parameter.high:g} for each row"
        raise InvalidInput(reason, row=int(is_bad.argmax()), column=parameter.name)
    return values


def _require_plain(batch: RowBatch, kind: Kind) -> None:
    if len(batch.not_terms) or (batch.shapes != NO_SHAPE).any():
        raise InvalidInput(f"a row of kind '{kind.name}' has no NOT terms and no shape")
    if len(np.unique(batch.owner_ids)) != batch.size:
        raise InvalidInput(f"a subscription of kind '{kind.name}' has one row", column="id")


def _are_neighbours(ids: np.ndarray) -> bool:
    """Whether the rows of each owner follow each other."""
    if len(ids) < 2:
        return True
    is_new = ids[1:] != ids[:-1]
    if (ids[1:] >= ids[:-1]).all():
        return True
    return int(np.count_nonzero(is_new)) + 1 == len(np.unique(ids))


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
    if len(terms) and not 0 <= int(terms.min()) <= int(terms.max()) <= LARGEST_TERM:
        reason = f"a row names a term that is not within 0 .. {LARGEST_TERM}; look tokens up in the vocabulary first"
        raise InvalidInput(reason)
    if len(starts) > 1 and int(np.diff(starts).max()) > MAX_TERMS_PER_ROW:
        row = int(np.diff(starts).argmax())
        raise InvalidInput(f"a row may have {MAX_TERMS_PER_ROW} terms at most", row=row, column="tokens")
    return sorted_sets(terms, starts)


@kernel
def _are_sets(terms, starts):
    """Whether each row's terms ascend without repeats and within the range, and no row has too many."""
    for row in range(len(starts) - 1):
        if starts[row + 1] - starts[row] > MAX_TERMS_PER_ROW:
            return False
        last = -1
        for k in range(starts[row], starts[row + 1]):
            if terms[k] <= last:
                return False
            last = terms[k]
        if last > LARGEST_TERM:
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

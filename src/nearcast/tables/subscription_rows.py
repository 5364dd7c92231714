"""Subscriptions as rows: one row for each clause and each box of the region."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.arrays.arrow import list_parts
from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import sorted_sets, starts_of, take
from nearcast.geo.region import Region, RegionColumns
from nearcast.geo.shapes.columns import NO_SHAPES, ShapeColumns
from nearcast.geo.space import Space
from nearcast.model import NO_SHAPE, RowBatch
from nearcast.text.clauses import Clause, ClauseColumns
from nearcast.text.vocabulary import Vocabulary

ABSENT = -1
"""The expression or region of a row that has none."""


class Columns(NamedTuple):
    """The columns of a subscriptions table. A row has tokens or an expression, and a box or a region."""

    ids: np.ndarray  # int64[n]
    boxes: np.ndarray  # float64[n,4]
    expires: np.ndarray  # int64[n]
    tokens: pa.Array  # list<string>[n]
    clauses: ClauseColumns  # of all expressions
    expression_of_row: np.ndarray  # int64[n]  or ABSENT
    regions: RegionColumns
    region_of_row: np.ndarray  # int64[n]  or ABSENT


class OneSubscription(NamedTuple):
    """One subscription, parsed."""

    id: int
    clauses: Sequence[Clause]
    region: Region
    expires: int
    params: Mapping[str, float]


def rows_of_one(one: OneSubscription, vocabulary: Vocabulary, space: Space) -> tuple[RowBatch, ShapeColumns]:
    """(rows, the shape they refer to) of one subscription, as a table of one row is read."""
    boxes, n_clauses = one.region.boxes(space), len(one.clauses)
    n, n_boxes, shape = n_clauses * len(boxes), len(boxes), NO_SHAPE if one.region.is_box else 0
    sides = [clause.required for clause in one.clauses] + [clause.forbidden for clause in one.clauses]
    sets = _term_sets(sides, vocabulary)
    required = [terms for terms in sets[:n_clauses] for _ in range(n_boxes)]
    forbidden = [terms for terms in sets[n_clauses:] for _ in range(n_boxes)]
    # Parts of two arrays: making an array of a list takes 0.6 us, taking a part of it 0.1.
    starts = [0, *accumulate(map(len, required)), 0, *accumulate(map(len, forbidden))]
    wide: np.ndarray = np.array([one.id] * n + [one.expires] * n + starts, np.int64)
    terms, not_terms = [*chain(*required)], [*chain(*forbidden)]
    narrow: np.ndarray = np.array([shape] * n + terms + not_terms, np.int32)
    term_stop = n + len(terms)
    batch = RowBatch(
        wide[:n],
        narrow[n:term_stop],
        wide[2 * n : 3 * n + 1],
        narrow[term_stop:],
        wide[3 * n + 1 :],
        boxes if n_clauses == 1 else np.tile(boxes, (n_clauses, 1)),
        narrow[:n],
        wide[n : 2 * n],
        {name: np.full(n, value) for name, value in one.params.items()},
    )
    return batch, NO_SHAPES if one.region.is_box else ShapeColumns.of([one.region])


def _term_sets(token_lists: Sequence[Sequence[str]], vocabulary: Vocabulary) -> list[list[int]]:
    """The terms of each list of tokens, ascending."""
    found, at, sets = vocabulary.add_atoms([*chain(*token_lists)]).tolist(), 0, []
    for tokens in token_lists:
        sets.append(sorted(found[at : at + len(tokens)]))
        at += len(tokens)
    return sets


def plain_rows(read: Columns, wanted: np.ndarray, vocabulary: Vocabulary) -> RowBatch:
    """The rows of subscriptions with tokens and a box."""
    n = len(wanted)
    tokens = read.tokens if n == len(read.ids) else read.tokens.take(pa.array(wanted))
    flat, starts = list_parts(tokens)
    terms, starts = sorted_sets(vocabulary.add(flat), starts)
    return RowBatch(
        read.ids[wanted],
        terms,
        starts,
        np.empty(0, np.int32),
        np.zeros(n + 1, np.int64),
        read.boxes[wanted],
        np.full(n, NO_SHAPE, np.int32),
        read.expires[wanted],
    )


class _LocalClauses(NamedTuple):
    """The clauses of some table rows. A token is its position in `tokens`."""

    first: np.ndarray  # int64[k]  the first clause of each table row
    counts: np.ndarray  # int64[k]  the number of its clauses
    required: tuple[np.ndarray, np.ndarray]  # values and starts
    forbidden: tuple[np.ndarray, np.ndarray]
    tokens: pa.Array


def expanded_rows(
    read: Columns, wanted: np.ndarray, vocabulary: Vocabulary, n_shapes: int
) -> tuple[RowBatch, np.ndarray, np.ndarray]:
    """(batch, table row of each of its rows, numbers of the regions that are its shapes).

    The shapes are numbered from `n_shapes` on, one for each table row with a circle or polygon.
    """
    clauses, regions, own_regions = _local_clauses(read, wanted), read.regions, read.region_of_row[wanted]
    has_region = own_regions != ABSENT
    first_box, n_boxes = np.zeros(len(wanted), np.int64), np.ones(len(wanted), np.int64)
    first_box[has_region] = regions.box_starts[own_regions[has_region]]
    n_boxes[has_region] = np.diff(regions.box_starts)[own_regions[has_region]]
    counts = clauses.counts * n_boxes
    owners = np.repeat(np.arange(len(wanted)), counts)
    nth = np.arange(len(owners)) - np.repeat(starts_of(counts)[:-1], counts)
    nth_clause, nth_box = np.divmod(nth, n_boxes[owners])
    terms, not_terms = _terms(clauses, clauses.first[owners] + nth_clause, vocabulary)
    rows, is_in_region = wanted[owners], has_region[owners]
    boxes = read.boxes[rows]
    boxes[is_in_region] = regions.boxes[(first_box[owners] + nth_box)[is_in_region]]
    has_shape = has_region.copy()
    has_shape[has_region] = ~regions.is_box[own_regions[has_region]]
    shapes = np.where(has_shape, n_shapes - 1 + np.cumsum(has_shape), NO_SHAPE).astype(np.int32)
    batch = RowBatch(read.ids[rows], *terms, *not_terms, boxes, shapes[owners], read.expires[rows])
    return batch, rows, own_regions[has_shape]


def _local_clauses(read: Columns, wanted: np.ndarray) -> _LocalClauses:
    """The clauses of these table rows: those of the expression, or one that requires the tokens."""
    texts, parsed = read.expression_of_row[wanted], read.clauses
    has_text = texts != ABSENT
    first, counts = np.cumsum(~has_text) - 1, np.ones(len(wanted), np.int64)
    n_lists = int(first[-1]) + 1 if len(wanted) else 0
    first[has_text] = n_lists + parsed.starts[texts[has_text]]
    counts[has_text] = np.diff(parsed.starts)[texts[has_text]]
    required, forbidden = (parsed.required, parsed.required_starts), (parsed.forbidden, parsed.forbidden_starts)
    if n_lists == 0:
        return _LocalClauses(first, counts, required, forbidden, parsed.tokens)
    flat, starts = list_parts(read.tokens.take(pa.array(wanted[~has_text])))
    local = Vocabulary()
    given, of_parsed = local.add(flat), local.add(parsed.tokens)
    required = np.concatenate([given, of_parsed[required[0]]]), np.concatenate([starts, starts[-1] + required[1][1:]])
    forbidden = of_parsed[forbidden[0]], np.concatenate([np.zeros(n_lists, np.int64), forbidden[1]])
    return _LocalClauses(first, counts, required, forbidden, local.tokens(np.arange(len(local))))


_Ragged = tuple[np.ndarray, np.ndarray]


def _terms(clauses: _LocalClauses, numbers: np.ndarray, vocabulary: Vocabulary) -> tuple[_Ragged, _Ragged]:
    """(required terms and starts, forbidden terms and starts) of the clauses of these numbers.

    Each distinct token is added to the vocabulary once, in the order of first appearance: the required tokens of all
    clauses, then the forbidden ones.
    """
    required, starts = take(*clauses.required, numbers)
    forbidden, not_starts = take(*clauses.forbidden, numbers)
    positions = np.full(len(clauses.tokens), ABSENT, np.int64)
    order = np.empty(len(clauses.tokens), np.int64)
    n = number_by_appearance(required, positions, order, 0)
    n = number_by_appearance(forbidden, positions, order, n)
    by_token = (
        vocabulary.add_atoms_of(clauses.tokens.take(pa.array(order[:n])))[positions] if n else np.empty(0, np.int32)
    )
    return sorted_sets(by_token[required], starts), sorted_sets(by_token[forbidden], not_starts)


@kernel
def number_by_appearance(values, positions, order, n):
    """Append the values that are not in `order` yet to its first n; return their number. positions[order[k]] is k."""
    for i in range(len(values)):
        if positions[values[i]] < 0:
            positions[values[i]] = n
            order[n] = values[i]
            n += 1
    return n

"""A subscriptions table -> rows: expression -> clauses, region -> boxes, one row for each clause and box; one row for
each that is ranked.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.arrays.arrow import list_parts
from nearcast.arrays.ragged import sorted_sets, starts_of
from nearcast.errors import InvalidInput
from nearcast.geo.geojson import parse_region
from nearcast.geo.region import Region
from nearcast.geo.space import Space
from nearcast.model import KINDS, MAX_TERMS_PER_ROW, NEVER, NO_SHAPE, RankBatch, RowBatch
from nearcast.tables.columns import ids_of, require_one, strings_of, times_of, tokens_of
from nearcast.tables.faults import Faults
from nearcast.tables.messages import Dialect
from nearcast.tables.places import boxes_of
from nearcast.tables.ranks import asked_of, place_ranked, refuse_expressions
from nearcast.tables.read import as_arrow
from nearcast.text.clauses import Clause, clauses
from nearcast.text.expression import parse
from nearcast.text.vocabulary import Vocabulary


class Subscriptions(NamedTuple):
    """What a subscriptions table says, ready for a matcher."""

    ids: np.ndarray  # int64[n]  the good subscriptions, in the table's order
    kinds: frozenset[str]
    rows: RowBatch  # of kind match
    regions: list[Region]
    ranks: RankBatch  # of kind rank
    rejects: pa.Table


class _Read(NamedTuple):
    """The table's columns, row by row as it came."""

    ids: np.ndarray
    boxes: np.ndarray
    expires: np.ndarray
    tokens: pa.Array
    clauses: dict[int, list[Clause]]  # rows with an expression
    regions: dict[int, Region]  # rows with a region


def read_subscriptions(source: Any, vocabulary: Vocabulary, dialect: Dialect) -> Subscriptions:
    """The good subscriptions as rows, and the rejects. New tokens join the vocabulary, those of rejects do not."""
    table = as_arrow(source)
    faults = Faults(table.num_rows, dialect.on_bad)
    ids = ids_of(table, faults, "subscriptions")
    require_one(table, ("tokens", "expression"), "subscriptions")
    kinds = _kinds(table, dialect, faults)
    is_ranked = kinds == "rank"
    asked = asked_of(table, is_ranked, faults)
    refuse_expressions(table, is_ranked, faults)
    regions = _regions(table, dialect.space, faults)
    elsewhere = np.zeros(table.num_rows, bool)
    elsewhere[list(regions)] = True
    has_region_column = strings_of(table, "region") is not None
    boxes = boxes_of(table, dialect.space, faults, elsewhere if has_region_column else None)
    place_ranked(boxes, regions, is_ranked, dialect.space, faults)
    tokens = tokens_of(table, faults)
    if tokens is None:
        tokens = pa.nulls(table.num_rows, pa.list_(pa.string()))
    read = _Read(ids, boxes, times_of(table, "expires", faults, NEVER), tokens, {}, regions)
    _read_expressions(table, dialect, faults, read)
    _find_too_many_tokens(tokens, faults)
    rejects = faults.settle(table)
    good = faults.good_rows
    rows, shapes = _rows(read, good[~is_ranked[good]], vocabulary, dialect.space)
    ranked = good[is_ranked[good]]
    ranks = RankBatch(_plain_rows(read, ranked, vocabulary), asked[0][ranked], asked[1][ranked])
    return Subscriptions(ids[good], frozenset(kinds[good].tolist()), rows, shapes, ranks, rejects)


def _kinds(table: pa.Table, dialect: Dialect, faults: Faults) -> np.ndarray:
    values = strings_of(table, "kind")
    if values is None:
        return np.full(table.num_rows, "match", object)
    kinds: np.ndarray = values.fill_null("match").to_numpy(zero_copy_only=False).astype(object)
    for row in np.flatnonzero(~np.isin(kinds.astype(str), KINDS)):
        faults.add(int(row), "kind", f"no kind '{kinds[row]}'; it is one of {', '.join(KINDS)}")
    for row in np.flatnonzero(~np.isin(kinds.astype(str), dialect.kinds) & ~faults.is_bad):
        faults.add(int(row), "kind", f"kind '{kinds[row]}' is not served here yet, only {', '.join(dialect.kinds)}")
    return kinds


def _regions(table: pa.Table, space: Space, faults: Faults) -> dict[int, Region]:
    values = strings_of(table, "region")
    if values is None:
        return {}
    regions: dict[int, Region] = {}
    seen: dict[str, Region] = {}
    for row in np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False)):
        text = values[int(row)].as_py()
        try:
            if text not in seen:
                seen[text] = parse_region(text, space)
            regions[int(row)] = seen[text]
        except InvalidInput as error:
            faults.add(int(row), "region", error.reason)
    return regions


def _read_expressions(table: pa.Table, dialect: Dialect, faults: Faults, read: _Read) -> None:
    values = strings_of(table, "expression")
    if values is None:
        return
    has_tokens = pc.fill_null(pc.list_value_length(read.tokens), 0).to_numpy(zero_copy_only=False) > 0
    for row in np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False)):
        if has_tokens[row]:
            faults.add(int(row), "expression", "both tokens and an expression; give one of them")
            continue
        try:
            read.clauses[int(row)] = clauses(parse(values[int(row)].as_py(), dialect.analyser))
        except InvalidInput as error:
            faults.add(int(row), "expression", error.reason)


def _find_too_many_tokens(tokens: pa.Array, faults: Faults) -> None:
    lengths = pc.fill_null(pc.list_value_length(tokens), 0).to_numpy(zero_copy_only=False)
    faults.add_where(
        lengths > MAX_TERMS_PER_ROW, "tokens", f"more than {MAX_TERMS_PER_ROW} tokens; split the subscription"
    )


def _rows(read: _Read, good: np.ndarray, vocabulary: Vocabulary, space: Space) -> tuple[RowBatch, list[Region]]:
    """Plain rows (tokens and a box) in one sweep; those with an expression or a region one by one."""
    is_plain = np.ones(len(read.ids), bool)
    is_plain[[*read.clauses, *read.regions]] = False
    plain = _plain_rows(read, good[is_plain[good]], vocabulary)
    rich, shapes = _rich_rows(read, good[~is_plain[good]], vocabulary, space)
    return (_joined(plain, rich) if rich.size else plain), shapes


def _plain_rows(read: _Read, wanted: np.ndarray, vocabulary: Vocabulary) -> RowBatch:
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


def _rich_rows(read: _Read, wanted: np.ndarray, vocabulary: Vocabulary, space: Space) -> tuple[RowBatch, list[Region]]:
    owners: list[int] = []
    required: list[tuple[str, ...]] = []
    forbidden: list[tuple[str, ...]] = []
    boxes: list[np.ndarray] = []
    shapes: list[int] = []
    regions: list[Region] = []
    for row in wanted.tolist():
        region = read.regions.get(row)
        shape = NO_SHAPE
        if region is not None and not region.is_box:
            shape = len(regions)
            regions.append(region)
        own_boxes = read.boxes[row : row + 1] if region is None else region.boxes(space)
        for clause in _clauses_of(read, row):
            for box in own_boxes:
                owners.append(row)
                required.append(clause.required)
                forbidden.append(clause.forbidden)
                boxes.append(box)
                shapes.append(shape)
    terms, starts = _terms(required, vocabulary)
    not_terms, not_starts = _terms(forbidden, vocabulary)
    rows = np.array(owners, np.int64)
    placed = np.array(boxes, np.float64).reshape(-1, 4)
    numbers = np.array(shapes, np.int32)
    return RowBatch(read.ids[rows], terms, starts, not_terms, not_starts, placed, numbers, read.expires[rows]), regions


def _clauses_of(read: _Read, row: int) -> list[Clause]:
    if row in read.clauses:
        return read.clauses[row]
    return [Clause(tuple(read.tokens[row].as_py() or ()), ())]


def _terms(token_lists: list[tuple[str, ...]], vocabulary: Vocabulary) -> tuple[np.ndarray, np.ndarray]:
    flat = pa.array([token for tokens in token_lists for token in tokens], pa.string())
    return sorted_sets(vocabulary.add(flat), starts_of(np.array([len(tokens) for tokens in token_lists], np.int64)))


def _joined(first: RowBatch, second: RowBatch) -> RowBatch:
    both = [np.concatenate(pair) for pair in zip(first, second, strict=True)]
    made = RowBatch(*both)
    return made._replace(
        term_starts=np.concatenate([first.term_starts, second.term_starts[1:] + first.term_starts[-1]]),
        not_starts=np.concatenate([first.not_starts, second.not_starts[1:] + first.not_starts[-1]]),
    )

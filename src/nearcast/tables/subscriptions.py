"""Reads a subscriptions table into rows, one for each pair of a clause of the expression and a box of the region."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.arrays.arrow import list_parts
from nearcast.arrays.ragged import sorted_sets, starts_of
from nearcast.errors import InvalidInput
from nearcast.geo.geojson import parse_region
from nearcast.geo.region import Region
from nearcast.geo.shape_columns import ShapeColumns
from nearcast.geo.space import Space
from nearcast.model import KINDS, MATCH, MAX_TERMS_PER_ROW, NEVER, NO_SHAPE, WINDOW_KINDS, Kind, RowBatch
from nearcast.tables.columns import ids_of, require_one, strings_of, times_of, tokens_of
from nearcast.tables.faults import Faults
from nearcast.tables.messages import Dialect
from nearcast.tables.parameters import read_parameters, refuse_expressions, replace_regions, require_points
from nearcast.tables.places import boxes_of
from nearcast.tables.read import as_arrow
from nearcast.text.clauses import Clause, clauses
from nearcast.text.expression import parse
from nearcast.text.vocabulary import Vocabulary


class Subscriptions(NamedTuple):
    """The content of a subscriptions table, as rows by kind."""

    ids: np.ndarray  # int64[n]  the good subscriptions, in the table's order
    batches: dict[str, RowBatch]  # by kind, for every kind in the table
    shapes: ShapeColumns  # the shapes that rows refer to by number
    rejects: pa.Table

    def rows(self, kind: Kind = MATCH) -> RowBatch:
        """The rows of a kind; an empty batch if there are none."""
        names = (parameter.name for parameter in kind.parameters)
        return self.batches[kind.name] if kind.name in self.batches else RowBatch.empty(names)


class Columns(NamedTuple):
    """The columns of a table, and what was parsed from them."""

    ids: np.ndarray
    boxes: np.ndarray
    expires: np.ndarray
    tokens: pa.Array
    clauses: dict[int, list[Clause]]  # rows with an expression
    regions: dict[int, Region]  # rows with a region


def read_subscriptions(source: Any, vocabulary: Vocabulary, dialect: Dialect) -> Subscriptions:
    """The good subscriptions as rows, and the rejects. Tokens of good subscriptions are added to the vocabulary."""
    table = as_arrow(source)
    faults = Faults(table.num_rows, dialect.on_bad)
    ids = ids_of(table, faults, "subscriptions")
    require_one(table, ("tokens", "expression"), "subscriptions")
    kinds = _kinds(table, dialect, faults)
    known = KINDS | WINDOW_KINDS
    is_of = {name: kinds == name for name in known if (kinds == name).any()}
    params = {name: read_parameters(table, known[name], is_own, faults) for name, is_own in is_of.items()}
    plain = {name: is_own for name, is_own in is_of.items() if known[name].is_plain}
    for name, is_own in plain.items():
        refuse_expressions(table, known[name], is_own, faults)
    regions = _regions(table, dialect.space, faults)
    has_region = np.zeros(table.num_rows, bool)
    has_region[list(regions)] = True
    has_region_column = strings_of(table, "region") is not None
    boxes = boxes_of(table, dialect.space, faults, has_region if has_region_column else None)
    for name, is_own in plain.items():
        replace_regions(boxes, regions, known[name], is_own, dialect.space, faults)
    tokens = tokens_of(table, faults)
    if tokens is None:
        tokens = pa.nulls(table.num_rows, pa.list_(pa.string()))
    read = Columns(ids, boxes, times_of(table, "expires", faults, NEVER), tokens, {}, regions)
    for name, is_own in plain.items():
        if known[name].is_point:
            require_points(boxes, read.expires, tokens, known[name], is_own, faults)
    _read_expressions(table, dialect, faults, read)
    _find_too_many_tokens(tokens, faults)
    rejects = faults.raise_or_reject(table)
    good, shapes, batches = faults.good_rows, list[Region](), dict[str, RowBatch]()
    for name in sorted(set(kinds[good].tolist())):
        own = good[kinds[good] == name]
        batches[name] = _rows(read, own, params.get(name, {}), vocabulary, dialect.space, shapes)
    return Subscriptions(ids[good], batches, ShapeColumns.of(shapes), rejects)


def _kinds(table: pa.Table, dialect: Dialect, faults: Faults) -> np.ndarray:
    values = strings_of(table, "kind")
    if values is None:
        return np.full(table.num_rows, dialect.default_kind, object)
    kinds: np.ndarray = values.fill_null(dialect.default_kind).to_numpy(zero_copy_only=False).astype(object)
    known = (*KINDS, *WINDOW_KINDS)
    accepted = known if dialect.kinds is None else dialect.kinds
    for row in np.flatnonzero(~np.isin(kinds.astype(str), known)):
        faults.add(int(row), "kind", f"no kind '{kinds[row]}'; it is one of {', '.join(known)}")
    for row in np.flatnonzero(~np.isin(kinds.astype(str), accepted) & ~faults.is_bad):
        faults.add(int(row), "kind", f"kind '{kinds[row]}' is not served here yet, only {', '.join(accepted)}")
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


def _read_expressions(table: pa.Table, dialect: Dialect, faults: Faults, read: Columns) -> None:
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


def _rows(
    read: Columns,
    wanted: np.ndarray,
    params: dict[str, np.ndarray],
    vocabulary: Vocabulary,
    space: Space,
    shapes: list[Region],
) -> RowBatch:
    """The rows of one kind: those of tokens and a box all at once, those of an expression or region one by one."""
    is_plain = np.ones(len(read.ids), bool)
    is_plain[[*read.clauses, *read.regions]] = False
    plain, expanded = wanted[is_plain[wanted]], wanted[~is_plain[wanted]]
    batch = _plain_rows(read, plain, vocabulary)._replace(params={name: params[name][plain] for name in params})
    if len(expanded) == 0:
        return batch
    more, rows = expanded_rows(read, expanded, vocabulary, space, shapes)
    return _joined(batch, more._replace(params={name: params[name][rows] for name in params}))


def _plain_rows(read: Columns, wanted: np.ndarray, vocabulary: Vocabulary) -> RowBatch:
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


def expanded_rows(
    read: Columns, wanted: np.ndarray, vocabulary: Vocabulary, space: Space, regions: list[Region]
) -> tuple[RowBatch, np.ndarray]:
    """(batch, table row of each of its rows). Regions that are not boxes are appended to `regions`."""
    made: list[tuple[int, Clause, np.ndarray, int]] = []
    for row in wanted.tolist():
        region = read.regions.get(row)
        shape = NO_SHAPE
        if region is not None and not region.is_box:
            shape = len(regions)
            regions.append(region)
        own_boxes = read.boxes[row : row + 1] if region is None else region.boxes(space)
        made += [(row, clause, box, shape) for clause in _clauses_of(read, row) for box in own_boxes]
    terms, starts = token_terms([clause.required for _, clause, _, _ in made], vocabulary.add)
    not_terms, not_starts = token_terms([clause.forbidden for _, clause, _, _ in made], vocabulary.add)
    rows = np.array([row for row, _, _, _ in made], np.int64)
    boxes = np.array([box for _, _, box, _ in made], np.float64).reshape(-1, 4)
    shapes = np.array([shape for _, _, _, shape in made], np.int32)
    return RowBatch(read.ids[rows], terms, starts, not_terms, not_starts, boxes, shapes, read.expires[rows]), rows


def _clauses_of(read: Columns, row: int) -> list[Clause]:
    if row in read.clauses:
        return read.clauses[row]
    return [Clause(tuple(read.tokens[row].as_py() or ()), ())]


def token_terms(
    token_lists: Sequence[Sequence[str]], resolve: Callable[[pa.Array], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """(sorted sets of terms, their starts). `resolve` turns tokens into terms: a vocabulary's `add` or `lookup`."""
    flat = pa.array([token for tokens in token_lists for token in tokens], pa.string())
    return sorted_sets(resolve(flat), starts_of(np.array([len(tokens) for tokens in token_lists], np.int64)))


def _joined(first: RowBatch, second: RowBatch) -> RowBatch:
    columns: list[Any] = [np.concatenate(pair) for pair in zip(first[:-1], second[:-1], strict=True)]
    params = {name: np.concatenate([first.params[name], second.params[name]]) for name in first.params}
    return RowBatch(*columns)._replace(
        term_starts=np.concatenate([first.term_starts, second.term_starts[1:] + first.term_starts[-1]]),
        not_starts=np.concatenate([first.not_starts, second.not_starts[1:] + first.not_starts[-1]]),
        params=params,
    )

"""Reads a subscriptions table into rows, one for each pair of a clause of the expression and a box of the region."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.arrays.arrow import is_null_mask, list_parts, strings
from nearcast.arrays.ragged import sorted_sets, starts_of
from nearcast.geo.region import NO_REGIONS, RegionColumns
from nearcast.geo.shapes.columns import ShapeColumns
from nearcast.geo.space import Space
from nearcast.model import KINDS, MATCH, MAX_TERMS_PER_ROW, NEVER, WINDOW_KINDS, Kind, RowBatch
from nearcast.tables.columns import require_one, strings_of, times_of, tokens_of
from nearcast.tables.faults import Faults
from nearcast.tables.ids import IdColumn, Names, read_ids
from nearcast.tables.messages import Dialect
from nearcast.tables.parameters import (
    read_parameters,
    refuse_expressions,
    refuse_shapes,
    replace_regions,
    require_points,
)
from nearcast.tables.places import boxes_of
from nearcast.tables.read import as_arrow
from nearcast.tables.subscription_rows import ABSENT, Columns, expanded_rows, plain_rows
from nearcast.text.clauses import NO_CLAUSES, ClauseColumns
from nearcast.text.derived.atoms import MARK
from nearcast.text.vocabulary import Vocabulary


class Subscriptions(NamedTuple):
    """The content of a subscriptions table, as rows by kind."""

    ids: np.ndarray  # int64[n]  numbers of the good subscriptions, in the table's order
    batches: dict[str, RowBatch]  # by kind, for every kind in the table
    shapes: ShapeColumns  # the shapes that rows refer to by number
    rejects: pa.Table
    table: pa.Table | None = None  # the good rows as they were given, in the same order

    @property
    def n_with_rows(self) -> int:
        """The number of subscriptions with rows: those whose expression can hold."""
        return sum(
            int(np.count_nonzero(rows.owner_ids[1:] != rows.owner_ids[:-1])) + 1
            for rows in self.batches.values()
            if rows.size
        )

    def ids_without_rows(self) -> np.ndarray:
        """int64[n]: the numbers of the subscriptions whose expression can never hold."""
        owners = [rows.owner_ids for rows in self.batches.values()]
        return np.setdiff1d(self.ids, np.concatenate([np.empty(0, np.int64), *owners]))

    def rows(self, kind: Kind = MATCH) -> RowBatch:
        """The rows of a kind; an empty batch if there are none."""
        names = (parameter.name for parameter in kind.parameters)
        return self.batches[kind.name] if kind.name in self.batches else RowBatch.empty(names)


def read_subscriptions(source: Any, vocabulary: Vocabulary, dialect: Dialect) -> Subscriptions:
    """The good subscriptions as rows, and the rejects. Tokens of good subscriptions are added to the vocabulary."""
    table = as_arrow(source)
    faults = Faults(table.num_rows, dialect.on_bad)
    given, table = table, _checked(table, dialect, faults)
    ids = read_ids(table, faults, "subscriptions", of=dialect.id_type)
    names = Names() if dialect.ids is None else dialect.ids
    if table.num_rows:
        names.require(ids.type)
    require_one(table, ("tokens", "expression"), "subscriptions")
    kinds = _kinds(table, dialect, faults)
    known = KINDS | WINDOW_KINDS
    is_of = {name: kinds == name for name in known if (kinds == name).any()}
    params = {name: read_parameters(table, known[name], is_own, faults) for name, is_own in is_of.items()}
    plain = {name: is_own for name, is_own in is_of.items() if known[name].is_plain}
    for name, is_own in plain.items():
        refuse_expressions(table, known[name], is_own, faults)
    regions, region_of_row = _read_regions(table, dialect.space, faults)
    has_region_column = strings_of(table, "region") is not None
    boxes = boxes_of(table, dialect.space, faults, region_of_row != ABSENT if has_region_column else None)
    for name, is_own in plain.items():
        own = np.flatnonzero(is_own & (region_of_row != ABSENT))
        shaped = replace_regions(boxes, regions, region_of_row, own)
        refuse_shapes(table, known[name], shaped, dialect.space, faults)
    tokens = tokens_of(table, faults)
    if tokens is None:
        tokens = pa.nulls(table.num_rows, pa.list_(pa.string()))
    expires = times_of(table, "expires", faults, NEVER)
    read = Columns(
        ids.numbers, boxes, expires, tokens, *_read_expressions(table, tokens, dialect, faults), regions, region_of_row
    )
    for name, is_own in plain.items():
        if known[name].is_point:
            require_points(boxes, expires, tokens, known[name], is_own, faults)
    _find_bad_tokens(tokens, faults)
    rejects = faults.raise_or_reject(given)
    good, shapes, batches = faults.good_rows, np.empty(0, np.int64), dict[str, RowBatch]()
    numbers = _numbered(ids, good, names)
    read = read._replace(ids=numbers)
    for name in sorted(set(kinds[good].tolist())):
        own = good[kinds[good] == name]
        batches[name], more = _rows(read, own, params.get(name, {}), vocabulary, len(shapes))
        shapes = np.concatenate([shapes, more])
    kept = given if len(good) == given.num_rows else given.take(pa.array(good))
    shape_columns = ShapeColumns(regions.circles[shapes], regions.geometries[shapes])
    return Subscriptions(numbers[good], batches, shape_columns, rejects, kept)


def _checked(table: pa.Table, dialect: Dialect, faults: Faults) -> pa.Table:
    """The table with places in plain forms. Raises for a column that it may not have."""
    from nearcast.tables.input_checks.known_columns import check_subscription_columns  # an engine needs neither
    from nearcast.tables.regions.plain_regions import with_plain_regions

    check_subscription_columns(table.schema, dialect.extra)
    return with_plain_regions(table, dialect.space, faults)


def _numbered(ids: IdColumn, good: np.ndarray, names: Names) -> np.ndarray:
    """int64[n]: the number of each good row's id, which is entered among the names. Others have any number."""
    if len(good) == len(ids.numbers):
        return names.add(ids)
    numbers = np.zeros(len(ids.numbers), np.int64)
    numbers[good] = names.add(ids.take(good))
    return numbers


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


def _read_regions(table: pa.Table, space: Space, faults: Faults) -> tuple[RegionColumns, np.ndarray]:
    """(regions, int64[n]: the region of each table row, or ABSENT)."""
    region_of_row = np.full(table.num_rows, ABSENT, np.int64)
    values = strings_of(table, "region")
    if values is None:
        return NO_REGIONS, region_of_row
    from nearcast.geo.region_columns import read_regions  # an engine does not need it

    rows, texts = _given(values, ~is_null_mask(values))
    regions = read_regions(texts, space)
    region_of_row[rows] = regions.numbers
    for text, error in regions.errors.items():
        faults.add(int(rows[text]), "region", error.reason)
    return regions, region_of_row


def _read_expressions(
    table: pa.Table, tokens: pa.Array, dialect: Dialect, faults: Faults
) -> tuple[ClauseColumns, np.ndarray]:
    """(clauses, int64[n]: the expression of each table row, or ABSENT)."""
    expression_of_row = np.full(table.num_rows, ABSENT, np.int64)
    values = strings_of(table, "expression")
    if values is None:
        return NO_CLAUSES, expression_of_row
    from nearcast.text.clause_columns import read_clauses  # an engine does not need it

    is_given = ~is_null_mask(values)
    has_tokens = _lengths(tokens) > 0
    faults.add_where(is_given & has_tokens, "expression", "both tokens and an expression; give one of them")
    rows, texts = _given(values, is_given & ~has_tokens)
    clauses = read_clauses(texts, dialect.analyser)
    expression_of_row[rows] = np.arange(len(rows))
    for text, error in clauses.errors.items():
        faults.add(int(rows[text]), "expression", error.reason)
    if not dialect.has_attributes:
        for text in clauses.with_filters().tolist():
            faults.add(
                int(rows[text]), "expression", "filters in braces are not served here: messages lack the columns"
            )
    return clauses, expression_of_row


def _given(values: pa.Array, is_wanted: np.ndarray) -> tuple[np.ndarray, pa.Array]:
    """(the wanted rows, their values)."""
    rows = np.flatnonzero(is_wanted)
    return rows, values if len(rows) == len(values) else values.take(pa.array(rows))


def _lengths(tokens: pa.Array) -> np.ndarray:
    return np.asarray(pc.fill_null(pc.list_value_length(tokens), 0).to_numpy(zero_copy_only=False))


def _find_bad_tokens(tokens: pa.Array, faults: Faults) -> None:
    flat, starts = list_parts(tokens)
    flat = strings(flat)
    if len(flat) and pc.any(pc.match_substring(flat, MARK)).as_py():
        rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        is_marked = pc.fill_null(pc.match_substring(flat, MARK), False).to_numpy(zero_copy_only=False)
        for row in np.unique(rows[is_marked]):
            faults.add(int(row), "tokens", "a token has U+FFFF, which is no character; leave it out")
    faults.add_where(
        _lengths(tokens) > MAX_TERMS_PER_ROW, "tokens", f"more than {MAX_TERMS_PER_ROW} tokens; split the subscription"
    )


def _rows(
    read: Columns, wanted: np.ndarray, params: dict[str, np.ndarray], vocabulary: Vocabulary, n_shapes: int
) -> tuple[RowBatch, np.ndarray]:
    """(rows of one kind, numbers of the regions that are their shapes): first the rows of tokens and a box."""
    is_plain = (read.expression_of_row[wanted] == ABSENT) & (read.region_of_row[wanted] == ABSENT)
    plain, expanded = wanted[is_plain], wanted[~is_plain]
    batches, shapes = [], np.empty(0, np.int64)
    if len(plain) or not len(expanded):
        batch = plain_rows(read, plain, vocabulary)
        batches.append(batch._replace(params={name: params[name][plain] for name in params}))
    if len(expanded):
        batch, rows, shapes = expanded_rows(read, expanded, vocabulary, n_shapes)
        batches.append(batch._replace(params={name: params[name][rows] for name in params}))
    return batches[0] if len(batches) == 1 else _joined(*batches), shapes


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

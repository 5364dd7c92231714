"""Boolean expressions as subscriptions: drawn tokens joined by AND and OR; some expressions negate one token.

As in the AP-Tree paper (5.1.1), the tokens are cut into two parts. AND or OR joins the tokens of each part, and then
the two parts. The first drawn token goes to the first part; the negated token is the last one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import starts_of
from nearcast.bench.workloads.corpus import DrawnItems
from nearcast.bench.workloads.random_numbers import stream_key, units
from nearcast.bench.workloads.subscriptions import row_batch, source_numbers
from nearcast.bench.workloads.workload import Workload
from nearcast.model import RowBatch


class ExpressionShapes(NamedTuple):
    """How the tokens of each subscription are joined. An empty part is an AND of nothing."""

    firsts: np.ndarray  # int64[n]  tokens in the first part
    seconds: np.ndarray  # int64[n]  tokens in the second part; 0 without a second part
    first_is_or: np.ndarray  # bool[n]
    second_is_or: np.ndarray  # bool[n]
    joined_by_or: np.ndarray  # bool[n]
    negated: np.ndarray  # int64[n]  1 if the last token is negated, else 0


def has_expressions(workload: Workload) -> bool:
    return workload.expression_share > 0 or workload.negated_share > 0


def draw_shapes(workload: Workload, drawn: DrawnItems, first: int) -> ExpressionShapes:
    """The shapes of drawn subscriptions that begin with number `first`. Equal draws have equal shapes."""
    sources = source_numbers(workload, first, first + drawn.size)
    counts = np.diff(drawn.starts)

    def each(name: str) -> np.ndarray:
        return units(stream_key(workload.seed, f"expressions/{name}"), sources)

    negated = ((each("negated") < workload.negated_share) & (counts > 1)).astype(np.int64)
    positive = counts - negated
    in_two = (each("chosen") < workload.expression_share) & (positive > 1)
    firsts = np.where(in_two, 1 + (each("cut") * (positive - 1)).astype(np.int64), positive)
    joints = [in_two & (each(name) < 0.5) for name in ("first", "second", "joint")]
    return ExpressionShapes(firsts, positive - firsts, joints[0], joints[1], joints[2], negated)


def clause_counts(shapes: ExpressionShapes) -> np.ndarray:
    """The number of clauses of each subscription in disjunctive normal form, int64[n]."""
    first = np.where(shapes.first_is_or, shapes.firsts, 1)
    second = np.where(shapes.second_is_or, shapes.seconds, 1)
    return np.asarray(np.where(shapes.joined_by_or, first + second, first * second))


def subscription_rows(workload: Workload, drawn: DrawnItems, first: int) -> RowBatch:
    """The subscriptions as rows: one row each, or one row for each clause. Ids count up from `first`."""
    if has_expressions(workload):
        return clause_batch(drawn, draw_shapes(workload, drawn, first), first)
    return row_batch(drawn, first)


class _Clauses(NamedTuple):
    """Output of the kernels below."""

    lengths: np.ndarray  # int64[clauses]
    terms: np.ndarray  # int32[...]  of all clauses, one after another


def clause_batch(drawn: DrawnItems, shapes: ExpressionShapes, first_id: int = 0) -> RowBatch:
    """The clauses as rows. Tokens are distinct, so no clause implies another."""
    counts = clause_counts(shapes)
    n = int(counts.sum())
    clauses = _Clauses(np.empty(n, np.int64), np.empty(int((counts * np.diff(drawn.starts)).sum()), np.int32))
    used = _write_clauses(drawn.terms, drawn.starts, shapes, clauses)
    lasts = np.repeat(drawn.terms[drawn.starts[1:] - 1], counts) if len(drawn.terms) else drawn.terms
    is_negated = np.repeat(shapes.negated, counts)
    rows = DrawnItems(clauses.terms[:used], starts_of(clauses.lengths), np.repeat(drawn.boxes, counts, axis=0))
    return row_batch(rows)._replace(
        owner_ids=np.repeat(np.arange(first_id, first_id + drawn.size), counts),
        not_terms=lasts[is_negated > 0] if len(lasts) else lasts,
        not_starts=starts_of(is_negated),
    )


@kernel
def _write_clauses(tokens, starts, shapes, out):
    """Write the length and the terms of each clause; return the number of terms written."""
    row = at = 0
    for i in range(len(starts) - 1):
        middle = starts[i] + shapes.firsts[i]
        first, second = tokens[starts[i] : middle], tokens[middle : middle + shapes.seconds[i]]
        if shapes.joined_by_or[i]:
            row, at = _write_product(first, shapes.first_is_or[i], second[:0], False, out, row, at)
            row, at = _write_product(second, shapes.second_is_or[i], second[:0], False, out, row, at)
        else:
            row, at = _write_product(first, shapes.first_is_or[i], second, shapes.second_is_or[i], out, row, at)
    return at


@kernel
def _write_product(first, first_is_or, second, second_is_or, out, row, at):
    """Write each clause of the first part joined with each of the second; return the next clause and term.

    An OR has one clause for each token; an AND has one clause of all tokens.
    """
    for i in range(len(first) if first_is_or else 1):
        for j in range(len(second) if second_is_or else 1):
            ones = first[i : i + 1] if first_is_or else first
            others = second[j : j + 1] if second_is_or else second
            out.terms[at : at + len(ones)] = ones
            at += len(ones)
            out.terms[at : at + len(others)] = others
            at += len(others)
            out.lengths[row] = len(ones) + len(others)
            row += 1
    return row, at


def expression_texts(drawn: DrawnItems, shapes: ExpressionShapes, words: pa.Array) -> list[str]:
    """The subscriptions as expression strings, such as (a OR b) AND (c AND d) AND NOT "e-f"."""
    quoted = [_quoted(word) for word in words.take(pa.array(drawn.terms)).to_pylist()]
    starts = drawn.starts.tolist()
    texts = []
    for i, shape in enumerate(zip(*map(np.ndarray.tolist, shapes), strict=True)):
        first, second, first_or, second_or, by_or, negated = shape
        own = quoted[starts[i] : starts[i + 1]]
        text = _part(own[:first], first_or)
        if second:
            text = f"({text}) {'OR' if by_or else 'AND'} ({_part(own[first : first + second], second_or)})"
        texts.append(f"({text}) AND NOT {own[-1]}" if negated else text)
    return texts


def _part(tokens: list[str], is_or: int) -> str:
    return (" OR " if is_or else " AND ").join(tokens)


def _quoted(word: str) -> str:
    """The word in quotes, unless it is plain letters and numbers, as people write them."""
    if word.isascii() and word.isalnum() and word == word.lower() and word not in ("and", "or", "not"):
        return word
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'

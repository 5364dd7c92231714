"""Subscriptions that are boolean expressions: drawn tokens joined by AND and OR, one of them forbidden in some.

As in the AP-Tree paper (5.1.1): the tokens are cut in two, each part is joined by AND or by OR, and so are the two.
The first drawn token goes to the first part; a forbidden token is the last one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import sorted_sets, starts_of
from nearcast.bench.workloads.corpus import Drawn
from nearcast.bench.workloads.draws import stream_key, units
from nearcast.bench.workloads.subscriptions import row_batch, source_numbers
from nearcast.bench.workloads.workload import Workload
from nearcast.model import NEVER, NO_SHAPE, RowBatch


class Shapes(NamedTuple):
    """How the tokens of each subscription are joined. A part that is there but empty is an AND of nothing."""

    firsts: np.ndarray  # int64[n]  tokens in the first part
    seconds: np.ndarray  # int64[n]  tokens in the second part; 0 where there is none
    first_is_or: np.ndarray  # bool[n]
    second_is_or: np.ndarray  # bool[n]
    joined_by_or: np.ndarray  # bool[n]
    negated: np.ndarray  # int64[n]  1 where the last token is forbidden, else 0


def has_expressions(workload: Workload) -> bool:
    return workload.expression_share > 0 or workload.negated_share > 0


def shapes_of(workload: Workload, drawn: Drawn, first: int) -> Shapes:
    """Of subscriptions from number `first` on. Equal draws have equal shapes."""
    sources = source_numbers(workload, first, first + drawn.size)
    counts = np.diff(drawn.starts)

    def each(name: str) -> np.ndarray:
        return units(stream_key(workload.seed, f"expressions/{name}"), sources)

    negated = ((each("negated") < workload.negated_share) & (counts > 1)).astype(np.int64)
    positive = counts - negated
    in_two = (each("chosen") < workload.expression_share) & (positive > 1)
    firsts = np.where(in_two, 1 + (each("cut") * (positive - 1)).astype(np.int64), positive)
    joints = [in_two & (each(name) < 0.5) for name in ("first", "second", "joint")]
    return Shapes(firsts, positive - firsts, joints[0], joints[1], joints[2], negated)


def clause_counts(shapes: Shapes) -> np.ndarray:
    """int64[n]: clauses of each subscription, written out as a disjunction of conjunctions."""
    first = np.where(shapes.first_is_or, shapes.firsts, 1)
    second = np.where(shapes.second_is_or, shapes.seconds, 1)
    return np.asarray(np.where(shapes.joined_by_or, first + second, first * second))


def subscription_rows(workload: Workload, drawn: Drawn, first: int) -> RowBatch:
    """The subscriptions as rows: one each, or one for each clause. Ids count up from `first`."""
    return (
        clause_batch(drawn, shapes_of(workload, drawn, first), first)
        if has_expressions(workload)
        else row_batch(drawn, first)
    )


def clause_batch(drawn: Drawn, shapes: Shapes, first_id: int = 0) -> RowBatch:
    """A row for each clause. Tokens are distinct, so that no clause implies another."""
    counts = clause_counts(shapes)
    n = int(counts.sum())
    lengths, terms = np.empty(n, np.int64), np.empty(int((counts * np.diff(drawn.starts)).sum()), np.int32)
    used = _write_clauses(drawn.terms, drawn.starts, shapes, lengths, terms)
    lasts = np.repeat(drawn.terms[drawn.starts[1:] - 1] if drawn.size else drawn.terms, counts)
    is_negated = np.repeat(shapes.negated, counts)
    sorted_terms, starts = sorted_sets(terms[:used], starts_of(lengths))
    return RowBatch(
        np.repeat(np.arange(first_id, first_id + drawn.size), counts),
        sorted_terms,
        starts,
        lasts[is_negated > 0],
        starts_of(is_negated),
        np.repeat(drawn.boxes, counts, axis=0),
        np.full(n, NO_SHAPE, np.int32),
        np.full(n, NEVER),
    )


@kernel
def _write_clauses(tokens, starts, shapes, lengths, terms):
    """Write the terms of each clause, and how many they are; return how many were written in all."""
    row = at = 0
    for i in range(len(starts) - 1):
        middle = starts[i] + shapes.firsts[i]
        first, second = tokens[starts[i] : middle], tokens[middle : middle + shapes.seconds[i]]
        if shapes.joined_by_or[i]:
            row, at = _write_pairs(first, shapes.first_is_or[i], second[:0], False, (lengths, terms), row, at)
            row, at = _write_pairs(second, shapes.second_is_or[i], second[:0], False, (lengths, terms), row, at)
        else:
            ors = shapes.first_is_or[i], shapes.second_is_or[i]
            row, at = _write_pairs(first, ors[0], second, ors[1], (lengths, terms), row, at)
    return at


@kernel
def _write_pairs(first, first_is_or, second, second_is_or, out, row, at):
    """Each clause of one part with each of the other: an OR has a clause for each token, an AND one of all."""
    lengths, terms = out
    for i in range(len(first) if first_is_or else 1):
        for j in range(len(second) if second_is_or else 1):
            ones = first[i : i + 1] if first_is_or else first
            others = second[j : j + 1] if second_is_or else second
            terms[at : at + len(ones)] = ones
            at += len(ones)
            terms[at : at + len(others)] = others
            at += len(others)
            lengths[row] = len(ones) + len(others)
            row += 1
    return row, at


def expression_texts(drawn: Drawn, shapes: Shapes, words: pa.Array) -> list[str]:
    """The subscriptions as people write them: ("a" OR "b") AND ("c" AND "d") AND NOT "e"."""
    quoted = [_quoted(word) for word in words.take(pa.array(drawn.terms)).to_pylist()]
    starts = drawn.starts.tolist()
    texts = []
    for i, (first, second, first_or, second_or, by_or, negated) in enumerate(zip(*map(_listed, shapes), strict=True)):
        own = quoted[starts[i] : starts[i + 1]]
        text = _part(own[:first], first_or)
        if second:
            text = f"({text}) {'OR' if by_or else 'AND'} ({_part(own[first : first + second], second_or)})"
        texts.append(f"({text}) AND NOT {own[-1]}" if negated else text)
    return texts


def _listed(values: np.ndarray) -> list[int]:
    listed: list[int] = values.tolist()
    return listed


def _part(tokens: list[str], is_or: int) -> str:
    return (" OR " if is_or else " AND ").join(tokens)


def _quoted(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'

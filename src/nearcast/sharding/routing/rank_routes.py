"""How a ranked subscription is found: by place, by its keywords, by both, or by neither.

The *keywords* of a row are its heaviest terms, as few as possible, such that a message without any of them scores below
the threshold. A row filed under each keyword therefore meets every message that can match it. If terms alone never
reach the threshold, a message must also touch the row's box: the row is filed by place and, in leaves divided by text,
by keyword. If place alone suffices inside the box and terms alone suffice outside, the row is filed under both.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.matching.score import SLACK, combined
from nearcast.model import RowBatch
from nearcast.sharding.routing.areas import NO_KEY

UNREACHABLE, BY_KEYWORD, ALWAYS = 0, 1, 2


class RankParams(NamedTuple):
    """Parameters and terms of ranked rows, as kernels read them."""

    alphas: np.ndarray  # float64[n]
    thresholds: np.ndarray  # float64[n]
    terms: np.ndarray  # int32[...]
    starts: np.ndarray  # int64[n+1]


def read_rank_params(ranked: RowBatch) -> RankParams:
    return RankParams(ranked.params["alpha"], ranked.params["threshold"], ranked.terms, ranked.term_starts)


class RequiredKeywords(NamedTuple):
    """Which terms a message must contain to match each row, given how much of the row's box it covers."""

    states: np.ndarray  # uint8[n]  UNREACHABLE: no terms suffice; BY_KEYWORD; ALWAYS: no terms are needed
    is_key: np.ndarray  # bool[len(terms)]  the keywords of rows that are BY_KEYWORD


def required_keywords(ranked: RowBatch, weights: np.ndarray, place: float) -> RequiredKeywords:
    """The keywords for messages with this place score: 1 (the largest) inside the box, 0 outside."""
    found = RequiredKeywords(np.empty(ranked.size, np.uint8), np.zeros(len(ranked.terms), np.bool_))
    find_required_keywords(read_rank_params(ranked), weights, place, found)
    return found


@kernel
def find_required_keywords(rank_params, weights, place, out):
    """Fill the RequiredKeywords `out` of all rows. `weights` are by term."""
    for row in range(len(rank_params.alphas)):
        first, stop = rank_params.starts[row], rank_params.starts[row + 1]
        alpha, threshold = rank_params.alphas[row], rank_params.thresholds[row] - SLACK
        own = weights[rank_params.terms[first:stop]]
        order = np.argsort(-own, kind="mergesort")
        rest = np.zeros(len(own) + 1)  # rest[k]: the weight of all terms but the k heaviest
        for k in range(len(own) - 1, -1, -1):
            rest[k] = rest[k + 1] + own[order[k]]
        if combined(alpha, place, 1.0) < threshold:
            out.states[row] = UNREACHABLE
        elif rest[0] <= 0.0 or combined(alpha, place, 0.0) >= threshold:
            out.states[row] = ALWAYS
        else:
            out.states[row] = BY_KEYWORD
            k = 0
            while combined(alpha, place, rest[k] / rest[0]) >= threshold:
                out.is_key[first + order[k]] = True
                k += 1


RowKeys = tuple[np.ndarray, np.ndarray]  # rows int64[k], keys int64[k]: hashes or NO_KEY


def file_ranked_rows(ranked: RowBatch, weights: np.ndarray, hashes: np.ndarray) -> tuple[RowKeys, RowKeys, np.ndarray]:
    """(rows filed by place, rows filed by keyword, rows filed everywhere). `weights` and `hashes` are by term."""
    within, outside = required_keywords(ranked, weights, 1.0), required_keywords(ranked, weights, 0.0)
    keys = hashes[ranked.terms]
    row_of = np.repeat(np.arange(ranked.size), np.diff(ranked.term_starts))
    # Rows that only messages inside the box can match are filed by place, and by keyword if one is needed there.
    inside = within.is_key & (outside.states == UNREACHABLE)[row_of]
    plain = np.flatnonzero((within.states == ALWAYS) & (outside.states != ALWAYS))
    by_place = (np.concatenate([row_of[inside], plain]), np.concatenate([keys[inside], np.full(len(plain), NO_KEY)]))
    needed_inside, needed_outside = ((states == BY_KEYWORD)[row_of] for states in (within.states, outside.states))
    anywhere = np.where(needed_inside & needed_outside, within.is_key, outside.is_key & ~needed_inside)
    return by_place, (row_of[anywhere], keys[anywhere]), np.flatnonzero(outside.states == ALWAYS)

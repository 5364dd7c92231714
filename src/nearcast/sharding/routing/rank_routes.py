"""By what a ranked subscription is found: by place, by some of its words, or by nothing.

A message that has none of certain words, its *key words*, scores too little, wherever it is: a row filed under each of
them meets every message that it can concern. They are the heaviest ones, as few as will do. Where words alone are
never enough, a message must touch the row's box as well, and the row is filed by place and, where a leaf is divided by
text, by key word. Where place alone is enough within the box, and words alone are elsewhere, it is filed under both.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.matching.score import SLACK, combined
from nearcast.model import RankBatch
from nearcast.sharding.routing.areas import NO_KEY

TOO_LITTLE, BY_WORDS, ALWAYS = 0, 1, 2


class RankParams(NamedTuple):
    """Ranked rows as the kernel reads them."""

    alphas: np.ndarray  # float64[n]
    thresholds: np.ndarray  # float64[n]
    terms: np.ndarray  # int32[...]
    starts: np.ndarray  # int64[n+1]


def read_rank_params(ranks: RankBatch) -> RankParams:
    return RankParams(ranks.alphas, ranks.thresholds, ranks.rows.terms, ranks.rows.term_starts)


class RequiredKeywords(NamedTuple):
    """What messages at places of one sort must have."""

    states: np.ndarray  # uint8[n]  TOO_LITTLE: no words are enough; ALWAYS: no words are needed
    is_key: np.ndarray  # bool[len(terms)]  key words of rows that are BY_WORDS


def required_keywords(ranks: RankBatch, weights: np.ndarray, place: float) -> RequiredKeywords:
    """For messages that have so much of each box: 1 at most within it, 0 elsewhere."""
    found = RequiredKeywords(np.empty(ranks.size, np.uint8), np.zeros(len(ranks.rows.terms), np.bool_))
    find_required_keywords(read_rank_params(ranks), weights, place, found)
    return found


@kernel
def find_required_keywords(rank_params, weights, place, out):
    for row in range(len(rank_params.alphas)):
        first, stop = rank_params.starts[row], rank_params.starts[row + 1]
        alpha, threshold = rank_params.alphas[row], rank_params.thresholds[row] - SLACK
        own = weights[rank_params.terms[first:stop]]
        order = np.argsort(-own, kind="mergesort")
        rest = np.zeros(len(own) + 1)  # rest[k]: the weight of all but the k heaviest
        for k in range(len(own) - 1, -1, -1):
            rest[k] = rest[k + 1] + own[order[k]]
        if combined(alpha, place, 1.0) < threshold:
            out.states[row] = TOO_LITTLE
        elif rest[0] <= 0.0 or combined(alpha, place, 0.0) >= threshold:
            out.states[row] = ALWAYS
        else:
            out.states[row] = BY_WORDS
            k = 0
            while combined(alpha, place, rest[k] / rest[0]) >= threshold:
                out.is_key[first + order[k]] = True
                k += 1


class Filing(NamedTuple):
    """Where ranked rows are to be filed; the first of each is the row."""

    by_place: tuple[np.ndarray, np.ndarray]  # (rows int64[k], keys int64[k] or NO_KEY)
    by_words: tuple[np.ndarray, np.ndarray]  # (rows int64[k], keys int64[k])
    everywhere: np.ndarray  # rows int64[k]


def file_ranked_rows(ranks: RankBatch, weights: np.ndarray, hashes: np.ndarray) -> Filing:
    """`weights` and `hashes` are by term."""
    within, outside = required_keywords(ranks, weights, 1.0), required_keywords(ranks, weights, 0.0)
    keys = hashes[ranks.rows.terms]
    row_of = np.repeat(np.arange(ranks.size), np.diff(ranks.rows.term_starts))
    on_words, off_words = within.states == BY_WORDS, outside.states == BY_WORDS
    # Who must be within the box goes by place, and there by key word where one is needed.
    inside = within.is_key & (outside.states == TOO_LITTLE)[row_of]
    plain = np.flatnonzero((within.states == ALWAYS) & (outside.states != ALWAYS))
    by_place = (np.concatenate([row_of[inside], plain]), np.concatenate([keys[inside], np.full(len(plain), NO_KEY)]))
    anywhere = np.where((on_words & off_words)[row_of], within.is_key, outside.is_key & ~on_words[row_of])
    return Filing(by_place, (row_of[anywhere], keys[anywhere]), np.flatnonzero(outside.states == ALWAYS))

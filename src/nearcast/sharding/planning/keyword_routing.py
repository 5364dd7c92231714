"""The keywords under which sampled ranked rows are filed, and what they cost the messages that contain them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import starts_of
from nearcast.matching.score import SLACK, combined, word_share
from nearcast.model import MessageBatch, RowBatch
from nearcast.sharding.planning.costs import MATCH_NS, RANKED_NS
from nearcast.sharding.routing.rank_routes import RankParams, file_ranked_rows, read_rank_params

_TRIED = 16  # messages with a keyword on which each row of the keyword is tried


class RoutedKeywords(NamedTuple):
    """Keywords of ranked rows, and the messages that contain them."""

    hashes: np.ndarray  # int64[n]
    n_rows: np.ndarray  # int64[n]  sampled rows under each
    lookup_ns: np.ndarray  # float64[n]  what a message pays to test all rows under the keyword, and for their matches
    starts: np.ndarray  # int64[n+1]
    messages: np.ndarray  # int64[...]  the sampled messages with each keyword


class KeywordTrials(NamedTuple):
    """Rows and messages as the kernel reads them."""

    rank_params: RankParams
    weights: np.ndarray  # float64[n_terms]
    terms: np.ndarray  # int32[...]  of the messages, ascending in each
    term_starts: np.ndarray  # int64[n_messages + 1]
    starts: np.ndarray  # int64[n_keywords + 1]  as in RoutedKeywords
    messages: np.ndarray


def route_keywords(
    ranked: RowBatch, weights: np.ndarray, hashes: np.ndarray, messages: MessageBatch, scale: float
) -> RoutedKeywords:
    """The keywords of the sample. `weights` and `hashes` are by term; a row stands for `scale` rows."""
    rows, terms = file_ranked_rows(ranked, weights, np.arange(len(weights))).by_keyword
    keywords, of_keyword, n_rows = np.unique(terms, return_inverse=True, return_counts=True)
    starts, found = _messages_with(keywords, messages, len(weights))
    trials = KeywordTrials(read_rank_params(ranked), weights, messages.terms, messages.term_starts, starts, found)
    n_matches = np.zeros(len(keywords))
    expect_matches(trials, rows, of_keyword, n_matches)
    return RoutedKeywords(hashes[keywords], n_rows, scale * (RANKED_NS * n_rows + MATCH_NS * n_matches), starts, found)


def _messages_with(keywords: np.ndarray, messages: MessageBatch, n_terms: int) -> tuple[np.ndarray, np.ndarray]:
    """(starts, messages) of each keyword, which are terms here."""
    places = np.full(n_terms, -1)
    places[keywords] = np.arange(len(keywords))
    at = places[messages.terms]
    of_message = np.repeat(np.arange(messages.size), np.diff(messages.term_starts))[at >= 0]
    order = np.argsort(at[at >= 0], kind="stable")
    return starts_of(np.bincount(at[at >= 0], minlength=len(keywords))), of_message[order]


@kernel
def expect_matches(trials, rows, keywords, out):
    """out[w]: how many rows under keyword w a message with this keyword matches by its terms alone, on average over
    some of these messages.
    """
    for k in range(len(rows)):
        first, stop = trials.starts[keywords[k]], trials.starts[keywords[k] + 1]
        step = max(1, (stop - first) // _TRIED)
        n_tried = n_matched = 0
        for at in range(first, stop, step):
            n_tried += 1
            n_matched += 1 if is_match(trials, rows[k], trials.messages[at]) else 0
        out[keywords[k]] += n_matched / max(1, n_tried)


@kernel
def is_match(trials, row, message):
    """Whether the terms of a message alone match a row."""
    rank_params = trials.rank_params
    message_terms = trials.terms[trials.term_starts[message] : trials.term_starts[message + 1]]
    all_weight = shared_weight = 0.0
    for k in range(rank_params.starts[row], rank_params.starts[row + 1]):
        term = rank_params.terms[k]
        all_weight += trials.weights[term]
        at = np.searchsorted(message_terms, term)
        if at < len(message_terms) and message_terms[at] == term:
            shared_weight += trials.weights[term]
    score = combined(rank_params.alphas[row], 0.0, word_share(shared_weight, all_weight))
    return score >= rank_params.thresholds[row] - SLACK

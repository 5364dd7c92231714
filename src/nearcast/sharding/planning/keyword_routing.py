"""Sampled ranked rows that are found by words wherever a message is: under which words, and what they cost."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import starts_of
from nearcast.matching.score import SLACK, combined, word_share
from nearcast.model import MessageBatch, RankBatch
from nearcast.sharding.planning.costs import MATCH_NS, RANKED_NS
from nearcast.sharding.routing.rank_routes import RankParams, file_ranked_rows, read_rank_params

_TRIED = 16  # messages with a word on which each row under it is tried


class RoutedKeywords(NamedTuple):
    """Key words, and the messages that have them."""

    words: np.ndarray  # int64[n]  the hash of each
    n_rows: np.ndarray  # int64[n]  of the sample, under each
    look_ns: np.ndarray  # float64[n]  what it costs a message to look at all rows under each, of which some match
    starts: np.ndarray  # int64[n+1]
    messages: np.ndarray  # int64[...]  which of the sample have each


class KeywordTrials(NamedTuple):
    """What the kernel reads."""

    rank_params: RankParams
    weights: np.ndarray  # float64[n_terms]
    terms: np.ndarray  # int32[...]  of the messages, ascending in each
    term_starts: np.ndarray  # int64[n_messages + 1]
    starts: np.ndarray  # int64[n_words + 1]  as in Worded
    messages: np.ndarray


def route_keywords(
    ranks: RankBatch, weights: np.ndarray, hashes: np.ndarray, messages: MessageBatch, scale: float
) -> RoutedKeywords:
    """`weights` and `hashes` are by term. A row stands for `scale` rows."""
    rows, terms = file_ranked_rows(ranks, weights, np.arange(len(weights))).by_words
    words, of_word, n_rows = np.unique(terms, return_inverse=True, return_counts=True)
    starts, found = _messages_with(words, messages, len(weights))
    tried = KeywordTrials(read_rank_params(ranks), weights, messages.terms, messages.term_starts, starts, found)
    n_matches = np.zeros(len(words))
    expect_matches(tried, rows, of_word, n_matches)
    return RoutedKeywords(hashes[words], n_rows, scale * (RANKED_NS * n_rows + MATCH_NS * n_matches), starts, found)


def _messages_with(words: np.ndarray, messages: MessageBatch, n_terms: int) -> tuple[np.ndarray, np.ndarray]:
    """(starts, messages) of each of these terms."""
    places = np.full(n_terms, -1)
    places[words] = np.arange(len(words))
    at = places[messages.terms]
    of_message = np.repeat(np.arange(messages.size), np.diff(messages.term_starts))[at >= 0]
    order = np.argsort(at[at >= 0], kind="stable")
    return starts_of(np.bincount(at[at >= 0], minlength=len(words))), of_message[order]


@kernel
def expect_matches(tried, rows, words, out):
    """out[w]: how many rows under word w a message that has it matches, on average over some of these. Of the place
    nothing is expected.
    """
    for k in range(len(rows)):
        first, stop = tried.starts[words[k]], tried.starts[words[k] + 1]
        step = max(1, (stop - first) // _TRIED)
        n_tried = n_matched = 0
        for at in range(first, stop, step):
            n_tried += 1
            n_matched += 1 if is_match(tried, rows[k], tried.messages[at]) else 0
        out[words[k]] += n_matched / max(1, n_tried)


@kernel
def is_match(tried, row, message):
    """Whether the words of a message are enough for a row."""
    rank_params = tried.rank_params
    said = tried.terms[tried.term_starts[message] : tried.term_starts[message + 1]]
    own = met = 0.0
    for k in range(rank_params.starts[row], rank_params.starts[row + 1]):
        term = rank_params.terms[k]
        own += tried.weights[term]
        at = np.searchsorted(said, term)
        if at < len(said) and said[at] == term:
            met += tried.weights[term]
    return combined(rank_params.alphas[row], 0.0, word_share(met, own)) >= rank_params.thresholds[row] - SLACK

"""The sample that a shard plan is made from: subscriptions, messages, which match which, and what that costs.

Costs are estimated nanoseconds, not fitted ones. Only their ratios matter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import nearcast.indexes  # noqa: F401  registers every method
from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import starts_of, take
from nearcast.geo.space import Space
from nearcast.matching.score import SLACK, combined, word_share
from nearcast.matching.subscription_set import SubscriptionSet
from nearcast.model import NO_TIME, RANK, MessageBatch, RowBatch
from nearcast.sharding.normalise import served_dialect
from nearcast.sharding.routing.rank_routes import (
    ALWAYS,
    RankParams,
    file_ranked_rows,
    read_rank_params,
    required_keywords,
)
from nearcast.sharding.routing.router import hashes_of_terms, rows_of_ids
from nearcast.sharding.weights import Weights, ranked_rows
from nearcast.tables import Dialect, idf_weights, read_messages, read_subscriptions
from nearcast.tables.columns import strings_of
from nearcast.text.vocabulary import Vocabulary

MESSAGE_NS, TERM_NS, MATCH_NS = 1_500.0, 60.0, 20.0
_RANKED_NS = 2.0  # for each ranked row stored under a keyword of a message
_SEED = 4
_MOST_STAND_INS = 20_000
_TRIED = 16  # messages with a keyword on which each row of the keyword is tried


class RoutedKeywords(NamedTuple):
    """Keywords of ranked rows, and the messages that contain them."""

    hashes: np.ndarray  # int64[n]
    n_rows: np.ndarray  # int64[n]  sampled rows under each
    lookup_ns: np.ndarray  # float64[n]  what a message pays to test all rows under the keyword, and for their matches
    starts: np.ndarray  # int64[n+1]
    messages: np.ndarray  # int64[...]  the sampled messages with each keyword


class WorkloadSample(NamedTuple):
    """Sampled subscriptions and messages, and their matches."""

    rows: RowBatch
    messages: MessageBatch  # its terms are the vocabulary's
    vocabulary: Vocabulary
    match_rows: np.ndarray  # int64[...]  a row of the subscription, for each match
    match_starts: np.ndarray  # int64[n+1]  where each message's matches start
    scale: float  # how many subscriptions each sampled one stands for
    keywords: RoutedKeywords

    def costs(self, is_counted: np.ndarray) -> np.ndarray:
        """float64[n]: the cost of each message in nanoseconds, with the matches of the counted rows only."""
        n_before = np.concatenate([[0], np.cumsum(is_counted[self.match_rows])])
        matches = n_before[self.match_starts[1:]] - n_before[self.match_starts[:-1]]
        return np.asarray(self.visit_ns + MATCH_NS * (matches * self.scale))

    @property
    def visit_ns(self) -> np.ndarray:
        """float64[n]: the cost of a visit of each message without any match: reading it and looking up its terms."""
        return np.asarray(MESSAGE_NS + TERM_NS * np.diff(self.messages.term_starts))


def read_sample(
    subscriptions: pa.Table, messages: pa.Table | None, dialect: Dialect, scale: float, weights: Weights | None
) -> WorkloadSample:
    """Read the sampled tables and match them; see `make_router`."""
    vocabulary = Vocabulary()
    skipping = served_dialect(dialect)
    read = read_subscriptions(_ranked_as_matching(subscriptions), vocabulary, skipping)
    ranked, weights_by_term = _ranked(subscriptions, vocabulary, skipping, weights)
    rows = _without_needless_terms(read.rows(), ranked, weights_by_term)
    live = SubscriptionSet("pyramid", dialect.space)
    live.insert(rows, read.shapes)
    if messages is None:
        batch = _stand_ins(read.rows(), dialect.space)
    else:
        batch = read_messages(messages, vocabulary, skipping)[0]
    found = live.match(batch)
    match_rows = rows_of_ids(rows.owner_ids, found.ids)  # one of several rows: it does not matter for an estimate
    keywords = _route_keywords(ranked, weights_by_term, hashes_of_terms(vocabulary), batch, scale)
    return WorkloadSample(rows, batch, vocabulary, match_rows, found.starts, scale, keywords)


def _ranked(
    subscriptions: pa.Table, vocabulary: Vocabulary, dialect: Dialect, weights: Weights | None
) -> tuple[RowBatch, np.ndarray]:
    """(the ranked subscriptions, the weight of each term)."""
    has_ranked = ranked_rows(subscriptions).num_rows > 0
    read = read_subscriptions(subscriptions if has_ranked else subscriptions.slice(0, 0), vocabulary, dialect)
    return read.rows(RANK), idf_weights(read, vocabulary) if weights is None else weights.of_terms(vocabulary)


def _without_needless_terms(rows: RowBatch, ranked: RowBatch, weights: np.ndarray) -> RowBatch:
    """The rows without the terms of ranked subscriptions that need no terms within their boxes."""
    needless = np.sort(ranked.owner_ids[required_keywords(ranked, weights, 1.0).states == ALWAYS])
    n_terms = np.diff(rows.term_starts)
    is_needless = np.isin(rows.owner_ids, needless)
    terms = rows.terms[~np.repeat(is_needless, n_terms)]
    return rows._replace(terms=terms, term_starts=starts_of(np.where(is_needless, 0, n_terms)))


def _ranked_as_matching(subscriptions: pa.Table) -> pa.Table:
    """The table with kind `match` in place of `rank`.

    For the division by place, a ranked subscription counts as one that requires all of its terms within its box (or,
    see `_without_needless_terms`, no terms): a lower estimate of its matches.
    """
    kinds = strings_of(subscriptions, "kind")
    if kinds is None:
        return subscriptions
    place = subscriptions.column_names.index("kind")
    plain = pc.if_else(pc.equal(kinds.fill_null("match"), "rank"), "match", kinds)
    return subscriptions.set_column(place, "kind", plain)


def _stand_ins(rows: RowBatch, space: Space) -> MessageBatch:
    """Messages with the terms of some subscriptions, at random places in their boxes."""
    rng = np.random.default_rng(_SEED)
    picked = np.sort(rng.permutation(rows.size)[:_MOST_STAND_INS])
    terms, starts = take(rows.terms, rows.term_starts, picked)
    low, high = np.array(space.bounds[:2]), np.array(space.bounds[2:])
    boxes = rows.boxes[picked]
    # A box that spans the bounds of the space (a whole world) is clipped; one outside of them keeps its own bounds.
    lows = np.where(boxes[:, :2] < low, np.minimum(low, boxes[:, 2:]), boxes[:, :2])
    highs = np.where(boxes[:, 2:] > high, np.maximum(high, lows), boxes[:, 2:])
    places = lows + rng.random((len(picked), 2)) * (np.maximum(highs, lows) - lows)
    return MessageBatch(picked, terms, starts, np.tile(places, 2), np.full(len(picked), NO_TIME))


class KeywordTrials(NamedTuple):
    """Rows and messages as the kernel reads them."""

    rank_params: RankParams
    weights: np.ndarray  # float64[n_terms]
    terms: np.ndarray  # int32[...]  of the messages, ascending in each
    term_starts: np.ndarray  # int64[n_messages + 1]
    starts: np.ndarray  # int64[n_keywords + 1]  as in RoutedKeywords
    messages: np.ndarray


def _route_keywords(
    ranked: RowBatch, weights: np.ndarray, hashes: np.ndarray, messages: MessageBatch, scale: float
) -> RoutedKeywords:
    """The keywords of the sample. `weights` and `hashes` are by term; a row stands for `scale` rows."""
    _, (rows, terms), _ = file_ranked_rows(ranked, weights, np.arange(len(weights)))
    keywords, of_keyword, n_rows = np.unique(terms, return_inverse=True, return_counts=True)
    starts, found = _messages_with(keywords, messages, len(weights))
    trials = KeywordTrials(read_rank_params(ranked), weights, messages.terms, messages.term_starts, starts, found)
    n_matches = np.zeros(len(keywords))
    expect_matches(trials, rows, of_keyword, n_matches)
    return RoutedKeywords(hashes[keywords], n_rows, scale * (_RANKED_NS * n_rows + MATCH_NS * n_matches), starts, found)


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

"""The sample that a shard plan is made from: subscriptions, messages, which match which, and what that costs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import nearcast.indexes  # noqa: F401  registers every method
from nearcast.arrays.ragged import starts_of, take
from nearcast.geo.space import Space
from nearcast.matching.subscription_set import SubscriptionSet
from nearcast.model import NO_TIME, RANK, MessageBatch, RowBatch
from nearcast.sharding.normalise import served_dialect
from nearcast.sharding.planning.costs import message_costs
from nearcast.sharding.planning.keyword_routing import RoutedKeywords, route_keywords
from nearcast.sharding.routing.rank_routes import ALWAYS, required_keywords
from nearcast.sharding.routing.router import hashes_of_terms
from nearcast.sharding.weights import Weights, ranked_rows
from nearcast.tables import Dialect, idf_weights, read_messages, read_subscriptions
from nearcast.tables.columns import strings_of
from nearcast.text.vocabulary import Vocabulary

_SEED = 4
_MOST_STAND_INS = 20_000


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
        return message_costs(np.diff(self.messages.term_starts), matches * self.scale)

    @property
    def visit_ns(self) -> np.ndarray:
        """float64[n]: the cost of a visit of each message without any match."""
        return message_costs(np.diff(self.messages.term_starts), np.zeros(self.messages.size))


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
    live.insert(rows, read.regions)
    if messages is None:
        batch = _stand_ins(read.rows(), dialect.space)
    else:
        batch = read_messages(messages, vocabulary, skipping)[0]
    found = live.match(batch)
    match_rows = _any_row_of(rows.owner_ids, found.ids)
    keywords = route_keywords(ranked, weights_by_term, hashes_of_terms(vocabulary), batch, scale)
    return WorkloadSample(rows, batch, vocabulary, match_rows, found.starts, scale, keywords)


def _ranked(
    subscriptions: pa.Table, vocabulary: Vocabulary, dialect: Dialect, weights: Weights | None
) -> tuple[RowBatch, np.ndarray]:
    """(the ranked subscriptions, the weight of each term)."""
    has_ranked = ranked_rows(subscriptions).num_rows > 0
    read = read_subscriptions(subscriptions if has_ranked else subscriptions.slice(0, 0), vocabulary, dialect)
    n_terms = len(vocabulary)
    return read.rows(RANK), idf_weights(read, n_terms) if weights is None else weights.of_terms(vocabulary)


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


def _any_row_of(owner_ids: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """int64[n]: one row of each id; which of several does not matter for an estimate."""
    order = np.argsort(owner_ids, kind="stable")
    return order[np.searchsorted(owner_ids[order], ids)] if len(ids) else np.empty(0, np.int64)


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

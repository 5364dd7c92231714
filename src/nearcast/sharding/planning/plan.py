"""The plan of the shards: a k-d tree whose leaves cost the same, cut where few subscriptions lie across.

Cost comes from samples: the messages expected are matched with a sample of the subscriptions, by the library itself.
What a message costs is its reading, its terms and its matches; what a shard costs is the sum over its messages.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import nearcast.indexes  # noqa: F401  registers every method
from nearcast.arrays.ragged import starts_of, take
from nearcast.geo.space import Space
from nearcast.matching.matcher import Matcher
from nearcast.model import NO_TIME, MessageBatch, RankBatch, RowBatch
from nearcast.sharding.normalise import served_dialect
from nearcast.sharding.planning.cuts import Cut, best_cut
from nearcast.sharding.planning.keyword_placement import place_keywords
from nearcast.sharding.planning.keyword_routing import route_keywords
from nearcast.sharding.planning.loads import homes, shard_loads
from nearcast.sharding.planning.text_division import divided_leaves, most_leaves, placed, rows_over
from nearcast.sharding.planning.workload_sample import WorkloadSample
from nearcast.sharding.routing.areas import LEAF, Areas
from nearcast.sharding.routing.rank_routes import ALWAYS, required_keywords
from nearcast.sharding.routing.router import Router, hashes_of_terms
from nearcast.sharding.weights import Weights, ranked_rows
from nearcast.tables import Dialect, idf_weights, read_messages, read_subscriptions
from nearcast.tables.columns import strings_of
from nearcast.text.vocabulary import Vocabulary

_SEED = 4
_ROUNDS = 6  # of planning, at most; each learns from the loads of the one before
_EVEN = 1.1  # the largest load over the mean: no need to go on


class _Tree:
    """Grows the tree; a leaf has as many parts as it was given shards."""

    def __init__(self) -> None:
        self.nodes: list[list[Any]] = []  # axis, cut, below, above
        self.leaf_parts: list[int] = []

    def grow(self, points: np.ndarray, costs: np.ndarray, boxes: np.ndarray, n_shards: int) -> int:
        """The node of this part of the plane, for so many shards."""
        node = len(self.nodes)
        self.nodes.append([LEAF, 0.0, len(self.leaf_parts), -1])
        cut = best_cut(points, costs, boxes, n_shards) if n_shards > 1 else None
        if cut is None:
            self.leaf_parts.append(n_shards)
            return node
        self.nodes[node] = [cut.axis, cut.at, *self._sides(cut, points, costs, boxes, n_shards)]
        return node

    def _sides(self, cut: Cut, points: np.ndarray, costs: np.ndarray, boxes: np.ndarray, n_shards: int) -> list[int]:
        is_below = points[:, cut.axis] < cut.at
        reaches_below, reaches_above = boxes[:, cut.axis] < cut.at, boxes[:, cut.axis + 2] >= cut.at
        below = self.grow(points[is_below], costs[is_below], boxes[reaches_below], cut.shards_below)
        above = self.grow(points[~is_below], costs[~is_below], boxes[reaches_above], n_shards - cut.shards_below)
        return [below, above]

    def areas(self, n_shards: int) -> Areas:
        """With nothing divided yet. Shards are numbered along the leaves: neighbours in number are so in space."""
        axes, cuts, below, above = (list(column) for column in zip(*self.nodes, strict=True))
        n_leaves = len(self.leaf_parts)
        return Areas(
            np.array(axes, np.int8),
            np.array(cuts, np.float64),
            np.array(below, np.int32),
            np.array(above, np.int32),
            np.concatenate([[0], np.cumsum(self.leaf_parts)]).astype(np.int64),
            np.arange(n_shards, dtype=np.int32),
            np.zeros(n_leaves, np.uint8),
            np.array([n_leaves, n_shards], np.int64),
        )


def make_router(
    subscriptions: pa.Table,
    messages: pa.Table | None,
    n_shards: int,
    dialect: Dialect,
    scale: float = 1.0,
    weights: Weights | None = None,
) -> Router:
    """A router for so many shards, from samples. Without messages, the subscriptions' own words at places within
    their boxes stand in; without weights those of the sample.
    """
    sample = sampled(subscriptions, messages, dialect, scale, weights)
    factors = np.ones(sample.messages.size)
    best, least = None, np.inf
    for _ in range(_ROUNDS):
        router = _router(sample, factors, n_shards, dialect)
        loads = shard_loads(router, sample)
        if loads.uneven < least:
            best, least = router, loads.uneven
        if loads.uneven <= _EVEN:
            break
        # Messages that go to several shards cost more than was thought: weigh them by what came of it.
        of_home = loads.shards[homes(router, sample)]
        factors *= np.clip(of_home / max(loads.shards.mean(), 1.0), 0.25, 4.0)
    assert best is not None
    return best


def _router(sample: WorkloadSample, factors: np.ndarray, n_shards: int, dialect: Dialect) -> Router:
    areas = _grown(sample, np.ones(sample.rows.size, bool), factors, n_shards)
    most = most_leaves(areas, sample.rows)
    if most < len(areas.is_divided):
        # Matches of rows that go by text are not the leaves' cost: grow again without them.
        areas = _grown(sample, ~rows_over(areas, sample.rows, most), factors, n_shards)
        areas.limits[0] = min(most, len(areas.is_divided))
    return place_keywords(placed(Router(areas, dialect), sample), sample)


def _grown(sample: WorkloadSample, counts: np.ndarray, factors: np.ndarray, n_shards: int) -> Areas:
    tree = _Tree()
    tree.grow(_centres(sample.messages.boxes), sample.costs(counts) * factors, sample.rows.boxes, n_shards)
    return divided_leaves(tree.areas(n_shards), sample.rows.boxes)


# -- samples


def sampled(
    subscriptions: pa.Table, messages: pa.Table | None, dialect: Dialect, scale: float, weights: Weights | None
) -> WorkloadSample:
    vocabulary = Vocabulary()
    skipping = served_dialect(dialect)
    read = read_subscriptions(_all_matching(subscriptions), vocabulary, skipping)
    ranks, by_term = _ranked(subscriptions, vocabulary, skipping, weights)
    rows = _by_place_alone(read.rows, ranks, by_term)
    matcher = Matcher("pyramid", dialect.space)
    matcher.insert(rows, read.regions)
    if messages is None:
        batch = _stand_ins(read.rows, dialect.space)
    else:
        batch = read_messages(messages, vocabulary, skipping)[0]
    found = matcher.match(batch)
    first_rows = _first_rows(rows.owner_ids, found.ids)
    keywords = route_keywords(ranks, by_term, hashes_of_terms(vocabulary), batch, scale)
    return WorkloadSample(rows, batch, vocabulary, first_rows, found.starts, scale, keywords)


def _ranked(
    subscriptions: pa.Table, vocabulary: Vocabulary, dialect: Dialect, weights: Weights | None
) -> tuple[RankBatch, np.ndarray]:
    """The ranked ones, and the weights of all terms."""
    is_ranked = ranked_rows(subscriptions).num_rows > 0
    read = read_subscriptions(subscriptions if is_ranked else subscriptions.slice(0, 0), vocabulary, dialect)
    n_terms = len(vocabulary)
    return read.ranks, idf_weights(read, n_terms) if weights is None else weights.of_terms(vocabulary)


def _by_place_alone(rows: RowBatch, ranks: RankBatch, weights: np.ndarray) -> RowBatch:
    """Without the words of those ranked ones that need none within their boxes."""
    freely = np.sort(ranks.rows.owner_ids[required_keywords(ranks, weights, 1.0).states == ALWAYS])
    n_terms = np.diff(rows.term_starts)
    is_free = np.isin(rows.owner_ids, freely)
    terms = rows.terms[~np.repeat(is_free, n_terms)]
    return rows._replace(terms=terms, term_starts=starts_of(np.where(is_free, 0, n_terms)))


def _all_matching(subscriptions: pa.Table) -> pa.Table:
    """To the plan of place a ranked subscription is one that wants all of its words within its box, or, see below, any
    message there: an estimate from below.
    """
    kinds = strings_of(subscriptions, "kind")
    if kinds is None:
        return subscriptions
    place = subscriptions.column_names.index("kind")
    plain = pc.if_else(pc.equal(kinds.fill_null("match"), "rank"), "match", kinds)
    return subscriptions.set_column(place, "kind", plain)


def _first_rows(owner_ids: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """A row of each id's: which one of several does not matter to an estimate."""
    order = np.argsort(owner_ids, kind="stable")
    return order[np.searchsorted(owner_ids[order], ids)] if len(ids) else np.empty(0, np.int64)


def _stand_ins(rows: RowBatch, space: Space, most: int = 20_000) -> MessageBatch:
    """Messages that say what some subscriptions ask for, somewhere in their boxes."""
    rng = np.random.default_rng(_SEED)
    picked = np.sort(rng.permutation(rows.size)[:most])
    terms, starts = take(rows.terms, rows.term_starts, picked)
    low, high = np.array(space.bounds[:2]), np.array(space.bounds[2:])
    boxes = rows.boxes[picked]
    # A box outside of a plane's bounds keeps its own; one that spans them (a whole world) does not.
    lows = np.where(boxes[:, :2] < low, np.minimum(low, boxes[:, 2:]), boxes[:, :2])
    highs = np.where(boxes[:, 2:] > high, np.maximum(high, lows), boxes[:, 2:])
    places = lows + rng.random((len(picked), 2)) * (np.maximum(highs, lows) - lows)
    return MessageBatch(picked, terms, starts, np.tile(places, 2), np.full(len(picked), NO_TIME))


def _centres(boxes: np.ndarray) -> np.ndarray:
    return np.asarray(boxes[:, :2] / 2 + boxes[:, 2:] / 2)

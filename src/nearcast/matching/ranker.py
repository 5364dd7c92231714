"""The ranker: a rank method and all that is common to rank methods, on rows and terms.

What it adds to a method: replacing and removing by subscription id, expiry, order, threads, giving memory back, and the
state to save. Each subscription is one row. What it shares with the matcher is in row_keeper.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.errors import InvalidInput
from nearcast.geo.shapes import ShapeTable
from nearcast.geo.space import Space
from nearcast.matching.intake import checked_messages, checked_ranks, ranks_by_owner
from nearcast.matching.owners import Owners
from nearcast.matching.predicate import mark_terms
from nearcast.matching.rank_method import RankHits, RankMethod, make_rank_method
from nearcast.matching.rank_rows import RankRows
from nearcast.matching.row_keeper import RowKeeper, State, part_of
from nearcast.matching.score import score_of
from nearcast.matching.store import RowStore
from nearcast.matching.verify import starts_kept, verdicts
from nearcast.model import LARGEST_WEIGHT, Found, Hits, MessageBatch, RankBatch, Work


class Ranker(RowKeeper):
    """Ranked subscriptions as rows in; messages as terms in; ids and scores out.

    `weights` (float64, by term) are fixed; a term beyond them weighs as much as the heaviest, or 1 where there is none.
    """

    method: RankMethod

    def __init__(self, method: str, space: Space, weights: np.ndarray, options: dict[str, Any] | None = None) -> None:
        self.asked = RankRows(_checked(weights))
        super().__init__(method, space, options)

    def _make(self, method: str) -> None:
        self.asked = RankRows(self.asked.weights)
        self.method = make_rank_method(method, self.store, self.asked, self.space, self.options)

    @property
    def nbytes(self) -> int:
        return super().nbytes + self.asked.nbytes

    # -- changes

    def insert(self, batch: RankBatch) -> None:
        """Add subscriptions; one whose id is known is replaced."""
        batch = checked_ranks(batch)
        self.remove(batch.rows.owner_ids)
        if self.store.high == 0:
            batch = ranks_by_owner(batch)  # so that row numbers follow ids, and rows in order are ids in order
        rows = self.store.add(batch.rows, [])
        self.asked.put(self.store, rows, batch.alphas, batch.thresholds)
        self.owners.add(batch.rows.owner_ids, rows, self.store.high)
        self._index(rows)

    def _compact(self) -> None:
        live = self.store.live_rows()
        rows, asked = self.store.batch(live)[0], self.asked.arrays
        batch = RankBatch(rows, asked.alphas[live], asked.thresholds[live])
        self._start(self.method.name)
        if batch.size:
            self.insert(batch)

    # -- matching

    def match_one(self, terms: np.ndarray, x: float, y: float) -> np.ndarray:
        """The subscriptions of one message at a point. Terms: int32, sorted, unique, not negative."""
        return self._match_alone(self._known(terms), x, y).ids

    def score(self, subscription: int, message: MessageBatch) -> float:
        """The score of one subscription on one message, delivered or not."""
        (row,) = self.owners.rows(np.array([subscription], np.int64))
        message, marks = checked_messages(message, self.store.n_terms), np.zeros(self.store.n_terms, np.uint8)
        mark_terms(marks, message, 0, 1)
        return float(score_of(self.store.arrays, self.asked.arrays, row, marks, message.boxes[0]))

    def _match_part(self, messages: MessageBatch) -> tuple[Found, Work]:
        hits, work = self.method.match(messages)
        keep = verdicts(self.store, messages, Hits(hits.rows, hits.starts))
        if keep is not None:
            hits = RankHits(hits.rows[keep], hits.scores[keep], starts_kept(keep, hits.starts))
        found = _owners_ranked(self.store, hits)
        return found, work._replace(matches=len(found.ids))

    # -- files

    def _parts(self) -> dict[str, State]:
        return super()._parts() | {"asked": (self.asked.state(), {})}

    @classmethod
    def restored(cls, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> Ranker:
        asked, parts = RankRows.restored(part_of(arrays, "asked")), header["parts"]
        made = cls(header["method"], Space.from_header(header["space"]), asked.weights, header["options"])
        no_shapes = ShapeTable(made.space)
        made.asked = asked
        made.store = RowStore.restored(part_of(arrays, "store"), parts["store"], no_shapes, made.space)
        made.owners = Owners.restored(part_of(arrays, "owners"))
        made.method = make_rank_method(header["method"], made.store, asked, made.space, made.options)
        made.method.restore(part_of(arrays, "method"), parts["method"])
        made._rows_at_build = header["rows_at_build"]
        return made


def _checked(weights: np.ndarray) -> np.ndarray:
    weights = np.array(weights, np.float64)
    if not ((weights >= 0.0) & (weights <= LARGEST_WEIGHT)).all():
        raise InvalidInput(f"a weight is a number from 0 to {LARGEST_WEIGHT:g}", column="weight")
    return weights


def _owners_ranked(store: RowStore, hits: RankHits) -> Found:
    """Subscription ids, ascending within each message, and their scores."""
    ids = store.owner_ids[hits.rows]
    falls = np.flatnonzero(ids[1:] < ids[:-1]) + 1
    if np.isin(falls, hits.starts).all():
        return Found(ids, hits.starts, hits.scores)
    order = np.lexsort((ids, np.repeat(np.arange(len(hits.starts) - 1), np.diff(hits.starts))))
    return Found(ids[order], hits.starts, hits.scores[order])


def merged(plain: Found, ranked: Found) -> Found:
    """Both, message by message in order of ids; no id is in both. Ids of the first have no score: NaN."""
    starts = plain.starts + ranked.starts
    ids, scores = np.empty(starts[-1], np.int64), np.full(starts[-1], np.nan)
    _merge(plain[:2], ranked, starts, ids, scores)
    return Found(ids, starts, scores)


@kernel
def _merge(plain, ranked, starts, ids, scores):
    plain_ids, plain_starts = plain
    for m in range(len(starts) - 1):
        a, b = plain_starts[m], ranked.starts[m]
        for n in range(starts[m], starts[m + 1]):
            take_ranked = b < ranked.starts[m + 1] and (a == plain_starts[m + 1] or ranked.ids[b] < plain_ids[a])
            if take_ranked:
                ids[n], scores[n] = ranked.ids[b], ranked.scores[b]
                b += 1
            else:
                ids[n] = plain_ids[a]
                a += 1

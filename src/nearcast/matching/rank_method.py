"""The contract of a method for kind `rank`, and its registry.

A rank method is an index over ranked rows: a sorted set of terms (maybe none), one closed box, and what it asks for
(alpha, threshold; see rank_rows.py). It reports the rows whose score on a message (score.py, and nothing else) is at
least their threshold, with that score. The edges:

* words alone can be enough: where threshold <= 1 - alpha a row may be delivered far outside its box;
* place alone can be enough: where threshold <= alpha a row may be delivered on a message that shares no term with it;
* threshold <= 0 holds on every message, everywhere, also on one without terms;
* alpha 0 looks at words only, alpha 1 at place only; both occur, so no bound may divide by alpha or by 1 - alpha;
* a row without terms, or whose terms weigh nothing, has all of its words: words = 1 on every message;
* a term may weigh 0, and terms may weigh the same;
* a score equal to the threshold is delivered: prune only where a bound (with SLACK) is below it, and decide by
  `score_of`;
* a point message inside counts as full overlap and a range that only touches as none, so a range message can score less
  than a point within it; a row without area counts in full when touched;
* equal boxes, equal term sets and wholly equal rows are still different rows;
* a message's terms are sorted, unique, below `store.n_terms`, and each has a weight; tokens that no row has were left
  out, and change no score;
* `insert`, `remove`, `build` and `match` are called as those of a Method are (method.py): rows are in the store, and in
  `asked`, when they come, and are forgotten for good when they go; `match` changes nothing and runs in several threads;
* each row is reported once per message, in any order.

Ids, replacing, expiry, order, threads and files sit above, in ranker.py.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from nearcast.errors import UnknownMethod, UnsupportedKind
from nearcast.geo.space import Space
from nearcast.matching.method import REGISTRY, RowMethod, check_options
from nearcast.matching.rank_rows import RankRows
from nearcast.matching.store import RowStore
from nearcast.model import MessageBatch, Work

RANK_REGISTRY: dict[str, type[RankMethod]] = {}

BEST_RANK_METHOD = "rt++-tree"
"""What serves ranked subscriptions where a method is to be chosen."""
CHOOSERS = ("auto",)
"""Methods that stand for whichever is best, and have no rank method of their own."""


class RankHits(NamedTuple):
    """What a rank method found: for each message, the rows that are delivered (unordered, no row twice)."""

    rows: np.ndarray  # int32[...]
    scores: np.ndarray  # float64[...]
    starts: np.ndarray  # int64[n_messages + 1]


class RankMethod(RowMethod):
    """Subclasses that set `name` are registered by that name: that of the Method which is the same structure."""

    registry: ClassVar[dict[str, Any]] = RANK_REGISTRY

    def __init__(self, store: RowStore, asked: RankRows, space: Space) -> None:
        super().__init__(store, space)
        self.asked = asked

    @abstractmethod
    def match(self, messages: MessageBatch) -> tuple[RankHits, Work]: ...


def find_rank_method(name: str) -> type[RankMethod]:
    """The rank method of that name, or the best one where `name` is a method that chooses."""
    if name in RANK_REGISTRY:
        return RANK_REGISTRY[name]
    if name not in REGISTRY:
        raise UnknownMethod(f"no method '{name}'; there are {', '.join(sorted(REGISTRY))}")
    if name not in CHOOSERS:
        there = ", ".join(sorted({*RANK_REGISTRY, *CHOOSERS}))
        raise UnsupportedKind(f"method '{name}' does not serve subscriptions of kind 'rank'; those that do: {there}")
    return RANK_REGISTRY[BEST_RANK_METHOD]


def make_rank_method(name: str, store: RowStore, asked: RankRows, space: Space, options: dict[str, Any]) -> RankMethod:
    """An empty rank method over a store."""
    method = find_rank_method(name)
    check_options(method, options)
    return method(store, asked, space, **options)

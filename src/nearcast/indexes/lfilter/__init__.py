"""LFilter: a trie of token sets and a quadtree over the same rows; each message takes the cheaper of them.

Paper      lfilter
Idea       The quadtree is good for messages that are small in space, the trie for messages with few tokens. Lists of
           the quadtree are in the order of the trie, so a trie node's range of numbers cuts them: both prune at once.
Layout     as mbr-trie and pt-quadtree, and a table of the cost of each term in the trie (20 bytes a term).
Cost       insert and remove as both; match as the cheaper one by estimate, or less where lists are cut.
Deviates   Costs are nanoseconds of whole searches, not of the filters alone: the quadtree's lists take most of its
           time. The cost of the trie sums up what each term of the message is expected to cost below the root, by
           frequencies. Sets are read from the rarest token on, so a trie node that few rows reach is verified at once.
           `way` forces one strategy for all messages.
"""

from __future__ import annotations

import threading
from operator import is_
from typing import Any

import numpy as np

from nearcast.errors import InvalidInput
from nearcast.geo.space import Space
from nearcast.indexes.lfilter.choice import BY_TRIE, CHEAPEST, STRATEGIES, UNDECIDED
from nearcast.indexes.lfilter.costs import NODE, ROW, TOKEN
from nearcast.indexes.lfilter.loads import Loads
from nearcast.indexes.lfilter.prune import LFilterView, lfilter_view
from nearcast.indexes.lfilter.search import Scratch, search_all, search_by_trie
from nearcast.matching.method import Method
from nearcast.matching.store import RowStore
from nearcast.model import Hits, MessageBatch, Work
from nearcast.structures.quadtree.quadtrees import PivotalQuadtree, QuadOptions
from nearcast.structures.scratch import ZeroedPool
from nearcast.structures.trie.trie import Trie, rarest_terms

_CHOICES = (*STRATEGIES, "cost")


class QuadtreeInTrieOrder(PivotalQuadtree):
    """A quadtree whose entries hold the term that leads from the trie's root to their row.

    A list is thus sorted by the ranks of these terms. The entries that belong to a child of the trie's root are found
    by their terms in a few cache lines; finding them by the rows' numbers would take a cache miss each.
    """

    def __init__(self, store: RowStore, space: Space, options: QuadOptions, trie: Trie) -> None:
        super().__init__(store, space, options)
        self._trie = trie

    def entry_terms(self, rows: np.ndarray) -> np.ndarray:
        return rarest_terms(self._store, self._trie.ranks, rows)


class LFilter(Method):
    name = "lfilter"
    paper = "lfilter"
    reports_costs = True
    checked_with = (
        "",
        "way=trie gap=1",
        "way=cells tau_num=3",
        "way=lists tau_num=2 gap=2",
        "way=lists copies=1 tau_num=4",
    )

    def __init__(
        self,
        store: RowStore,
        space: Space,
        way: str = "cost",
        gap: int = 1 << 20,
        tau_num: int = QuadOptions().tau_num,
        copies: int = QuadOptions().copies,
    ) -> None:
        super().__init__(store, space)
        if way not in _CHOICES:
            raise InvalidInput(f"way is one of {', '.join(_CHOICES)}; it is {way}")
        self._strategy = _CHOICES.index(way)
        self.trie = Trie(store, gap)
        self.quadtree = QuadtreeInTrieOrder(store, space, QuadOptions(tau_num=tau_num, copies=copies), self.trie)
        self._loads = Loads()
        self._cached_view: tuple[tuple[Any, ...], LFilterView] | None = None
        self._scratch = ZeroedPool(Scratch, np.uint8, np.int32)
        self.choices = np.zeros((len(STRATEGIES), 3))  # by strategy: messages, expected and spent nanoseconds
        self._counting = threading.Lock()

    @property
    def plan(self) -> str:
        """How many messages took each strategy, and the mean cost that the model expected and counted."""
        taken = [
            f"{name} for {int(n)} messages, expected {expected / n / 1e3:.1f} us each and spent {spent / n / 1e3:.1f}"
            for name, (n, expected, spent) in zip(STRATEGIES, self.choices, strict=True)
            if n
        ]
        return "; ".join([self.name, *taken])

    def build(self, rows: np.ndarray) -> None:
        self._cached_view = None  # releases arrays that will be replaced
        self.trie.build(rows)
        self.quadtree.build(rows, self.trie.arrays.numbers)
        self._loads.learn(self.store, self.trie, self.quadtree.arrays)

    def insert(self, rows: np.ndarray) -> None:
        self._cached_view = None
        self.trie.insert(rows)
        self.quadtree.insert(rows, self.trie.arrays.numbers)
        self._loads.note(len(rows), self.store, self.trie, self.quadtree.arrays)

    def remove(self, rows: np.ndarray) -> None:
        self._cached_view = None
        self.quadtree.remove(rows, self.trie.arrays.numbers)
        self.trie.remove(rows)
        self._loads.note(len(rows), self.store, self.trie, self.quadtree.arrays)

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        model, view, strategy = self._loads.model, self._view(), self._strategy
        starts, tally = np.zeros(messages.size + 1, np.int64), np.zeros(self.choices.shape)
        with self._scratch.sized(self.store.n_terms, len(self.trie.ranks)) as scratch:
            positions = scratch.positions
            rows, nodes, read, expected = search_by_trie(view.trie, messages, model, positions, strategy, starts)
            if expected == UNDECIDED:
                rows, nodes, read = search_all(view, messages, model, scratch, strategy, starts, tally)
                _, expected, spent = tally.sum(axis=0)
            else:
                spent = TOKEN * len(messages.terms) + NODE * nodes + ROW * read
                tally[BY_TRIE] = messages.size, expected, spent
        with self._counting:
            self.choices += tally
        return Hits(rows, starts), Work(nodes, read, len(rows), int(expected), int(spent))

    def _view(self) -> LFilterView:
        """The arrays that a search reads, collected again only where arrays were replaced: 30 us with a cold cache."""
        sources = (self.trie.arrays, self.trie.ranks, self.quadtree.arrays, self.store.arrays)
        cached = self._cached_view
        if cached is None or not all(map(is_, cached[0], sources)):
            cached = self._cached_view = sources, lfilter_view(*sources)
        return cached[1]

    @property
    def nbytes(self) -> int:
        return self.trie.nbytes + self.quadtree.nbytes + self._loads.nbytes

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        return self.trie.state()[0] | self.quadtree.state()[0] | self._loads.state(), {}

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        self._cached_view = None
        self.trie.restore(arrays, header)
        self.quadtree.restore(arrays, header)
        self._loads.restore(arrays)


assert _CHOICES[CHEAPEST] == "cost"

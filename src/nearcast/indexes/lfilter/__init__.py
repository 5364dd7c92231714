"""LFilter: a trie of token sets and a quadtree over one order of rows; each message takes the cheaper way.

Paper      lfilter
Idea       The quadtree is good where a message is small in space, the trie where it is short. Lists of the quadtree are
           in the order of the trie, so that a node's range of numbers cuts them: both prune at once.
Layout     as mbr-trie and pt-quadtree, and a table of what each term costs in the trie (20 bytes a term).
Cost       insert and remove as both; match as the cheaper one, by estimate, or less where lists are cut.
Deviates   Costs are nanoseconds of whole ways, not orders of filters alone: the quadtree's lists make most of its time.
           The trie's cost adds up what each term of the message is expected to cost below the root, by frequencies.
           Rarest first, so a trie node that few rows reach is verified at once. `way` takes one way for all.
"""

from __future__ import annotations

import threading
from operator import is_
from typing import Any

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.errors import InvalidInput
from nearcast.geo.space import Space
from nearcast.indexes.lfilter.choice import BY_TRIE, CHEAPEST, WAYS
from nearcast.indexes.lfilter.loads import Loads
from nearcast.indexes.lfilter.prune import Both, both_of
from nearcast.indexes.lfilter.quadtree import QuadtreeInOrder
from nearcast.indexes.lfilter.search import Tools, search, search_at_once
from nearcast.matching.method import Method
from nearcast.matching.store import RowStore
from nearcast.model import Hits, MessageBatch, Work
from nearcast.structures.quadtree.tree import QuadOptions
from nearcast.structures.trie.probe import trie_view
from nearcast.structures.trie.trie import Trie

_CHOICES = (*WAYS, "cost")


class LFilter(Method):
    name = "lfilter"
    paper = "lfilter"
    tells_costs = True
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
        self._way = _CHOICES.index(way)
        self.trie = Trie(store, gap)
        self.quadtree = QuadtreeInOrder(store, space, QuadOptions(tau_num=tau_num, copies=copies), self.trie)
        self._loads = Loads()
        self._read: tuple[tuple[Any, ...], Both] | None = None
        self._spare: list[Tools] = []  # zeroed, one for each thread at work
        self.choices = np.zeros((len(WAYS), 3))  # for each way: messages, expected and spent nanoseconds
        self._counting = threading.Lock()

    @property
    def plan(self) -> str:
        """How many messages took each way, and what the model expected and counted for one."""
        told = [
            f"{way} for {int(n)} messages, expected {expected / n / 1e3:.1f} us each and spent {spent / n / 1e3:.1f}"
            for way, (n, expected, spent) in zip(WAYS, self.choices, strict=True)
            if n
        ]
        return "; ".join([self.name, *told])

    def build(self, rows: np.ndarray) -> None:
        self._read = None  # lets go of arrays that will be replaced
        self.trie.build(rows)
        self.quadtree.build(rows, self.trie.arrays.numbers)
        self._loads.learn(self.store, self.trie, self.quadtree.arrays)

    def insert(self, rows: np.ndarray) -> None:
        self._read = None
        self.trie.insert(rows)
        self.quadtree.insert(rows, self.trie.arrays.numbers)
        self._loads.note(len(rows), self.store, self.trie, self.quadtree.arrays)

    def remove(self, rows: np.ndarray) -> None:
        self._read = None
        self.quadtree.remove(rows, self.trie.arrays.numbers)
        self.trie.remove(rows)
        self._loads.note(len(rows), self.store, self.trie, self.quadtree.arrays)

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        tools, model, both = self._tools(), self._loads.model, self._both()
        answer = search_at_once(both.trie, messages, model, tools.spots, self._way)
        if answer is None:
            hits, work, told = search(both, messages, model, tools, self._way)
            self._count(slice(None), told)
        else:
            hits, work = answer
            self._count(BY_TRIE, (messages.size, work.expected_ns, work.spent_ns))
        self._spare.append(tools)
        return hits, work

    def _both(self) -> Both:
        """What a search reads, made anew only where arrays were replaced: it takes 30 us with nothing in cache."""
        held = (self.trie.arrays, self.trie.places, self.quadtree.arrays, self.store.arrays)
        read = self._read
        if read is None or not all(map(is_, read[0], held)):
            trie = trie_view(self.trie.arrays, self.trie.places, self.store.arrays.boxes)
            read = held, both_of(trie, self.trie.arrays, self.quadtree.arrays, self.store.arrays)
            self._read = read
        return read[1]

    def _count(self, ways: int | slice, told: np.ndarray | tuple[int, int, int]) -> None:
        with self._counting:
            self.choices[ways] += told

    def _tools(self) -> Tools:
        spare = self._spare.pop() if self._spare else Tools(np.zeros(0, np.uint8), np.zeros(0, np.int32))
        return Tools(grown(spare.marks, self.store.n_terms, fill=0), grown(spare.spots, len(self.trie.places), fill=0))

    @property
    def nbytes(self) -> int:
        return self.trie.nbytes + self.quadtree.nbytes + self._loads.nbytes

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        return self.trie.state() | self.quadtree.state() | self._loads.state(), {}

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        self._read = None
        self.trie.restore(arrays)
        self.quadtree.restore(arrays)
        self._loads.restore(arrays)


assert _CHOICES[CHEAPEST] == "cost"

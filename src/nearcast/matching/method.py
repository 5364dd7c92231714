"""The contract of a method, and the registry.

A method is an index over rows. A row is a sorted set of at least one term and one closed box; it holds on a message
when all its terms occur in the message and its box overlaps the message's box. The edges:

* a point on the border is inside; touching boxes overlap; a box may have size 0;
* equal boxes, equal term sets and wholly equal rows are still different rows;
* a message may have no terms at all, or thousands; its terms are sorted, unique, and below `store.n_terms`;
* `insert` brings rows that are already in the store; `remove` names rows that are still there and forgets them for
  good: the store may give their numbers to other rows right after;
* `expect` may come before `build`, with a sample of the messages to come; a method may use it, and most do not;
* `match` changes nothing, so that several threads may call it at once;
* each row that holds is reported once per message, in any order.

What is common to all methods sits above (see matcher.py): expressions, NOT, exact shapes, rows without terms,
replacing, ids, order, threads and files.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from nearcast.errors import InvalidInput, UnknownMethod
from nearcast.geo.space import Space
from nearcast.matching.store import RowStore
from nearcast.model import NO_TIME, Hits, MessageBatch, Work

_NO_IDS, _NO_TIMES = np.zeros(1, np.int64), np.full(1, NO_TIME, np.int64)

REGISTRY: dict[str, type[Method]] = {}


class RowMethod(ABC):
    """What the methods of every kind share: an index over rows of a store, by name."""

    registry: ClassVar[dict[str, Any]]
    name: ClassVar[str]
    paper: ClassVar[str]
    """The paper it comes from (a page of docs/papers), or "baseline" or "nearcast"."""
    effort_ceiling: ClassVar[float] = 0.5
    """Largest share of (message, row) pairs that it may compare on the checks' fixed workload."""
    rebuild_growth: float = 4.0
    """Built anew, with fresh term frequencies, once it holds this many times the rows of its last build."""
    checked_with: ClassVar[tuple[str, ...]] = ("",)
    """Options that the checks run with, each like "crowded=2 young=8": whatever takes another path belongs here."""
    known_gaps: ClassVar[dict[str, str]] = {}
    """Checks that it cannot pass yet, each with the reason: expected to fail, and failing loudly once they pass."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" in cls.__dict__:
            known = cls.registry.setdefault(cls.name, cls)
            if known is not cls and known.__module__ != cls.__module__:
                raise ValueError(f"method name '{cls.name}' is taken by {known.__module__}")
            cls.registry[cls.name] = cls

    def __init__(self, store: RowStore, space: Space) -> None:
        self.store = store
        self.space = space

    @property
    def plan(self) -> str:
        """What does the work, in words: the method itself, or the one that it chose and why."""
        return self.name

    @abstractmethod
    def build(self, rows: np.ndarray) -> None:
        """Index these rows (int32) and no others."""

    @abstractmethod
    def insert(self, rows: np.ndarray) -> None: ...

    @abstractmethod
    def remove(self, rows: np.ndarray) -> None: ...

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes held beyond the store's."""

    @abstractmethod
    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and a small header, enough for `restore`."""

    @abstractmethod
    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        """Take over a state. The arrays may be copy-on-write maps, and may be written to."""


class Method(RowMethod):
    """A method for kind `match`. Subclasses that set `name` are registered by that name."""

    registry: ClassVar[dict[str, Any]] = REGISTRY
    kinds: ClassVar[tuple[str, ...]] = ("match",)
    """("match", "rank") where a rank method of the same name is registered too, or chosen for it (rank_method.py)."""
    takes_termless_rows: ClassVar[bool] = False
    """True for the oracle, which scans all rows itself."""
    tells_costs: ClassVar[bool] = False
    """True where its Work tells expected and spent costs: one message goes as a batch then, and they are counted."""
    cost_ns: ClassVar[tuple[float, float] | None] = None
    """Rough nanoseconds a node and a candidate, to weigh one against the other. `auto` tries the methods that name
    them.
    """

    def expect(self, messages: MessageBatch) -> None:
        """A sample of the messages to come, told before `build`: terms beyond `store.n_terms` may be among theirs. Copy
        what you keep, and give it back as `expected`. Most methods make nothing of it.
        """

    @property
    def expected(self) -> MessageBatch | None:
        """What a method that takes this one's place should be told: what this one was told, or has seen since."""
        return None

    @abstractmethod
    def match(self, messages: MessageBatch) -> tuple[Hits, Work]: ...

    def match_point(self, terms: np.ndarray, x: float, y: float) -> tuple[np.ndarray, int, int]:
        """The owners of the rows that hold on one message at a point, in a new array, in any order; nodes; candidates.

        A method with a shorter way than a batch of one overrides it.
        """
        starts, place = np.array((0, len(terms)), np.int64), np.array(((x, y, x, y),), np.float64)
        hits, work = self.match(MessageBatch(_NO_IDS, terms, starts, place, _NO_TIMES))
        return self.store.owner_ids[hits.rows], work.nodes, work.candidates


def find_method(name: str) -> type[Method]:
    """The method of that name."""
    if name not in REGISTRY:
        raise UnknownMethod(f"no method '{name}'; there are {', '.join(sorted(REGISTRY))}")
    return REGISTRY[name]


def method_options(method: type[RowMethod]) -> dict[str, Any]:
    """The options of a method and their defaults: its constructor's parameters beyond those that every one has."""
    fixed = {"self", "store", "asked", "space"}
    parameters = inspect.signature(method.__init__).parameters.values()
    return {parameter.name: parameter.default for parameter in parameters if parameter.name not in fixed}


def check_options(method: type[RowMethod], options: dict[str, Any]) -> None:
    """Refuse by name what a method does not take."""
    allowed = method_options(method)
    for option in options:
        if option not in allowed:
            known = f"it takes {', '.join(allowed)}" if allowed else "it takes none"
            raise InvalidInput(f"method '{method.name}' has no option '{option}'; {known}")


def make_method(name: str, store: RowStore, space: Space, options: dict[str, Any]) -> Method:
    """An empty method over a store."""
    method = find_method(name)
    check_options(method, options)
    return method(store, space, **options)

"""The contract of a method, and the registry by (kind, name).

A method is an index over rows of one kind. A row is a sorted set of terms, one closed box, and the parameters of its
kind. The kind's exact test (row_params.py) says when a row is delivered; for kind `match`, when all its terms occur in
the message and its box overlaps the message's box. The edges:

* a point on the border is inside; touching boxes overlap; a box may have size 0;
* equal boxes, equal term sets and wholly equal rows are still different rows;
* a message may have no terms at all, or thousands; its terms are sorted, unique, and below `store.n_terms`;
* a row has at least one term, unless the method takes termless rows;
* `insert` brings rows that are already in the store; `remove` names rows that are still there;
* rows are numbered in the order in which they come; a number is not used twice;
* `expect` may come before `build`, with a sample of the messages to come. Most methods ignore it;
* `match` changes nothing, so that several threads may call it at once. Changes come one at a time, and no thread
  matches during a change unless the method allows it (`changes_in_place`);
* each delivered row is reported once per message, in any order; scored kinds report its exact score as well.

Further edges of kind `rank`:

* words alone can be enough: where threshold <= 1 - alpha a row may be delivered far outside its box;
* place alone can be enough: where threshold <= alpha a row may be delivered on a message that shares no term with it;
* threshold <= 0 holds on every message, everywhere, also on a message without terms;
* alpha 0 considers words only, alpha 1 place only; no bound may divide by alpha or by 1 - alpha;
* a row without terms, or whose terms weigh nothing, has all of its words: words = 1 on every message;
* a term may weigh 0, and terms may weigh the same;
* a score equal to the threshold is delivered: prune only where a bound (with SLACK) is below the threshold;
* a point message inside counts as full overlap and a range that only touches as none, so a range message can score less
  than a point within it; a row without area counts in full when touched;
* tokens that no row has are not among a message's terms, and change no score.

The rest is common to all methods and sits above, in subscription_set.py: expressions, NOT, exact shapes, rows without
terms, expiry, replacing, ids, order, threads and files.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Protocol, cast

import numpy as np

from nearcast.arguments import a_text
from nearcast.errors import InvalidInput, UnknownMethod, UnsupportedKind
from nearcast.geo.space import Space
from nearcast.matching.store import RowStore, StoreView
from nearcast.model import KINDS, NO_TIME, Hits, MessageBatch, Work

CHOOSER = "auto"
"""The method that stands for the best one. A kind without its own uses the kind's default method."""

_NO_IDS = np.zeros(1, np.int64)

REGISTRY: dict[tuple[str, str], type[Method]] = {}
"""Every imported method, by (kind, name)."""


class Source(NamedTuple):
    """Where methods come from that are not imported yet."""

    load: Callable[[str], None]  # imports the method of that name, if the source has it
    load_all: Callable[[], None]


SOURCES: list[Source] = []
"""Packages of methods. `nearcast.indexes` registers itself here."""


class Searcher(Protocol):
    """The part of a method that readers use."""

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]: ...


class PointSearcher(Searcher, Protocol):
    """A searcher that matches a single message faster than a batch of one."""

    def match_point(self, terms: np.ndarray, x: float, y: float, time: int) -> tuple[np.ndarray, int, int]:
        """The subscriptions of one message at a point, verified (a new array, ascending); nodes; candidates."""


class Method(ABC):
    """An index over rows of one kind. Subclasses that set `name` are registered under (kind, name)."""

    kind: ClassVar[str] = "match"
    name: ClassVar[str]
    paper: ClassVar[str]
    """The paper that describes the method (a page of docs/measurements/papers), or "baseline" or "nearcast"."""
    effort_ceiling: ClassVar[float] = 0.5
    """Largest share of (message, row) pairs that the method may compare on the checks' fixed workload."""
    rebuild_growth: float = 4.0
    """The method is rebuilt, with fresh term frequencies, when it has this many times the rows of its last build."""
    checked_with: ClassVar[tuple[str, ...]] = ("",)
    """Options that the checks run with, each like "crowded=2 young=8". List every option that takes another path."""
    known_gaps: ClassVar[dict[str, str]] = {}
    """Checks that the method fails, each with the reason. The checks expect the failure, and report if it ends."""
    changes_in_place: bool = True
    """A change writes to what `match` reads, so readers wait while rows change. Otherwise readers use the `searcher` of
    the last version: `insert` and `build` must leave it intact but for rows that are not in its store, and `remove` may
    only take out the named rows, which no reader wants any more."""
    takes_termless_rows: ClassVar[bool] = False
    """Rows without terms come to the method; otherwise they are stored apart."""
    reports_costs: ClassVar[bool] = False
    """Its Work has expected and spent costs: a single message goes as a batch, so that the costs are counted."""
    cost_ns: ClassVar[tuple[float, float] | None] = None
    """Rough nanoseconds per node and per candidate. `auto` tries the methods that state them."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" in cls.__dict__:
            known = REGISTRY.setdefault((cls.kind, cls.name), cls)
            if known is not cls and known.__module__ != cls.__module__:
                raise ValueError(f"method name '{cls.name}' is taken by {known.__module__}")
            REGISTRY[cls.kind, cls.name] = cls

    def __init__(self, store: RowStore, space: Space) -> None:
        self.store = store
        self.space = space

    @property
    def plan(self) -> str:
        """What does the work, in words: the method itself, or the method that it chose and why."""
        return self.name

    def expect(self, messages: MessageBatch) -> None:
        """Take a sample of the messages to come, before `build`. Its terms may be beyond `store.n_terms`.

        A method that uses the sample copies it and returns the copy as `expected`. Most methods ignore the sample.
        """
        return None

    @property
    def expected(self) -> MessageBatch | None:
        """The sample for a method that replaces this one: the sample given, or messages seen since."""
        return None

    @abstractmethod
    def build(self, rows: np.ndarray) -> None:
        """Index these rows (int32) and no others."""

    @abstractmethod
    def insert(self, rows: np.ndarray) -> None: ...

    @abstractmethod
    def remove(self, rows: np.ndarray) -> None: ...

    @abstractmethod
    def match(self, messages: MessageBatch) -> tuple[Hits, Work]: ...

    def searcher(self, store: StoreView) -> Searcher:
        """What the readers of one version search. `store` is the same version of the rows."""
        return self

    @property
    def needs_upkeep(self) -> bool:
        """Whether `keep_up` should be called soon. It is called as a change, between others."""
        return False

    def keep_up(self) -> None:
        """Do what need not be done at once."""
        return None

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes beyond the store's."""

    @abstractmethod
    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and a small header, enough for `restore`."""

    @abstractmethod
    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        """Take over a state. The arrays may be copy-on-write maps, and may be written to."""


def point_searcher(searcher: Searcher) -> PointSearcher | None:
    """The searcher, if it matches single messages by itself. (isinstance of a protocol takes 40 us.)"""
    return cast(PointSearcher, searcher) if hasattr(searcher, "match_point") else None


def point_message(terms: np.ndarray, x: float, y: float, time: int = NO_TIME) -> MessageBatch:
    """One message at a point, as a batch, without id."""
    starts, place = np.array((0, len(terms)), np.int64), np.array(((x, y, x, y),), np.float64)
    return MessageBatch(_NO_IDS, terms, starts, place, np.array((time,), np.int64))


def find_method(kind: str, name: str) -> type[Method]:
    """The method of that name for a kind; for `auto`, the kind's default method where it has no `auto`."""
    served = kinds_of(a_text(name, "method"))
    if (kind, name) in REGISTRY:
        return REGISTRY[kind, name]
    if not served:
        raise UnknownMethod(f"no method '{name}'; there are {', '.join(method_names())}")
    if name == CHOOSER and kind in KINDS:
        return find_method(kind, KINDS[kind].default_method)
    there = ", ".join(sorted({*method_names(kind), *((CHOOSER,) if kind in KINDS else ())}))
    raise UnsupportedKind(
        f"method '{name}' does not serve subscriptions of kind '{kind}'; those that do: {there or 'none'}"
    )


def kinds_of(name: str) -> tuple[str, ...]:
    """The kinds that a method serves: none if there is no such method. `auto` serves every kind."""
    if not any(known == name for _, known in REGISTRY):
        for source in SOURCES:
            source.load(name)
    served = tuple(kind for kind in KINDS if (kind, name) in REGISTRY)
    return tuple(KINDS) if served and name == CHOOSER else served


def method_names(kind: str | None = None) -> list[str]:
    """The names of all methods, or of those that serve a kind by themselves."""
    for source in SOURCES:
        source.load_all()
    return sorted({name for known, name in REGISTRY if kind in (None, known)})


def method_options(method: type[Method]) -> dict[str, Any]:
    """The options of a method and their defaults: its constructor's parameters beyond those that every one has."""
    fixed = {"self", "store", "space"}
    parameters = inspect.signature(method.__init__).parameters.values()
    return {parameter.name: parameter.default for parameter in parameters if parameter.name not in fixed}


def check_options(method: type[Method], options: dict[str, Any]) -> None:
    """Raise InvalidInput for options that a method does not take."""
    allowed = method_options(method)
    for option in options:
        if option not in allowed:
            known = f"it takes {', '.join(allowed)}" if allowed else "it takes none"
            raise InvalidInput(f"method '{method.name}' has no option '{option}'; {known}")


def make_method(name: str, store: RowStore, space: Space, options: dict[str, Any]) -> Method:
    """An empty method over a store, for the kind of the store's rows."""
    method = find_method(store.params.kind.name, name)
    check_options(method, options)
    return method(store, space, **options)

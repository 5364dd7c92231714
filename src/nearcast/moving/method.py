"""The contract of a moving method, and the registry by name.

A method indexes the rows of live subscriptions and the live messages, and keeps no results. It decides on terms and
boxes alone; NOT terms, exact shapes, subscriptions of several rows, ids, netting and expiry are common to all methods
and sit above, in moving_set.py. The edges:

* every row has at least one term; every message has the term EVERYWHERE, which stands for "no term required";
* a message's terms may be in no row yet, and a later row may bring them;
* boxes are closed; a message is a point or a box; a box may have size 0;
* a row or message that comes later must be found by everything that is there, and the other way round;
* `insert` brings rows that are in the store, `remove` names rows that are still there; a removed row's number may come
  back right after;
* `move` is given rows whose box changes; the method writes the new boxes to the store;
* `leave` names messages that are still live; afterwards they are dead. Their slots come back after `sweep` returns
  True, not earlier, so lists may be cleaned lazily.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from nearcast.arguments import a_text
from nearcast.errors import InvalidInput, UnknownMethod
from nearcast.geo.space import Space
from nearcast.matching.store import RowStore
from nearcast.moving.live_messages import LiveMessages
from nearcast.moving.pairs import Pairs, SignedPairs

EVERYWHERE = 0
"""The term that every message has. Rows without positive terms get it, so that methods need no other path for them."""

DEFAULT = "term-cells"
"""What `auto` stands for."""

DEAD_SHARE = 0.1
"""How many dead messages, for each live one, may stay in lists: 1.1 times as many are stored as live."""

REGISTRY: dict[str, type[MovingMethod]] = {}


class MovingMethod(ABC):
    """An index over rows and live messages. Subclasses that set `name` are registered."""

    name: ClassVar[str]
    paper: ClassVar[str]
    checked_with: ClassVar[tuple[dict[str, Any], ...]] = ({},)
    """Options that the checks run with. List every option that takes another path."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" in cls.__dict__:
            REGISTRY[cls.name] = cls

    def __init__(self, store: RowStore, messages: LiveMessages, space: Space) -> None:
        self.store = store
        self.messages = messages
        self.space = space

    @abstractmethod
    def build(self, rows: np.ndarray, slots: np.ndarray) -> None:
        """Index these rows and messages and no others."""

    @abstractmethod
    def insert(self, rows: np.ndarray) -> None: ...

    @abstractmethod
    def remove(self, rows: np.ndarray) -> None: ...

    @abstractmethod
    def find(self, rows: np.ndarray) -> Pairs:
        """The live messages on which each of these indexed rows holds."""

    @abstractmethod
    def arrive(self, slots: np.ndarray) -> Pairs:
        """Index new messages; return the rows that hold on each."""

    @abstractmethod
    def leave(self, slots: np.ndarray) -> Pairs:
        """The rows that hold on messages which are about to die."""

    def move(self, rows: np.ndarray, boxes: np.ndarray) -> SignedPairs:
        """Give each row (named once) a new box; return the pairs that begin or cease to hold."""
        before = self.find(rows)
        self.remove(rows)
        self.store.arrays.boxes[rows] = boxes
        self.insert(rows)
        return difference(before, self.find(rows))

    def sweep(self) -> bool:
        """Called after messages died. True if no list refers to a dead message any more."""
        return True

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes beyond those of the stores."""

    @property
    def report(self) -> dict[str, int]:
        """Counts that explain the method's work, by name."""
        return {}


def difference(before: Pairs, after: Pairs) -> SignedPairs:
    """+1 for pairs in `after` and not in `before`, -1 for the reverse. No pair is twice in one of them."""
    rows = np.concatenate([before.rows, after.rows])
    slots = np.concatenate([before.slots, after.slots])
    signs = np.repeat(np.array([-1, 1], np.int8), [len(before.rows), len(after.rows)])
    order = np.lexsort((slots, rows))
    rows, slots, signs = rows[order], slots[order], signs[order]
    is_alone = np.ones(len(rows), bool)
    is_same = (rows[1:] == rows[:-1]) & (slots[1:] == slots[:-1])
    is_alone[1:] &= ~is_same
    is_alone[:-1] &= ~is_same
    return SignedPairs(rows[is_alone], slots[is_alone], signs[is_alone])


def module_name(method: str) -> str:
    """The name of the module of a method that has one of its own."""
    return method.replace("+", "_plus").replace("-", "_")


def find_moving_method(name: str) -> type[MovingMethod]:
    """The method of that name; `auto` is the default."""
    name = DEFAULT if a_text(name, "method") == "auto" else name
    package = importlib.import_module("nearcast.moving")
    if name not in REGISTRY and module_name(name) in {each.name for each in pkgutil.iter_modules(package.__path__)}:
        importlib.import_module(f"nearcast.moving.{module_name(name)}")
    if name not in REGISTRY and name not in moving_methods():
        raise UnknownMethod(f"no moving method '{name}'; there are auto, {', '.join(moving_methods())}")
    return REGISTRY[name]


def moving_methods() -> list[str]:
    """The names of all moving methods."""
    package = importlib.import_module("nearcast.moving")
    for module in pkgutil.iter_modules(package.__path__):
        if module.name not in ("checks", "tracks"):
            importlib.import_module(f"nearcast.moving.{module.name}")
    return sorted(REGISTRY)


def make_moving_method(
    name: str, store: RowStore, messages: LiveMessages, space: Space, options: dict[str, Any]
) -> MovingMethod:
    """An empty method over both stores."""
    method = find_moving_method(name)
    fixed = {"self", "store", "messages", "space"}
    known = [each for each in inspect.signature(method.__init__).parameters if each not in fixed]
    for option in options:
        if option not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise InvalidInput(f"method '{method.name}' has no option '{option}'; {takes}")
    return method(store, messages, space, **options)

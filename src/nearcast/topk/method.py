"""The contract of a method of kind `top`, and the registry.

A method keeps, for every live row, the best k messages of the window, and reports each change. The edges:

* a message and a row must share a term; its weight may be 0, and the score may then be 0;
* alpha 0 considers words only, alpha 1 place only; no bound may divide by alpha or by 1 - alpha;
* messages are ordered by (score, arrival), newer first; equal messages are still different messages;
* one message is one step: messages that it pushes out of the window expire, the message arrives, then rows with too few
  messages are refilled. A step reports the difference between the best k before and after it, so that no pair is
  reported twice or in vain;
* the changes of a step are ordered by subscription id; for one subscription, messages that leave come first, then
  messages that enter, each best first;
* a batch is one step after another, also if it is larger than the window;
* a message without a known term takes its place in the window, and may cause expiries;
* rows may come and go between steps. A new row is filled from the window. A row number is used again right after.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np

import nearcast.topk.methods
from nearcast.errors import InvalidInput, UnknownMethod
from nearcast.geo.space import Space
from nearcast.model import Changes
from nearcast.tables.changes import NO_CHANGES
from nearcast.topk.incoming import IncomingMessages
from nearcast.topk.rows import TopRows
from nearcast.topk.score import Metric
from nearcast.topk.window import Window

AUTO = "auto"
DEFAULT_METHOD = "norm-lists"
"""The method that `auto` stands for: the one that measured best."""

METHODS: dict[str, type[TopMethod]] = {}
"""Every method of kind `top`, by name."""


class Results(NamedTuple):
    """The best messages of one row, best first."""

    arrivals: np.ndarray  # int64[n]
    scores: np.ndarray  # float64[n]


class TopMethod(ABC):
    """Rows and a window in; changes out. Subclasses that set `name` are registered under it."""

    name: ClassVar[str]
    paper: ClassVar[str]
    checked_with: ClassVar[tuple[str, ...]] = ("",)
    """Options that the checks run with, each like "refill=kmax"."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" in cls.__dict__:
            known = METHODS.setdefault(cls.name, cls)
            if known is not cls and known.__module__ != cls.__module__:
                raise ValueError(f"method name '{cls.name}' is taken by {known.__module__}")
            METHODS[cls.name] = cls

    def __init__(self, rows: TopRows, window: Window, metric: Metric, space: Space) -> None:
        self.space = space
        self.rows = rows
        self.window = window
        self.metric = metric
        self.weights = np.empty(0)
        """float64, by term, scaled so that the largest is 1; set before rows or messages with new terms come."""

    @abstractmethod
    def insert(self, numbers: np.ndarray) -> None:
        """Fill new rows from the window. They are in `rows` already."""

    @abstractmethod
    def remove(self, numbers: np.ndarray) -> None:
        """Forget rows that are still in `rows`."""

    def terms_moved(self, kept: np.ndarray) -> None:
        """The terms of all rows lie elsewhere; `kept` has the old position of each. Most methods do not mind."""
        return None

    @abstractmethod
    def publish(self, messages: IncomingMessages) -> Changes:
        """One step for each message."""

    @abstractmethod
    def expire_until(self, first: int, time: int) -> Changes:
        """One step without a message: messages before the arrival number `first` expire at this time."""

    @abstractmethod
    def renumber(self) -> None:
        """Subtract `window.RENUMBERING` from all arrival numbers, as the window has just done."""

    @abstractmethod
    def results(self, row: int) -> Results:
        """The best k of a row."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes beyond those of the rows and the window."""

    @property
    @abstractmethod
    def stats(self) -> dict[str, int]:
        """Work done since the method was made."""

    @abstractmethod
    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and a small header, enough for `restore`. Rows and window are saved apart."""

    @abstractmethod
    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        """Continue from a state, over the rows and the window of that moment."""


def find_method(name: str) -> type[TopMethod]:
    """The method of that name."""
    _load_all()
    name = DEFAULT_METHOD if name == AUTO else name
    if name not in METHODS:
        raise UnknownMethod(f"no method '{name}' for kind 'top'; there are {', '.join(method_names())}")
    return METHODS[name]


def method_names() -> list[str]:
    """The names of all methods, and `auto`."""
    _load_all()
    return sorted([AUTO, *METHODS])


def _load_all() -> None:
    for module in pkgutil.iter_modules(nearcast.topk.methods.__path__):
        importlib.import_module(f"{nearcast.topk.methods.__name__}.{module.name}")


def method_options(method: type[TopMethod]) -> dict[str, Any]:
    """The options of a method and their defaults: its constructor's parameters beyond those that every one has."""
    fixed = {"self", "rows", "window", "metric", "space"}
    parameters = inspect.signature(method.__init__).parameters.values()
    return {parameter.name: parameter.default for parameter in parameters if parameter.name not in fixed}


def check_options(method: type[TopMethod], options: dict[str, Any]) -> None:
    """Raise InvalidInput for options that a method does not take."""
    allowed = method_options(method)
    for option in options:
        if option not in allowed:
            known = f"it takes {', '.join(allowed)}" if allowed else "it takes none"
            raise InvalidInput(f"method '{method.name}' has no option '{option}'; {known}")


def difference(ids: int, before: Results, after: Results, window: Window, time: int) -> Changes:
    """The changes of one subscription between two lists: what leaves, then what enters, each best first.

    A message whose score differs leaves and enters.
    """
    old = set(zip(before.arrivals.tolist(), before.scores.tolist(), strict=True))
    new = set(zip(after.arrivals.tolist(), after.scores.tolist(), strict=True))
    leaves = [pair not in new for pair in zip(before.arrivals.tolist(), before.scores.tolist(), strict=True)]
    enters = [pair not in old for pair in zip(after.arrivals.tolist(), after.scores.tolist(), strict=True)]
    arrivals = np.concatenate([before.arrivals[leaves], after.arrivals[enters]])
    if len(arrivals) == 0:
        return NO_CHANGES
    signs = np.repeat(np.array([-1, 1], np.int8), [sum(leaves), sum(enters)])
    scores = np.concatenate([before.scores[leaves], after.scores[enters]])
    n = len(arrivals)
    return Changes(window.ids_of(arrivals), np.full(n, ids), signs, scores, np.full(n, time))

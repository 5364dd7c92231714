"""Subscriptions of kind `top` of an engine: one `TopK` for each window and largest distance in use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.arrays.arrow import stream_bytes, stream_table
from nearcast.geo.space import Space
from nearcast.matching.subscription_set import part_of
from nearcast.model import Change, Id, in_order
from nearcast.text.analyser import Analyser
from nearcast.topk.score import ABSENT, score_row
from nearcast.topk.topk import TopK
from nearcast.topk.window_size import WindowSize


class Wanted(NamedTuple):
    """A subscription of kind `top`, validated."""

    tokens: tuple[str, ...]
    x: float
    y: float
    k: int
    alpha: float
    window: WindowSize
    max_dist: float | None


class BestLists:
    """The best messages of each subscription. A window begins, empty, with the first subscription that wants it."""

    def __init__(self, space: Space, analyser: Analyser, weights: Any) -> None:
        self._bounds = space.bounds if space.planar else None
        self._analyser, self._weights = analyser, weights
        self._tops: dict[tuple[WindowSize, float | None], TopK] = {}
        self._home: dict[Id, tuple[WindowSize, float | None]] = {}

    def __len__(self) -> int:
        return len(self._home)

    @property
    def nbytes(self) -> int:
        return sum(top.nbytes for top in self._tops.values())

    def __contains__(self, subscription: Id) -> bool:
        return subscription in self._home

    def subscribe(self, number: Id, wanted: Wanted) -> None:
        """Add or replace a subscription. Its list begins with the best messages of its window."""
        key = (wanted.window, wanted.max_dist)
        top = self._tops.get(key) or self._new_top(wanted)
        columns = {"id": number, "tokens": list(wanted.tokens), "x": wanted.x, "y": wanted.y}
        top.subscribe([columns | {"k": wanted.k, "alpha": wanted.alpha}])
        self._tops[key] = top
        if self._home.get(number, key) != key:
            self.unsubscribe([number])
        self._home[number] = key

    def state(self, ids: pa.DataType) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and a header, enough for `restore`. `ids` is the type of the ids."""
        keys, arrays = list(self._tops), dict[str, np.ndarray]()
        windows = []
        for at, key in enumerate(keys):
            own, header = self._tops[key].state()
            arrays |= {f"{at}.{name}": array for name, array in own.items()}
            windows.append({"size": list(key[0]), "max_dist": key[1], "top": header})
        homes = {"id": pa.array(list(self._home), ids), "at": [keys.index(key) for key in self._home.values()]}
        return arrays | {"homes": stream_bytes(pa.table(homes))}, {"windows": windows}

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        """Continue from a state."""
        for at, window in enumerate(header["windows"]):
            key = (WindowSize(*window["size"]), window["max_dist"])
            self._tops[key] = TopK.restored(part_of(arrays, str(at)), window["top"])
        keys = list(self._tops)
        self._home = {row["id"]: keys[row["at"]] for row in stream_table(arrays["homes"]).to_pylist()}

    def _new_top(self, wanted: Wanted) -> TopK:
        options: dict[str, Any] = {"max_dist": wanted.max_dist, "analyser": self._analyser}
        return TopK(None, wanted.window, weights=self._weights, space=self._bounds, **options)

    def unsubscribe(self, numbers: Sequence[Id]) -> list[Change]:
        """Forget known subscriptions; a change -1 for each message of their lists. Unused windows are forgotten."""
        changes: list[Change] = []
        for key in {self._home[number] for number in numbers}:
            top = self._tops[key]
            changes += _changes(top.unsubscribe([number for number in numbers if self._home[number] == key]))
            if len(top) == 0:
                del self._tops[key]
        for number in numbers:
            del self._home[number]
        return in_order(changes)

    def publish(self, messages: pa.Table) -> list[list[Change]]:
        """The changes of each message: columns id, tokens, x, y, time. Time does not go backwards."""
        steps: list[list[Change]] = [[] for _ in range(messages.num_rows)]
        for top in self._tops.values():
            incoming = top.read_messages(messages, extra="ignore")
            for i, step in enumerate(steps):
                found = top.publish_read(incoming.part(i, i + 1))
                ids = (top.message_names.python(found.message_ids), top.names.python(found.subscription_ids))
                step += [Change(*each) for each in zip(*ids, found.signs.tolist(), found.scores.tolist(), strict=True)]
        return [in_order(step) for step in steps]

    def advance(self, now: int) -> list[Change]:
        """Let time pass for windows of a period."""
        changes: list[Change] = []
        for top in self._tops.values():
            if top.window.size.is_period:
                changes += _changes(top.advance(now))
        return in_order(changes)

    def results(self, number: Id) -> pa.Table:
        """The list of a subscription, best first: a table (message, score)."""
        return self._tops[self._home[number]].results(number)

    def compared(self, number: Id, message: pa.Table) -> tuple[float | None, float]:
        """(score of one message, or None where no token is shared; least score that enters the list as it is now)."""
        top, best = self._tops[self._home[number]], self.results(number)["score"].to_pylist()
        incoming = top.read_messages(message, extra="ignore")
        values = np.full(len(top.vocabulary), ABSENT)
        values[incoming.terms] = incoming.values
        row = top.row_of(number)
        score = float(score_row(top.rows.arrays, row, top.metric, values, *incoming.places[0].tolist()))
        least = best[-1] if len(best) >= top.rows.arrays.ks[row] else 0.0
        return None if score == ABSENT else score, least


def _changes(table: pa.Table) -> list[Change]:
    columns = (table[name].to_pylist() for name in ("message", "subscription", "change", "score"))
    return [Change(*each) for each in zip(*columns, strict=True)]

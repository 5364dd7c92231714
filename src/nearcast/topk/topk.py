"""`nc.TopK`: the best k messages of a sliding window for every subscription, with tables in and tables out."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.arrays.arrow import list_parts
from nearcast.arrays.growable import grown
from nearcast.arrays.ragged import distinct
from nearcast.errors import InvalidInput
from nearcast.geo.html_summary import html_summary, memory_text, sampled
from nearcast.geo.space import Space
from nearcast.matching.subscription_set import part_of
from nearcast.model import Changes
from nearcast.storage.bundles import read_bundle, write_bundle
from nearcast.tables import Dialect, Id, Names, OnBad, idf_weights, read_weights
from nearcast.tables.changes import NO_CHANGES, changes_table, joined_changes
from nearcast.tables.faults import WithRejects, require_accepted
from nearcast.tables.ids import one_id
from nearcast.tables.input_checks.file_errors import naming_file
from nearcast.tables.messages import Extra, MessageColumns, read_extra
from nearcast.tables.moments import Time, read_moment
from nearcast.tables.read import as_arrow
from nearcast.text.analyser import Analyser
from nearcast.text.vocabulary import Vocabulary
from nearcast.topk.incoming import IncomingMessages
from nearcast.topk.live_terms import part_of_vocabulary, renumber_terms, terms_to_keep
from nearcast.topk.method import Results, TopMethod, check_options, difference, find_method
from nearcast.topk.reading import (
    formatted_time,
    incoming_messages,
    read_top_messages,
    read_top_subscriptions,
    window_size_of,
)
from nearcast.topk.rows import TopBatch, TopRows
from nearcast.topk.score import X, Y, metric_of
from nearcast.topk.window import Window

CHUNK = 1 << 16
"""Messages that are copied into the window at a time."""

FORGET_EVERY = 1 << 16
"""Messages between two checks for unused tokens."""

CONSTANTS = ("cells_per_row",)
"""Figures in `stats` that are no counts."""

TOPK_FORMAT = ("nearcast-topk", 3)

_NO_SUBSCRIPTIONS = pa.table(
    {"id": pa.array([], pa.int64()), "tokens": pa.array([], pa.list_(pa.string()))}
    | {name: pa.array([], pa.float64()) for name in ("x", "y")}
)


class TopK(WithRejects):
    """Subscriptions of kind `top` over one window of messages.

    `window` is a number of messages, a timedelta, or a text such as "90min"; without it the table's column `window`
    counts. `weights` are the tokens' weights: a table (token, weight) or a Vocabulary; the default is ln(1 + N/df) over
    these first subscriptions. Weights never change; later tokens weigh as much as the heaviest. `space` makes
    coordinates planar. The options are `max_dist=`, `analyser=`, `on_bad=`, `extra=` (unknown columns that
    may be there) and those of the method.
    """

    def __init__(
        self,
        subscriptions: Any = None,
        window: Any = None,
        method: str = "auto",
        weights: Any = None,
        space: Sequence[float] | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        self.analyser = Analyser.of(options.pop("analyser", None))
        on_bad: OnBad = options.pop("on_bad", "raise")
        extra: Extra = options.pop("extra", "raise")
        table = _NO_SUBSCRIPTIONS if subscriptions is None else as_arrow(subscriptions)
        self.space = Space.of(space)
        self.metric = metric_of(self.space, _checked_distance(options.pop("max_dist", None)))
        self.names, self.message_names = Names("top-k"), Names("window")
        self._start(method, TopRows(self.names), Window(window_size_of(table, window)), options)
        self.vocabulary = Vocabulary()
        by_term = None if weights is None else read_weights(weights, self.vocabulary)
        with naming_file(subscriptions):
            batch, read = read_top_subscriptions(table, self.vocabulary, self._dialect(on_bad, extra))
        self.rejects = read.rejects
        require_accepted(read.rejects, table.num_rows, "subscriptions")
        self._weights = _scaled(idf_weights(read, self.vocabulary) if by_term is None else by_term)
        self._n_fixed = len(self._weights)
        self._n_published = self._n_checked = 0
        self._replace(batch)

    def _start(self, name: str, rows: TopRows, window: Window, options: dict[str, Any]) -> None:
        """Begin with an empty method over rows and a window."""
        method = find_method(name)
        check_options(method, options)
        self.rows, self.window, self.options = rows, window, options
        self._past_work: dict[str, int] = {}
        self.method: TopMethod = method(rows, window, self.metric, self.space, **options)

    def _dialect(self, on_bad: OnBad, extra: Extra) -> Dialect:
        return Dialect(self.analyser, self.space, on_bad, ids=self.names, extra=read_extra(extra))

    def __len__(self) -> int:
        return len(self.rows)

    def __contains__(self, subscription: Any) -> bool:
        return bool((self.rows.rows_of(self.names.find_any(subscription)) >= 0).any())

    def row_of(self, subscription: Id) -> int:
        """The row of a subscription, or -1."""
        return int(self.rows.rows_of(self.names.find(one_id(subscription)))[0])

    def __repr__(self) -> str:
        contents = f"{len(self):,} subscriptions, {len(self.window):,} messages in a window of {self.window.size}"
        return f"<nearcast top-k: {contents}, method {self.method.name}, {memory_text(self.nbytes)}>"

    def _repr_html_(self) -> str:
        """What notebooks show: counts, method, memory, and a map of where the subscriptions are."""
        figures: dict[str, object] = {"subscriptions": len(self), "messages in the window": len(self.window)}
        figures |= {"window": str(self.window.size), "method": self.method.name, "memory": memory_text(self.nbytes)}
        points = self.rows.arrays.numbers[sampled(self.rows.live_rows())][:, [X, Y, X, Y]]
        return html_summary("nearcast top-k", figures | {"ids": self.names.words}, points, self.space)

    # -- messages

    def publish(self, messages: Any, *, on_bad: OnBad = "raise", extra: Extra = "raise") -> pa.Table:
        """The changes that messages cause, one message after another, as a changes table.

        In a window of a period every message needs a time, and time does not go backwards. A bad row raises before
        anything is changed.
        """
        read, tokens = self._read(messages, on_bad, extra)
        good, parts, start = read.good_rows, list[Changes](), 0
        while start < len(good) or not parts:
            self._forget_tokens()
            stop = min(len(good), start + FORGET_EVERY - self._n_published % FORGET_EVERY)
            incoming = self._weighed(read, good[start:stop], tokens.slice(start, stop - start))
            parts.append(self.publish_read(incoming))
            start = stop
        return self.changes_table(joined_changes(parts))

    def changes_table(self, changes: Changes) -> pa.Table:
        """Changes with the ids that were given."""
        return changes_table(changes, self.message_names, self.names)

    def read_messages(self, messages: Any, *, on_bad: OnBad = "raise", extra: Extra = "raise") -> IncomingMessages:
        """A messages table as terms with values, for `publish_read`."""
        read, tokens = self._read(messages, on_bad, extra)
        self._forget_tokens()
        return self._weighed(read, read.good_rows, tokens)

    def _read(self, messages: Any, on_bad: OnBad, extra: Extra) -> tuple[MessageColumns, pa.Array]:
        """(columns, tokens of the good rows). Nothing changes if a bad row raises."""
        self.rejects = None
        with naming_file(messages):
            read, tokens = read_top_messages(messages, self._dialect(on_bad, extra), self.window.size, self.window.now)
        if len(read.good_rows):
            self.message_names.require(read.ids.type)
        self.rejects = read.rejects
        require_accepted(read.rejects, len(read.boxes), "messages")
        return read, tokens

    def _weighed(self, read: MessageColumns, rows: np.ndarray, tokens: pa.Array) -> IncomingMessages:
        """Some rows of a table as terms with values; `tokens` are those of these rows."""
        self.vocabulary.add(list_parts(tokens)[0])
        self._fit_weights()
        ids = self.message_names.add(read.ids.take(rows))
        return incoming_messages(read, ids, rows, tokens, self.vocabulary, self._weights)

    def publish_read(self, incoming: IncomingMessages) -> Changes:
        """The changes of messages that `read_messages` has read. Nothing may be published in between."""
        parts = []
        for start in range(0, incoming.size, CHUNK):
            part = incoming.part(start, min(start + CHUNK, incoming.size))
            if self.window.stop + part.size > self.window.last_arrival:
                self.window.renumber()
                self.method.renumber()
            parts.append(self.method.publish(part))
            if self.window.size.is_period:
                self.window.now = int(part.times[-1])
        self._n_published += incoming.size
        return joined_changes(parts)

    def advance(self, now: Time) -> pa.Table:
        """The changes that the passing of time causes: the window of a period ends at `now`."""
        if not self.window.size.is_period:
            raise InvalidInput(f"a window of {self.window.size} does not depend on time; publish instead")
        time = read_moment(now)
        if time < self.window.now:
            shown = f"{formatted_time(time)} is before {formatted_time(self.window.now)}"
            raise InvalidInput(f"{shown}, the newest time so far; time does not go backwards", column="time")
        changes = self.method.expire_until(self.window.first_after(time), time)
        self.window.now = time
        return self.changes_table(changes)

    # -- subscriptions

    def subscribe(self, subscriptions: Any, *, on_bad: OnBad = "raise", extra: Extra = "raise") -> pa.Table:
        """Add subscriptions, filled from the window; the same id again replaces. Returns the changes.

        The changes of a replaced subscription are the difference between its old and its new best messages.
        """
        self.rejects = None
        table = as_arrow(subscriptions)
        window_size_of(table, self.window.size)
        with naming_file(subscriptions):
            batch, read = read_top_subscriptions(table, self.vocabulary, self._dialect(on_bad, extra))
        self.rejects = read.rejects
        require_accepted(read.rejects, table.num_rows, "subscriptions")
        changes = self.changes_table(self._replace(batch))
        self._forget_names()
        return changes

    def unsubscribe(self, ids: Any) -> pa.Table:
        """Forget subscriptions, by an id or several; an unknown id is no error. Returns a change -1 for each message of
        their lists.
        """
        gone = distinct(self.names.find_all(ids))
        before = self._lists(gone)
        self._remove(gone)
        changes = self.changes_table(self._differences(gone, before))
        self._forget_names()
        return changes

    def results(self, subscription: Id) -> pa.Table:
        """The best messages of a subscription, best first: a table (message, score)."""
        row = self.row_of(subscription)
        if row < 0:
            raise InvalidInput(f"no subscription {subscription!r}", column="id")
        best = self.method.results(row)
        ids = self.message_names.arrow(self.window.ids_of(best.arrivals))
        return pa.table({"message": ids, "score": pa.array(best.scores)})

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays: subscriptions, window, method, vocabulary and weights."""
        parts = (self.rows, self.window, self.method, self.vocabulary, self._weights, self.names, self.message_names)
        return int(sum(part.nbytes for part in parts))

    @property
    def stats(self) -> dict[str, int]:
        """Counts since this object was made: messages, and the work of the method."""
        past = self._past_work
        return {"messages": self._n_published} | {
            name: count if name in CONSTANTS else count + past.get(name, 0) for name, count in self.method.stats.items()
        }

    # -- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to a folder, whole or not at all. `open_topk` continues from there."""
        write_bundle(path, TOPK_FORMAT, *self.state())

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and a header, enough for `restored`."""
        parts = {"rows": self.rows.state(), "window": self.window.state(), "method": self.method.state()}
        parts["vocabulary"] = (self.vocabulary.arrays(), self.vocabulary.header())
        parts |= {"names": _state_of(self.names), "message_names": _state_of(self.message_names)}
        arrays = {f"{part}.{name}": array for part, (own, _) in parts.items() for name, array in own.items()}
        header = {
            "method": self.method.name,
            "options": self.options,
            "space": self.space.header(),
            "max_dist": self.metric.max_dist,
            "analyser": self.analyser.header(),
            "published": self._n_published,
            "checked": self._n_checked,
            "fixed_terms": self._n_fixed,
            "parts": {part: own for part, (_, own) in parts.items()},
        }
        return arrays | {"weights": self._weights}, header

    @classmethod
    def restored(cls, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> TopK:
        """The TopK of a state. It keeps the arrays."""
        made, parts = cls.__new__(cls), header["parts"]
        made.analyser = Analyser.from_header(header["analyser"])
        made.space = Space.from_header(header["space"])
        made.metric = metric_of(made.space, header["max_dist"])
        made.vocabulary = Vocabulary.from_arrays(part_of(arrays, "vocabulary"), parts["vocabulary"])
        WithRejects.__init__(made)
        made._n_fixed = header["fixed_terms"]
        made._n_published, made._n_checked = header["published"], header["checked"]
        made.names = Names.from_arrays(part_of(arrays, "names"), parts.get("names"), "top-k")
        made.message_names = Names.from_arrays(part_of(arrays, "message_names"), parts.get("message_names"), "window")
        rows = TopRows.restored(part_of(arrays, "rows"), parts["rows"], made.names)
        window = Window.restored(part_of(arrays, "window"), parts["window"])
        made._start(header["method"], rows, window, header["options"])
        made._weights = arrays["weights"]
        made._fit_weights()
        made.method.restore(part_of(arrays, "method"), parts["method"])
        return made

    # -- inside

    def _replace(self, batch: TopBatch) -> Changes:
        """Add subscriptions, after removing those of the same ids."""
        self._fit_weights()
        before = self._lists(batch.ids)
        self._remove(batch.ids)
        kept = self.rows.make_room(batch)
        if kept is not None:
            self.method.terms_moved(kept)
        self.method.insert(self.rows.add(batch, self._weights))
        return self._differences(np.sort(batch.ids), before)

    def _remove(self, ids: np.ndarray) -> None:
        numbers = self.rows.rows_of(ids)
        numbers = numbers[numbers >= 0]
        if len(numbers):
            self.method.remove(numbers)
            self.rows.remove(numbers)

    def _lists(self, ids: np.ndarray) -> dict[int, Results]:
        """The lists of those subscriptions that are live."""
        if len(self.window) == 0:
            return {}
        numbers = self.rows.rows_of(ids)
        pairs = zip(ids.tolist(), numbers.tolist(), strict=True)
        return {number: self.method.results(row) for number, row in pairs if row >= 0}

    def _differences(self, ids: np.ndarray, before: dict[int, Results]) -> Changes:
        """The changes from the lists `before` to the present ones, by ascending id."""
        after = self._lists(ids)
        if not before and not after:
            return NO_CHANGES
        none = Results(np.empty(0, np.int64), np.empty(0))
        ids = ids[self.names.order(ids)]
        lists = [(number, before.get(number, none), after.get(number, none)) for number in ids.tolist()]
        return joined_changes([difference(*each, self.window, self.window.now) for each in lists])

    def _forget_names(self) -> None:
        """Forget the ids that neither a subscription nor the window has, if they are many."""
        if self.names.has_unused(len(self)):
            self.names = self.rows.names = self.names.only(self.rows.arrays.ids[self.rows.live_rows()])
        if self.message_names.has_unused(len(self.window)):
            self.message_names = self.message_names.only(self.window.live_ids())

    def _forget_tokens(self) -> None:
        """Forget tokens that neither a subscription nor the window uses, if they are many.

        Tokens with a weight of their own stay: those of `weights=`, or of the first subscriptions. The check comes
        after every FORGET_EVERY messages, whatever the batches are, and the method starts again from its state.
        """
        self._forget_names()
        if self._n_published // FORGET_EVERY == self._n_checked // FORGET_EVERY:
            return
        self._n_checked, n_terms = self._n_published, len(self.vocabulary)
        kept = terms_to_keep(self.rows, self.window, n_terms, self._n_fixed)
        if kept is None:
            return
        state, past = self.method.state(), self.stats
        renumber_terms(self.rows, self.window, kept, n_terms)
        self.vocabulary = part_of_vocabulary(self.vocabulary, kept)
        self._weights = self._weights[kept]
        self._start(self.method.name, self.rows, self.window, self.options)
        self._past_work = past
        self._fit_weights()
        self.method.restore(*state)

    def _fit_weights(self) -> None:
        """Give new terms the largest weight."""
        if len(self.vocabulary) <= len(self._weights):
            self.method.weights = self._weights
            return
        heaviest = float(self._weights.max()) if len(self._weights) else 1.0
        self._weights = grown(self._weights, len(self.vocabulary), fill=heaviest)
        self.method.weights = self._weights


def open_topk(path: str | os.PathLike[str], verify: bool = True) -> TopK:
    """A saved TopK. It continues with exactly the changes that the saved one would give; the files do not change."""
    return TopK.restored(*read_bundle(path, TOPK_FORMAT, verify))


def _state_of(names: Names) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    return names.arrays(), names.header()


def _checked_distance(max_dist: Any) -> float | None:
    if max_dist is None:
        return None
    is_number = isinstance(max_dist, int | float | np.number) and not isinstance(max_dist, bool)
    if not is_number or not (math.isfinite(max_dist) and max_dist > 0):
        raise InvalidInput(f"max_dist is {max_dist!r}; it is a positive number, the distance at which place counts 0")
    return float(max_dist)


def _scaled(weights: np.ndarray) -> np.ndarray:
    """Weights whose largest is 1, unless all are 0."""
    heaviest = weights.max() if len(weights) else 0.0
    return np.asarray(weights / heaviest if heaviest > 0.0 else weights, np.float64)

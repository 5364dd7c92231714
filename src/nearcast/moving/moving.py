"""`Moving`: tables of subscriptions, messages and places in; tables of changes out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.arguments import a_flag
from nearcast.arrays.arrow import list_parts, string_buffers
from nearcast.arrays.ragged import distinct, starts_of
from nearcast.errors import InvalidInput
from nearcast.geo.html_summary import html_summary, memory_text, sampled
from nearcast.geo.space import Space
from nearcast.matching.subscription_set import part_of
from nearcast.model import NEVER, NO_TIME, Changes, MessageBatch
from nearcast.moving.message_sources import MessageSources, Words
from nearcast.moving.method import EVERYWHERE
from nearcast.moving.moving_set import Arrivals, MovingSet, Subscribed
from nearcast.moving.safe_regions import SafeRegions, Where
from nearcast.moving.saved_state import moving_state, restored_set
from nearcast.moving.subscribers import moving_rows
from nearcast.storage.bundles import read_bundle, write_bundle
from nearcast.tables import Dialect, Id, IdColumn, Names, OnBad, as_arrow, read_subscriptions
from nearcast.tables.attributes import all_attributes_of
from nearcast.tables.changes import changes_table
from nearcast.tables.faults import WithRejects, require_accepted
from nearcast.tables.ids import id_column, one_id
from nearcast.tables.input_checks.file_errors import naming_file
from nearcast.tables.messages import Extra, read_extra, read_message_columns
from nearcast.tables.moments import Time, read_moment
from nearcast.text.analyser import Analyser
from nearcast.text.derived.atoms import MARK
from nearcast.text.vocabulary import Vocabulary

MOVING_FORMAT = ("nearcast-moving", 2)

NOT_FOLLOWING = "subscription {} is no circle and no point, so it cannot follow a point; give its new box"

_SMALLEST_VOCABULARY = 4096
"""Words of messages that are gone are kept until so many have come."""


class Moving(WithRejects):
    """Subscriptions that move among live messages. Every call is one step and returns its changes, exactly.

    A message is live from its publication until `expires`; the clock moves only by `advance` and by `now=`. A change is
    +1 where a subscription begins to match a live message and -1 where it ceases to: by a move, by expiry, or because
    one of both is replaced or goes. The changes of a step are net, and sorted by (message, subscription).
    """

    def __init__(
        self,
        subscriptions: Any = None,
        method: str = "auto",
        space: Sequence[float] | None = None,
        *,
        analyser: Analyser | str | None = None,
        safe: bool = False,
        where: Where | None = None,
        extra: Extra = "raise",
        **options: Any,
    ) -> None:
        """`space` makes coordinates planar. `extra` names unknown columns that the table may have. The options are
        those of the method.

        With `safe`, clients report only when they leave their safe region: see `must_report`. `where` is called with
        the ids (int64[n]) of clients whose place a new message makes necessary, and returns their boxes (float64[n,4]).
        The largest safe radius is `reach`, 1 % of the space unless given.
        """
        super().__init__()
        reach = options.pop("reach", None)
        self.analyser = Analyser.of(analyser)
        self.vocabulary = Vocabulary()
        self.names, self.message_names = Names("moving set"), Names("set of live messages")
        self._set = MovingSet(method, Space.of(space), options)
        self._sources = MessageSources()
        self._next_check = _SMALLEST_VOCABULARY
        self._safe: SafeRegions | None = None
        if a_flag(safe, "safe"):
            self._safe = SafeRegions(self._set, reach or 0.01 * _width(self._set.space), self._where(where))
        elif reach is not None or where is not None:
            raise InvalidInput("reach and where belong to safe=True")
        if subscriptions is not None:
            self.subscribe(subscriptions, extra=extra)

    def _where(self, where: Where | None) -> Where | None:
        """The caller's function, as one of the numbers of ids."""
        return None if where is None else lambda numbers: where(self.names.array(numbers))

    def __len__(self) -> int:
        return len(self._set.subscribers)

    def __contains__(self, subscription: Any) -> bool:
        return bool(self._set.subscribers.are_known(self.names.find_any(subscription)).any())

    def are_known(self, ids: Any) -> np.ndarray:
        """bool[n]: whether there are subscriptions with these ids."""
        return self._set.subscribers.are_known(self.names.find(_ids_of(ids)))

    def follow_points(self, ids: Any) -> np.ndarray:
        """bool[n]: whether the region of each subscription can follow a point: it is a circle or a point."""
        numbers = self.names.find(_ids_of(ids))
        return np.isin(numbers, self._set.subscribers.tied_to_places(numbers), invert=True)

    def __repr__(self) -> str:
        contents = f"{len(self):,} subscriptions, {self.n_messages:,} live messages"
        return f"<nearcast moving: {contents}, method {self.method}, {memory_text(self.nbytes)}>"

    def _repr_html_(self) -> str:
        """What notebooks show: counts, method, memory, and a map of where the subscriptions are."""
        figures: dict[str, object] = {"subscriptions": len(self), "live messages": self.n_messages}
        figures |= {"clock": self.now, "method": self.method, "memory": memory_text(self.nbytes)}
        store = self._set.subscribers.store
        boxes = store.arrays.boxes[sampled(store.live_rows())]
        return html_summary("nearcast moving", figures | {"ids": self.names.words}, boxes, self.space)

    @property
    def method(self) -> str:
        """The name of the method that does the work."""
        return self._set.method.name

    @property
    def space(self) -> Space:
        return self._set.space

    @property
    def n_messages(self) -> int:
        """The number of live messages."""
        return len(self._set.messages)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, vocabulary included."""
        names = self.names.nbytes + self.message_names.nbytes
        return self._set.nbytes + self.vocabulary.nbytes + self._sources.nbytes + names

    @property
    def report(self) -> dict[str, int]:
        """Counts that explain the work of the method, by name."""
        return self._set.method.report

    @property
    def now(self) -> datetime | None:
        """The clock; None until it is first set."""
        return None if self._set.now == NO_TIME else np.datetime64(self._set.now, "us").item().replace(tzinfo=UTC)

    # -- steps

    def publish(
        self, messages: Any, now: Time | None = None, *, on_bad: OnBad = "raise", extra: Extra = "raise"
    ) -> pa.Table:
        """Let messages arrive; return the changes. A message whose id is live replaces the older message.

        The column `expires` says until when a message lives; without it, for ever. A message whose `expires` is not
        after the clock never lives.
        """
        arrivals, words, attributes = self._read_messages(messages, on_bad, extra)
        changes = self._table(self._steps.step(self._moment(now), arrivals))
        self._keep(words, attributes)
        return changes

    def move(self, ids: Any, places: Any, now: Time | None = None) -> pa.Table:
        """Give subscriptions new places; return the changes. Of an id that occurs twice, the last place counts.

        `places` is float64[n, 4] (xmin, ymin, xmax, ymax: the new region is this box), or float64[n, 2] (x, y: circles
        and points keep their size and follow).
        """
        return self._table(self._steps.step(self._moment(now), moved=self._moves(ids, places)))

    def advance(self, now: Time) -> pa.Table:
        """Set the clock; return the changes. What expires at `now` is gone."""
        return self._table(self._steps.step(read_moment(now)))

    def step(
        self,
        now: Time | None = None,
        messages: Any = None,
        ids: Any = None,
        places: Any = None,
        *,
        on_bad: OnBad = "raise",
        extra: Extra = "raise",
    ) -> pa.Table:
        """Advance, move and publish in one step, of which only the net changes are returned."""
        moment, moved = self._moment(now), None if ids is None else self._moves(ids, places)
        if messages is None:
            return self._table(self._steps.step(moment, None, moved))
        arrivals, words, attributes = self._read_messages(messages, on_bad, extra)
        changes = self._table(self._steps.step(moment, arrivals, moved))
        self._keep(words, attributes)
        return changes

    def subscribe(
        self, subscriptions: Any, now: Time | None = None, *, on_bad: OnBad = "raise", extra: Extra = "raise"
    ) -> pa.Table:
        """Add subscriptions of kind `match`; the same id again replaces. Return the changes."""
        self.rejects = None
        dialect = Dialect(self.analyser, self._set.space, on_bad, ("match",), ids=self.names, extra=read_extra(extra))
        n_derived, table = self.vocabulary.n_derived, as_arrow(subscriptions)
        with naming_file(subscriptions):
            read = read_subscriptions(table, self.vocabulary, dialect)
        self.rejects = read.rejects
        require_accepted(read.rejects, table.num_rows, "subscriptions")
        if self.vocabulary.n_derived > n_derived and self.n_messages:
            found = self._sources.term_sets(self.vocabulary, self._set.messages.are_live)
            self._steps.give_terms(found.ids, *_with_everywhere(found.terms, found.starts))
        new = Subscribed(read.ids, moving_rows(read.rows(), read.shapes.size), read.shapes)
        return self._table(self._steps.subscribe(new, self._moment(now)))

    def unsubscribe(self, ids: Any, now: Time | None = None) -> pa.Table:
        """Forget subscriptions, by an id or several; return the changes. An unknown id is an error."""
        return self._table(self._steps.unsubscribe(distinct(self._known(ids)), self._moment(now)))

    def results(self, subscription: Id) -> pa.Table:
        """The live messages that a subscription matches now: a table with a column `message`, in ascending order."""
        found = self._set.results(int(self._known(one_id(subscription))[0]))
        return pa.table({"message": self.message_names.arrow(found[self.message_names.order(found)])})

    def must_report(self, ids: Any, boxes: Any) -> np.ndarray:
        """bool[n]: whether clients at these boxes are outside their safe regions and must call `move`."""
        if self._safe is None:
            raise InvalidInput("without safe=True every client reports every move")
        known, places = self._known(ids), _places(boxes)
        if places.shape != (len(known), 4):
            raise InvalidInput(f"{len(known)} ids and places of the shape {places.shape}; give one box for each id")
        return self._safe.must_report(known, places)

    @property
    def traffic(self) -> dict[str, int]:
        """With safe=True: reports of clients, recalls of clients, and changes pushed to clients."""
        return {} if self._safe is None else self._safe.traffic

    @property
    def _steps(self) -> MovingSet | SafeRegions:
        return self._set if self._safe is None else self._safe

    def _known(self, ids: Any) -> np.ndarray:
        """int64[n]: the numbers of ids, all of which are subscribed."""
        given = _ids_of(ids)
        numbers = self.names.find(given)
        known = self._set.subscribers.are_known(numbers)
        if not known.all():
            row = int((~known).argmax())
            reason = f"no subscription {given.python([row])[0]!r}; subscribe it first"
            raise InvalidInput(reason, row=row, column="id")
        return numbers

    def _moves(self, ids: Any, places: Any) -> tuple[np.ndarray, np.ndarray]:
        """(numbers of subscribed ids, their places)."""
        numbers, to = self._known(ids), _places(places)
        if to.shape[1] == 2 and len(tied := self._set.subscribers.tied_to_places(numbers)):
            raise InvalidInput(NOT_FOLLOWING.format(repr(self.names.python(tied[:1])[0])), column="id")
        return numbers, to

    def _table(self, changes: Changes) -> pa.Table:
        """The changes table of a step, sorted by (message, subscription). Ids that are gone may be forgotten then."""
        names, messages = self.names, self.message_names
        if not (names.is_ordered and messages.is_ordered):
            order = np.lexsort((names.ranks(changes.subscription_ids), messages.ranks(changes.message_ids)))
            changes = Changes(*(column[order] for column in changes))
        table = changes_table(changes, messages, names)
        if names.has_unused(len(self)):
            self.names = names.only(self._set.subscribers.known_ids())
        if messages.has_unused(self.n_messages):
            self.message_names = messages.only(self._set.messages.ids[self._set.messages.slots()])
        return table

    def _moment(self, now: Time | None) -> int | None:
        return None if now is None else read_moment(now)

    def _read_messages(self, source: Any, on_bad: OnBad, extra: Extra) -> tuple[Arrivals, Words, pa.Table | None]:
        """(the good messages, their words in order, their attributes)."""
        self.rejects = None
        table, allowed = as_arrow(source), read_extra(extra)
        dialect = Dialect(self.analyser, self._set.space, on_bad, extra=allowed).with_extra(self.vocabulary.attributes)
        with naming_file(source):
            read = read_message_columns(table, dialect, reads_expires=True)
        self.rejects = read.rejects
        require_accepted(read.rejects, table.num_rows, "messages")
        good, tokens, attributes = read.good_rows, read.tokens, all_attributes_of(table)
        ids = self.message_names.add(read.ids.take(good))
        if len(read.rejects):
            tokens = tokens.take(pa.array(good))
            attributes = None if attributes is None else attributes.take(pa.array(good))
        flat, starts = list_parts(tokens)
        flat = _without_marks(flat)
        words = Words(ids, self.vocabulary.add(flat), starts)  # a later subscription may name any of them
        terms, starts = self.vocabulary.term_sets_of(words.terms, flat, starts, attributes)
        expires = np.asarray(read.expires)[good]
        batch = MessageBatch(ids, *_with_everywhere(terms, starts), read.boxes[good], read.times[good])
        return Arrivals(batch, np.where(expires == NO_TIME, NEVER, expires)), words, attributes

    def _keep(self, words: Words, attributes: pa.Table | None) -> None:
        """Keep what messages came with, and forget words."""
        self._sources.add(words, attributes, self._set.messages.are_live)
        self._forget_words()

    def _forget_words(self) -> None:
        """Number the words anew when half of them are in no live subscription or message any more."""
        if len(self.vocabulary) < self._next_check:
            return
        is_used = self._set.used_terms(len(self.vocabulary) + 1)[1:]  # without EVERYWHERE
        self.vocabulary.mark_members(is_used)
        if 2 * np.count_nonzero(is_used) <= len(self.vocabulary):
            self.vocabulary, numbers = self.vocabulary.part(is_used)
            self._sources.renumber(numbers, self._set.messages.are_live)
            self._steps.rebuild(np.concatenate([[EVERYWHERE], numbers + 1]).astype(np.int32))
        self._next_check = max(_SMALLEST_VOCABULARY, 2 * len(self.vocabulary))

    # -- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write subscriptions, live messages, safe regions and the clock to a folder, whole or not at all."""
        write_bundle(path, MOVING_FORMAT, *self.state())

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and a header, enough for `restored`."""
        arrays, header = moving_state(self._set)
        arrays |= {f"sources.{name}": array for name, array in self._sources.state(self._set.messages.are_live).items()}
        if self._safe is not None:
            own, header["safe"] = self._safe.state()
            arrays |= {f"safe.{name}": array for name, array in own.items()}
        arrays |= {f"vocabulary.{name}": array for name, array in self.vocabulary.arrays().items()}
        header |= {"vocabulary": self.vocabulary.header(), "analyser": self.analyser.header()}
        for part, names in (("names", self.names), ("message_names", self.message_names)):
            arrays |= {f"{part}.{name}": array for name, array in names.arrays().items()}
            header[part] = names.header()
        return arrays, header

    @classmethod
    def open(cls, path: str | os.PathLike[str], verify: bool = True, *, where: Where | None = None) -> Moving:
        """A saved `Moving`, which continues exactly where it was. Changes stay in this process.

        With safe regions, give `where` again: a function is not saved.
        """
        return cls.restored(*read_bundle(path, MOVING_FORMAT, verify), where)

    @classmethod
    def restored(cls, arrays: dict[str, np.ndarray], header: dict[str, Any], where: Where | None = None) -> Moving:
        """The `Moving` of a state."""
        made = cls(analyser=Analyser.from_header(header["analyser"]))
        made.vocabulary = Vocabulary.from_arrays(part_of(arrays, "vocabulary"), header["vocabulary"])
        made._set = restored_set(arrays, header)
        made._sources = MessageSources.restored(part_of(arrays, "sources"))
        made.names = Names.from_arrays(part_of(arrays, "names"), header.get("names"), made.names.what)
        own = part_of(arrays, "message_names")
        made.message_names = Names.from_arrays(own, header.get("message_names"), made.message_names.what)
        if header.get("safe") is not None:
            made._safe = SafeRegions.restored(made._set, made._where(where), part_of(arrays, "safe"), header["safe"])
        elif where is not None:
            raise InvalidInput("reach and where belong to safe=True")
        return made


def _ids_of(ids: Any) -> IdColumn:
    return ids if isinstance(ids, IdColumn) else id_column(ids)


def _without_marks(tokens: pa.Array) -> pa.Array:
    """The tokens, U+FFFF written twice: no token of a message is an atom, and no subscription can name such a token."""
    if b"\xef\xbf\xbf" not in string_buffers(tokens)[0].tobytes():
        return tokens
    return pc.replace_substring(tokens, MARK, MARK * 2)


def _with_everywhere(terms: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Terms shifted by one, with EVERYWHERE as the first term of each message."""
    longer = starts_of(np.diff(starts) + 1)
    out = np.full(longer[-1], EVERYWHERE, np.int32)
    is_term = np.ones(longer[-1], bool)
    is_term[longer[:-1]] = False
    out[is_term] = terms + 1
    return out, longer


def _width(space: Space) -> float:
    """The larger side of a space."""
    xmin, ymin, xmax, ymax = space.bounds
    return max(xmax - xmin, ymax - ymin)


def _places(places: Any) -> np.ndarray:
    """float64[n,4] or float64[n,2]."""
    try:
        values = np.atleast_2d(np.asarray(places, np.float64))
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput("places are numbers: xmin, ymin, xmax, ymax (or x, y) for each id") from None
    if values.size == 0:
        return np.empty((0, 4))
    if values.ndim != 2 or values.shape[1] not in (2, 4):
        raise InvalidInput(f"places have 4 columns (a box) or 2 (a point), not the shape {values.shape}")
    return np.ascontiguousarray(values)

"""The index: tables in, matches out, over any method and every kind."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import nearcast.indexes  # noqa: F401  registers where methods come from
from nearcast.arguments import (
    a_count,
    a_flag,
    an_instance,
    checked_attributes,
)
from nearcast.arrays.checked import checked_column
from nearcast.arrays.ragged import distinct
from nearcast.engine.payload.sources import Sources
from nearcast.engine.published import Attributes, Published, box_of, checked_words, naming_file, require_point
from nearcast.errors import InvalidInput, UnknownId
from nearcast.geo.html_summary import html_summary, memory_text, sampled
from nearcast.geo.shapes.columns import checked_shapes
from nearcast.geo.space import Space
from nearcast.matching.intake import checked_rows
from nearcast.matching.method import find_method, method_options
from nearcast.matching.row_params import NO_WEIGHTS
from nearcast.matching.subscription_set import SubscriptionSet, part_of
from nearcast.matching.versions import Versions
from nearcast.model import KINDS, MATCH, NO_TIME, Found, Id, Kind, MessageBatch, Work
from nearcast.tables import (
    Dialect,
    Names,
    OnBad,
    Subscriptions,
    as_arrow,
    idf_weights,
    read_subscriptions,
)
from nearcast.tables.faults import WithRejects, require_accepted
from nearcast.tables.ids.names import UNKNOWN
from nearcast.tables.messages import Extra, Messages, read_extra, read_messages
from nearcast.tables.moments import Time, present, read_moment
from nearcast.tables.weights import weights_table
from nearcast.text.analyser import Analyser
from nearcast.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from nearcast.engine.explain import Explanation

_NONE = np.empty(0, np.int64)

FEWEST_TOKENS = 10_000
"""Unused tokens are not looked for in a smaller vocabulary."""


class Index(WithRejects):
    """Subscriptions, ready to be matched. Made by `build_index` and `open_index`.

    Threads may share an index. Changes take turns. A match sees every change that had returned before it began, and
    a change that is being made either whole or not at all. It waits for a change only if the method changes in place.
    """

    def __init__(
        self,
        plain: SubscriptionSet,
        vocabulary: Vocabulary,
        analyser: Analyser,
        weights: np.ndarray | None = None,
        others: Sequence[SubscriptionSet] = (),
        names: Names | None = None,
        sources: Sources | None = None,
    ) -> None:
        super().__init__()
        others = [*an_instance(others, tuple | list, "others")]
        for each in (plain, *others):
            an_instance(each, SubscriptionSet, "plain")
        an_instance(vocabulary, Vocabulary, "vocabulary")
        an_instance(analyser, Analyser, "analyser")
        self._sets = {each.kind.name: each for each in (plain, *others)}  # kind `match` is always there
        self.vocabulary = vocabulary
        self.names = Names() if names is None else names
        """The ids of the subscriptions: outside as they were given, inside as numbers."""
        self._n_names = 0  # those that were in use when they were last looked at
        self._sources = sources  # None if the subscriptions are not kept as they were given
        self._never = _NONE  # int64[n]  ascending numbers of the subscriptions without rows
        self.analyser = analyser
        self._weights = weights  # by term; None until the first subscriptions fix them
        self._tokens_to_check = FEWEST_TOKENS
        self.versions = plain.versions
        """Changes and readers of all kinds."""
        self._saved: tuple[str, str, int] | None = None  # path, generation, and the version of the content it has
        self._published: Published
        self.versions.after_publishing(self._publish)
        self._publish()

    def _publish(self) -> None:
        live = self._live_sets
        is_scored = any(each.kind.is_scored for each in live)
        self._published = Published(
            self.vocabulary, self.names, self._sources, tuple(each.snapshot for each in live), is_scored
        )

    def __len__(self) -> int:
        return sum(len(each) for each in self._sets.values()) + len(self._never)

    @property
    def never_matching(self) -> list[Id]:
        """The ids of subscriptions whose expression can never hold, such as `a NOT a`, in their order."""
        with self.versions.pause():
            return self.names.python(self._never[self.names.order(self._never)])

    def __repr__(self) -> str:
        never = f" ({len(self._never):,} of which can never match)" if len(self._never) else ""
        contents = f"{len(self):,} subscriptions{never}, method {self.method}"
        return f"<nearcast index: {contents}, {memory_text(self.nbytes)}>"

    def _repr_html_(self) -> str:
        """What notebooks show: counts, method, memory, and a map of where the subscriptions are."""
        with self.versions.pause():
            figures = {"subscriptions": len(self)}
            live = self._live_sets
            figures |= {f"of kind {each.kind.name}": len(each) for each in live} if len(live) > 1 else {}
            figures |= {"that can never match": len(self._never)} if len(self._never) else {}
            shown = figures | {"method": self.method, "memory": memory_text(self.nbytes)}
            shown |= {"subscriptions as given": memory_text(self.source_nbytes), "ids": self.names.words}
            return html_summary("nearcast index", shown, self.drawn_boxes(), self.space)

    def drawn_boxes(self) -> np.ndarray:
        """float64[n,4]: boxes of the subscriptions, or of an even sample of them."""
        return np.concatenate([each.store.arrays.boxes[sampled(each.store.live_rows())] for each in self._live_sets])

    def __contains__(self, id: Any) -> bool:
        return len(self._known(id)) > 0

    def __getitem__(self, id: Id) -> dict[str, Any]:
        """The subscription as it was given: its columns and values, without nulls. Raises UnknownId."""
        sources = self._kept_sources()
        found = self._known(id)
        row = sources.one(int(found[0])) if len(found) else None
        if row is None:
            raise UnknownId(f"no subscription {id!r}", column="id")
        return row

    def __iter__(self) -> Iterator[Id]:
        """The ids of all subscriptions, in their order."""
        return iter(self.names.python(self._numbers()))

    def subscriptions(self) -> pa.Table:
        """All subscriptions as they were given, in the order of their ids: the columns of all tables together."""
        with self.versions.pause():
            return self._kept_sources().take(self._numbers())

    def explain(
        self,
        subscription: Id,
        text: str = "",
        *,
        at: Sequence[float],
        tokens: Sequence[str] | None = None,
        attributes: Mapping[str, Any] | None = None,
        now: Time | None = None,
    ) -> Explanation:
        """Why this message, at a point (x, y) or a box, would or would not match this subscription now, or at `now`."""
        from nearcast.engine.payload.explained import message_row

        return self.explain_message(subscription, message_row(text, at, tokens, attributes), now)

    def explain_message(self, subscription: Id, message: Any, now: Time | None = None) -> Explanation:
        """`explain`, of a messages table with one row."""
        from nearcast.engine.explain import with_score
        from nearcast.engine.payload.explained import explain_row

        with self.versions.pause():
            row, number = self[subscription], self._known(subscription)
            moment, dialect = present() if now is None else read_moment(now), self.message_dialect("raise")
            found = explain_row(row, self._kept_sources().take(number), as_arrow(message), dialect, moment)
            scored = self.subscriptions_of(KINDS[row.get("kind", MATCH.name)])
            if scored is None or not scored.kind.is_scored:
                return found.explanation
            score, least = scored.score(int(number[0]), self.message(found.tokens, found.box, NO_TIME))
            return with_score(found.explanation, score, least, not found.is_box)

    def _known(self, id: Any) -> np.ndarray:
        """int64[1]: the number of a subscription's id; int64[0] if there is none."""
        with self.versions.pause():
            number = self.names.find_any(id)
            if self._sources is not None:
                return number[self._sources.has(number)]
            is_there = len(number) and any(len(each.owners.rows(number)) for each in self._sets.values())
            return number if is_there or (len(number) and number[0] in self._never) else number[:0]

    def _numbers(self) -> np.ndarray:
        """int64[n]: the numbers of all ids, in the order of the ids."""
        with self.versions.pause():
            rows = [each.live_ids() for each in self._sets.values()]
            numbers = distinct(np.sort(np.concatenate([*rows, self._never])))
            return numbers[self.names.order(numbers)]

    def _kept_sources(self) -> Sources:
        if self._sources is None:
            raise InvalidInput("the subscriptions were not kept; build the index with keep_source=True")
        return self._sources

    def subscriptions_of(self, kind: Kind = MATCH) -> SubscriptionSet | None:
        """The live subscriptions of a kind, below tables and strings; None while there are none, except for `match`."""
        found = self._sets.get(kind.name)
        return found if found is not None and (kind is MATCH or len(found)) else None

    @property
    def matcher(self) -> SubscriptionSet:
        """The live subscriptions of kind `match`, below tables and strings."""
        return self._sets[MATCH.name]

    @property
    def is_scored(self) -> bool:
        """Whether matches have a score: some subscriptions are of a scored kind."""
        return self._published.is_scored

    @property
    def _live_sets(self) -> list[SubscriptionSet]:
        return [each for each in self._sets.values() if each.kind is MATCH or len(each)]

    @property
    def method(self) -> str:
        return self.matcher.method.name

    @property
    def plan(self) -> str:
        """What does the work, in words: the method itself, or the method that `auto` chose and why."""
        first, *others = self._live_sets
        return "; ".join([first.method.plan, *(f"kind {each.kind.name}: {each.method.plan}" for each in others)])

    @property
    def stats(self) -> Work:
        """Work done since the index was made: nodes visited, candidates compared, matches."""
        return reduce(Work.plus, (each.stats for each in self._sets.values()))

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays that matching uses; vocabulary, weights and ids included, `source_nbytes` not."""
        weights = 0 if self._weights is None else int(self._weights.nbytes)
        return sum(each.nbytes for each in self._sets.values()) + self.vocabulary.nbytes + weights + self.names.nbytes

    @property
    def source_nbytes(self) -> int:
        """Bytes of the subscriptions as they were given: 0 with keep_source=False."""
        return 0 if self._sources is None else self._sources.nbytes

    @property
    def space(self) -> Space:
        return self.matcher.space

    def match(
        self,
        messages: Any,
        *,
        threads: int = 1,
        on_bad: OnBad = "raise",
        keep: Sequence[str] | None = None,
        now: Time | None = None,
        extra: Extra = "raise",
    ) -> pa.Table:
        """All (message, subscription) pairs, sorted, as a matches table.

        `keep` names further columns: `"text"` of the table that has it, `"message.text"` or `"subscription.text"` where
        both do; `"distance_km"`, from the message to the centre of the subscription's circle or box; and `"words"`, the
        words of the message that the subscription asks for.

        A subscription that has expired at the time of a message does not match it. A message without a time has the
        time `now`: the present, if it is not given.

        Ids are of the types that went in. Messages without a column `id` have their row numbers, with a warning
        `MadeIds`. There is a column `score`, null for unscored kinds, while some subscriptions are of a scored kind
        (`rank`). Further columns of messages are attributes; one that looks like a misspelt column is an error unless
        `keep`, a filter, or `extra` names it, or extra="ignore". With on_bad="skip" bad rows are in `rejects`, and
        there is an error if all rows are bad, and a warning `MostlyRejected` if more than half are.
        """
        return self.match_at(messages, NO_TIME, threads=threads, on_bad=on_bad, keep=keep, now=now, extra=extra)

    def match_at(
        self,
        messages: Any,
        time: int,
        *,
        threads: int = 1,
        on_bad: OnBad = "raise",
        keep: Sequence[str] | None = None,
        now: Time | None = None,
        extra: Extra = "raise",
    ) -> pa.Table:
        """`match`, where no message is earlier than this time, in microseconds since 1970."""
        from nearcast.engine.payload.keep import DISTANCE, WORDS, keep_names  # an engine of single messages needs none
        from nearcast.engine.payload.result import kept_columns, matches_with

        self.rejects = None
        table, threads = as_arrow(messages), a_count(threads, "threads")
        keep = keep_names(keep)
        is_computed = DISTANCE in keep or WORDS in keep
        dialect = self.message_dialect(on_bad, extra, keep)
        moment = read_moment(now) if now is not None else present() if time == NO_TIME else time
        changes = self.versions.pause() if is_computed else nullcontext()
        with naming_file(messages), changes, self.versions.read():
            published = self._published
            read = read_messages(table, published.vocabulary, dialect)
            self.rejects = read.rejects
            require_accepted(read.rejects, table.num_rows, "messages")
            kept = kept_columns(keep, table, published, self.space)
            batch = read.batch.at_present(moment)
            found = published.match(batch._replace(times=np.maximum(batch.times, time)), threads)
            result = matches_with(kept, read, found, published, self._sets.values())
        self._keep_up()
        return result

    def matches(self, read: Messages, found: Found, keep: Sequence[str] | None = None) -> pa.Table:
        """The matches table of what `match_batch` has found for the batch of `read_message_table`."""
        from nearcast.engine.payload.result import kept_columns, matches_with

        with self.versions.pause():
            published = self._published
            kept = kept_columns(keep, read.table, published, self.space)
            return matches_with(kept, read, found, published, self._sets.values())

    def match_batch(self, batch: MessageBatch, threads: int = 1) -> Found:
        """The matches of messages that `read_messages` has read. Ids are numbers of `names`."""
        with self.versions.read():
            found = self._published.match(batch, threads)
        self._keep_up()
        return found

    def match_one(
        self, tokens: Iterable[str], x: float, y: float, attributes: Attributes = None, *, now: Time | None = None
    ) -> np.ndarray:
        """The sorted ids of the subscriptions that one message at a point concerns. A string is analysed as text.

        An array of int64, or of strings or UUIDs as objects. `attributes` are what filters compare. The time of the
        message is `now`: the present, if it is not given.
        """
        require_point(x, y, self.space)
        time = present() if now is None else read_moment(now)
        names, found = self.match_point(checked_words(tokens), x, y, time, checked_attributes(attributes))
        return found if names.is_plain else names.sorted_array(found)

    def match_point(
        self, tokens: Iterable[str], x: float, y: float, time: int = NO_TIME, attributes: Attributes = None
    ) -> tuple[Names, np.ndarray]:
        """(names, numbers of `match_one`) without validation, at a time in microseconds since 1970."""
        reader = self.versions.enter()
        try:
            published = self._published
            terms = published.terms(tokens, self.analyser, attributes)
            ids = published.snapshots[0].match_one(terms, x, y, time)
            for each in published.snapshots[1:]:
                ids = np.sort(np.concatenate((ids, each.match_one(terms, x, y, time))))
        finally:
            self.versions.leave(reader)
        self._keep_up()
        return published.names, ids

    def match_message(
        self, tokens: Iterable[str], place: Sequence[float], time: int, attributes: Attributes = None
    ) -> tuple[Names, np.ndarray, np.ndarray | None]:
        """(names, numbers of ids, scores) of one message at a valid point or box. Scores are None while no kind is
        scored.
        """
        with self.versions.read():
            published = self._published
            terms = published.terms(tokens, self.analyser, attributes)
            found = published.match(published.message(terms, box_of(place), time))
        self._keep_up()
        return published.names, found.ids, found.scores

    def message(self, tokens: Iterable[str], box: np.ndarray, time: int) -> MessageBatch:
        """One message, given by tokens or text, as the terms of this index."""
        published = self._published
        return published.message(published.terms(tokens, self.analyser), box, time)

    def _keep_up(self) -> None:
        for each in self._sets.values():
            each.keep_up()

    def read_messages(self, messages: Any, *, on_bad: OnBad = "raise") -> MessageBatch:
        """A messages table as the terms and places of this index. The ids of the batch sort as those of the table."""
        return self.read_message_table(messages, on_bad=on_bad).batch

    def read_message_table(
        self, messages: Any, *, on_bad: OnBad = "raise", now: Time | None = None, extra: Extra = "ignore"
    ) -> Messages:
        """The same, with the ids and the rejects. Messages without a time have the time `now`, else the present."""
        self.rejects = None
        with naming_file(messages):
            read = read_messages(messages, self.vocabulary, self.message_dialect(on_bad, extra))
        self.rejects = read.rejects
        return read._replace(batch=read.batch.at_present(present() if now is None else read_moment(now)))

    def insert(self, subscriptions: Any, *, on_bad: OnBad = "raise", extra: Extra = "raise") -> None:
        """Add subscriptions; the same id again replaces. Bad rows raise before anything is changed.

        An unknown column raises too, unless the subscriptions so far have it, `extra` names it, or extra="ignore".
        """
        self.rejects = None
        table = as_arrow(subscriptions)
        with naming_file(subscriptions), self.versions.change():  # reading adds tokens to the vocabulary
            read = read_subscriptions(table, self.vocabulary, self.subscription_dialect(on_bad, extra))
            self.rejects = read.rejects
            require_accepted(read.rejects, table.num_rows, "subscriptions")
            self.insert_read(read)

    def insert_read(self, read: Subscriptions) -> None:
        """Add subscriptions that were read with this index's vocabulary. What is wrong raises before a change."""
        for kind in read.batches:
            if kind not in self._sets:
                find_method(kind, self.method)  # raises for a kind that the method does not serve
        shapes, numbers = checked_shapes(read.shapes), checked_column(read.ids, np.int64, "id")
        batches = {kind: checked_rows(batch, KINDS[kind], shapes.size) for kind, batch in read.batches.items()}
        with self.versions.change():
            if self._weights is None and len(read.ids):
                self._weights = idf_weights(read, self.vocabulary)
            self.remove_numbers(numbers)  # of every kind: also ids whose new expression can never hold and has no row
            if read.n_with_rows < len(read.ids):
                self._never = np.union1d(self._never, read.ids_without_rows())
            for kind, batch in batches.items():
                if batch.size:
                    self._set_of(KINDS[kind]).insert_checked(batch, shapes)
            if self._sources is not None and read.table is not None:
                self._sources = self._sources.with_rows(numbers, read.table)

    def _set_of(self, kind: Kind) -> SubscriptionSet:
        """The set of a kind, created on first use with those of the method's options that the kind's method takes."""
        if kind.name not in self._sets:
            known = method_options(find_method(kind.name, self.method))
            options = {name: value for name, value in self.matcher.options.items() if name in known}
            weights = NO_WEIGHTS if self._weights is None else self._weights
            made = SubscriptionSet(self.method, self.space, options, kind, weights, self.versions)
            self._sets = self._sets | {kind.name: made}  # a new dict: readers may be looking at the old one
        return self._sets[kind.name]

    def remove(self, ids: Any) -> None:
        """Forget subscriptions by id, or by a list or an array of ids; an unknown id is no error."""
        with self.versions.change():
            numbers = self.names.find_all(ids)
            numbers = numbers if self.names.is_plain else numbers[numbers != UNKNOWN]
            self.remove_numbers(numbers)
            if self._sources is not None:
                self._sources = self._sources.without(numbers)
            self.drop_unused_names()

    def remove_numbers(self, numbers: np.ndarray) -> None:
        """Forget subscriptions by the numbers of their ids."""
        with self.versions.change():
            for each in self._sets.values():
                each.remove(numbers)
            if len(self._never):
                self._never = np.setdiff1d(self._never, numbers)

    def drop_unused_names(self) -> None:
        """Give back the names of ids that are gone, once there are more of them than of others."""
        if self.names.has_unused(max(len(self), self._n_names)):
            with self.versions.change():
                self.names = self.names.only(self._numbers())
                self._n_names = len(self.names)

    def drop_unused_tokens(self) -> None:
        """Give back the tokens that no subscription uses, once there are more of them than of others.

        Terms get other numbers: messages that were read before cannot be matched any more. Weighed tokens are kept.
        """
        if len(self.vocabulary) < self._tokens_to_check:
            return
        with self.versions.change():
            weights = NO_WEIGHTS if self._weights is None else self._weights
            is_used = np.zeros(len(self.vocabulary), bool)
            is_used[: len(weights)] = True
            for each in self._sets.values():
                is_used[each.store.terms_in_use()] = True
            self.vocabulary.mark_members(is_used)
            if 2 * np.count_nonzero(is_used) < len(is_used):
                vocabulary, numbers = self.vocabulary.part(is_used)
                for each in self._sets.values():
                    each.renumber_terms(numbers, weights)
                self.vocabulary = vocabulary
            self._tokens_to_check = max(FEWEST_TOKENS, 2 * len(self.vocabulary))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index, whole or not at all, to a folder: a path, or a URL such as s3://bucket/index."""
        from nearcast.storage.index_folder import save_index  # most engines are never saved

        with self.versions.pause():
            url, generation = save_index(path, *self.state())
            self._saved = (url, generation, self.versions.number)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by path if the index is saved and unchanged since then, else by value.

        By path the other process maps the saved index, and refuses another one that is at the path by then.
        """
        if self._saved is not None and self._saved[2] == self.versions.number:
            from nearcast.engine.saved.saved_index import reopened_index

            return reopened_index, self._saved[:2]
        with self.versions.pause():
            arrays, header = self.state()
            return Index.restored, ({name: np.array(array) for name, array in arrays.items()}, header)

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """(arrays, header): all that the index consists of. The arrays are not copied."""
        arrays = {f"vocabulary.{name}": array for name, array in self.vocabulary.arrays().items()}
        arrays |= {f"names.{name}": array for name, array in self.names.arrays().items()}
        parts: dict[str, Any] = {"vocabulary": self.vocabulary.header(), "analyser": self.analyser.header()}
        parts["names"] = self.names.header()
        if self._sources is not None:
            arrays |= {f"sources.{name}": array for name, array in self._sources.arrays().items()}
            parts["sources"] = True
        if self._weights is not None:
            arrays["weights"] = self._weights
        if len(self._never):
            arrays["never"] = self._never
        for each in self._sets.values():
            name = each.kind.name
            own, parts[name] = each.state()
            arrays |= {f"{name}.{key}": array for key, array in own.items()}
        return arrays, parts

    @classmethod
    def restored(cls, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> Index:
        """The index of a state. It keeps the arrays."""
        analyser = Analyser.from_header(header["analyser"])
        vocabulary = Vocabulary.from_arrays(part_of(arrays, "vocabulary"), header["vocabulary"])
        sets, versions = list[SubscriptionSet](), Versions()
        for kind in KINDS.values():
            if kind.name in header:
                own = part_of(arrays, kind.name)
                sets.append(SubscriptionSet.restored(own, header[kind.name], kind, versions))
        names = Names.from_arrays(part_of(arrays, "names"), header.get("names"))
        sources = Sources.from_arrays(part_of(arrays, "sources")) if header.get("sources") else None
        made = cls(sets[0], vocabulary, analyser, arrays.get("weights"), sets[1:], names, sources)
        made._never = arrays.get("never", _NONE)
        return made

    def weights_table(self) -> pa.Table:
        """The weights of tokens, as a weights table."""
        return weights_table(NO_WEIGHTS if self._weights is None else self._weights, self.vocabulary)

    def subscription_dialect(self, on_bad: OnBad, extra: Extra = "raise") -> Dialect:
        """How subscriptions are read. What the index keeps may be there."""
        dialect = Dialect(self.analyser, self.space, on_bad, ids=self.names, extra=read_extra(extra))
        return dialect.with_extra(() if self._sources is None else self._sources.column_names)

    def message_dialect(self, on_bad: OnBad, extra: Extra = "ignore", keep: Sequence[str] = ()) -> Dialect:
        """How messages are read."""
        allowed = Dialect(self.analyser, self.space, on_bad, makes_ids=True, extra=read_extra(extra))
        return allowed.with_extra(name.removeprefix("message.") for name in keep)


def build_index(
    subscriptions: Any,
    method: str = "auto",
    weights: Any = None,
    space: Sequence[float] | None = None,
    *,
    messages: Any = None,
    keep_source: bool = True,
    extra: Extra = "raise",
    **options: Any,
) -> Index:
    """An index over a subscriptions table.

    `weights` are the tokens' weights for kind `rank`: a table (token, weight) or a Vocabulary; the default is
    ln(1 + N/df) over the subscriptions. `space` makes coordinates planar. `messages` is a sample of the messages to
    come, for methods that plan by it (`auto`). With `keep_source`, the index keeps the table, for `index[id]` and for
    `keep=` of `match`; a table of Arrow is not copied. A column that nearcast does not know is an error, unless `extra`
    names it (a list) or extra="ignore". The options are `analyser=`, `on_bad=` and those of the method.
    """
    from nearcast.engine.build_part import build_part

    a_flag(keep_source, "keep_source")
    with naming_file(subscriptions):
        table = as_arrow(subscriptions)
        how = {"messages": messages, "keep_source": keep_source, "extra": extra, **options}
        index = build_part(table, method, weights, space, **how)
        require_accepted(_rejects_of(index), table.num_rows, "subscriptions")
    return index


def _rejects_of(index: Index) -> pa.Table:
    assert index.rejects is not None
    return index.rejects

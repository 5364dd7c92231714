"""The router: which shards store a subscription, and which shards a message visits.

Messages and subscriptions are routed by the same tree and the same keys (see areas.py), so a message meets every
subscription that it matches in at least one shard. Subscriptions are stored whole, so any such shard answers correctly.
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.arrays.arrow import list_parts, string_buffers
from nearcast.arrays.intmap import IntMap, IntMapArrays
from nearcast.arrays.ragged import distinct
from nearcast.geo.space import Space
from nearcast.model import RANK, RowBatch
from nearcast.sharding.normalise import served_dialect
from nearcast.sharding.routing.areas import NO_KEY, Areas, Rows, assign_rows, hash_tokens, rarest_keys
from nearcast.sharding.routing.keyword_shards import are_keywords, file_by_keyword
from nearcast.sharding.routing.rank_routes import file_ranked_rows
from nearcast.sharding.routing.visits import Messages, route_messages
from nearcast.sharding.weights import Weights
from nearcast.storage.bundles import read_bundle, write_bundle
from nearcast.tables import Dialect, OnBad, idf_weights, read_subscriptions
from nearcast.tables.faults import rejected_positions
from nearcast.tables.ids import IdColumn
from nearcast.tables.messages import read_message_columns
from nearcast.text.analyser import Analyser
from nearcast.text.vocabulary import Vocabulary

FORMAT = ("nearcast-router", 2)
_MAPS = ("frequencies", "placements", "keys")


class Routed(NamedTuple):
    """The shards that messages visit."""

    rows: np.ndarray  # int64[k]  of the messages table, ascending
    shards: np.ndarray  # int32[k]  ascending within a row
    ids: IdColumn  # of all rows of the table, good and bad
    tokens: pa.Array | None  # of all rows; None where the text was not read
    rejects: pa.Table


class Assigned(NamedTuple):
    """The shards that store subscriptions."""

    rows: np.ndarray  # int64[k]  of the subscriptions table, ascending
    shards: np.ndarray  # int32[k]  ascending within a row
    filed: np.ndarray  # int64[j,2]  (key, shard): messages with this key must visit the shard
    n_good: int  # including subscriptions that can match no message and are therefore in no shard
    n_ranked: int  # the good ones of kind rank
    rejects: pa.Table


@dataclass(eq=False)
class Router:
    """Routes by place and by key."""

    areas: Areas
    dialect: Dialect
    frequencies: IntMap = field(default_factory=IntMap)  # by hash: how many sampled messages contain the token
    placements: IntMap = field(default_factory=IntMap)  # the shards of costly keys
    keys: IntMap = field(default_factory=IntMap)  # the keys in use, collected when the shards are built

    @property
    def n_shards(self) -> int:
        return int(self.areas.limits[1])

    @property
    def reads_text(self) -> bool:
        """Whether the tokens of a message affect its route; otherwise its place alone does."""
        return self.divides_by_text or self.keys.size > 0

    @property
    def divides_by_text(self) -> bool:
        """Whether some rows are routed by their rarest token. Ranked rows may be routed by keyword in any case."""
        return self.divides_wide or bool(self.areas.is_divided.any())

    @property
    def divides_wide(self) -> bool:
        return int(self.areas.limits[0]) < len(self.areas.is_divided)

    # -- messages

    def route(self, messages: pa.Table, on_bad: OnBad = "skip") -> Routed:
        """The shards that each message visits. Bad rows visit none."""
        analyser = self.dialect.analyser if self.reads_text else _NO_TOKENS
        read = read_message_columns(messages, self.dialect._replace(analyser=analyser, on_bad=on_bad))
        good = read.good_rows
        hashes, starts = np.empty(0, np.int64), np.zeros(len(good) + 1, np.int64)
        if self.reads_text:
            tokens, starts = list_parts(read.tokens.take(pa.array(good)))
            hashes = hashes_of(tokens)
        pairs = self.route_read(Messages(read.ids.numbers[good], read.boxes[good], hashes, starts))
        rows, shards = _distinct_pairs(good[pairs[:, 0]], pairs[:, 1])
        return Routed(rows, shards, read.ids, read.tokens if self.reads_text else None, read.rejects)

    def route_read(self, messages: Messages) -> np.ndarray:
        """int64[k,2]: (row, shard), rows ascending, of messages whose tokens are hashed."""
        ids, boxes = _plain(messages.ids, np.int64), _plain(messages.boxes, np.float64)
        read = messages._replace(ids=ids, boxes=boxes)
        return np.asarray(route_messages(self.areas, self.keys.arrays, self._files_by_keyword, read))

    @functools.cached_property
    def _files_by_keyword(self) -> bool:
        """Whether ranked rows are filed by keyword; otherwise no token is looked up for them."""
        return bool(are_keywords(_entries(self.keys)[0]).any())

    # -- subscriptions

    def assign(self, subscriptions: pa.Table, on_bad: OnBad = "skip", weights: Weights | None = None) -> Assigned:
        """The shards that store each subscription. Bad rows, and those that can match no message, are in none.

        `weights` are those of the whole table; without weights, these rows are taken to be the whole table.
        """
        vocabulary = Vocabulary()
        read = read_subscriptions(subscriptions, vocabulary, served_dialect(self.dialect)._replace(on_bad=on_bad))
        plain, ranked = read.rows(), read.rows(RANK)
        owners, triples = plain.owner_ids, self.assign_read(plain, vocabulary)
        if ranked.size:
            by_term = idf_weights(read, vocabulary) if weights is None else weights.of_terms(vocabulary)
            more = self.assign_ranked(ranked, by_term, vocabulary) + np.array([len(owners), 0, 0])
            owners = np.concatenate([owners, ranked.owner_ids])
            triples = np.concatenate([triples, more])
        good = np.delete(np.arange(subscriptions.num_rows), rejected_positions(read.rejects))
        positions = good[rows_of_ids(read.ids, owners)]
        rows, shards = _distinct_pairs(positions[triples[:, 0]], triples[:, 1])
        return Assigned(rows, shards, distinct_keys(triples), len(read.ids), ranked.size, read.rejects)

    def assign_read(self, rows: RowBatch, vocabulary: Vocabulary) -> np.ndarray:
        """int64[k,3]: (row, shard, key or NO_KEY) of rows whose terms are the vocabulary's."""
        keys = self.keys_of(rows, vocabulary)
        return np.asarray(assign_rows(self.areas, self.placements.arrays, Rows(_plain(rows.boxes, np.float64), keys)))

    def assign_ranked(self, ranked: RowBatch, weights: np.ndarray, vocabulary: Vocabulary) -> np.ndarray:
        """The same for ranked rows; `weights` are by term."""
        if self.n_shards == 1:
            return np.column_stack(np.broadcast_arrays(np.arange(ranked.size), 0, NO_KEY))
        by_place, by_keyword, everywhere = file_ranked_rows(ranked, weights, hashes_of_terms(vocabulary))
        boxes = _plain(ranked.boxes[by_place[0]], np.float64)
        placed = assign_rows(self.areas, self.placements.arrays, Rows(boxes, by_place[1]))
        placed[:, 0] = by_place[0][placed[:, 0]]
        owners = ranked.owner_ids[by_keyword[0]]
        keywords = self.assign_by_keyword(by_keyword[0], owners, by_keyword[1])
        rows, shards = np.repeat(everywhere, self.n_shards), np.tile(np.arange(self.n_shards), len(everywhere))
        return np.concatenate([placed, keywords, np.column_stack(np.broadcast_arrays(rows, shards, NO_KEY))])

    def assign_by_keyword(self, rows: np.ndarray, owners: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """The same for rows filed under these keywords, wherever a message is."""
        owners = _plain(owners, np.int64)
        return np.asarray(file_by_keyword(self.placements.arrays, self.n_shards, rows, owners, keys))

    def keys_of(self, rows: RowBatch, vocabulary: Vocabulary) -> np.ndarray:
        """int64[n]: the hash of the rarest token that a message of each row must have, or NO_KEY."""
        keys = np.full(rows.size, NO_KEY, np.int64)
        if self.divides_by_text:
            hashes = hashes_of_terms(vocabulary)
            counts = np.maximum(self.frequencies.get(hashes), 0)  # a token of no sampled message is the rarest
            terms, starts = vocabulary.with_plain_terms(rows.terms, rows.term_starts, only_certain=True)
            rarest_keys(terms, starts, hashes, counts, keys)
        return keys

    def with_keys(self, filed: np.ndarray) -> Router:
        """A router that also sends messages by these (key, shard) pairs: see `Assigned.filed`."""
        known = IntMap(len(self.keys.arrays.keys))
        known.put(*_entries(self.keys))
        keys, shards = _plain(filed[:, 0], np.int64), _plain(filed[:, 1], np.int32)
        codes = self.placements.get(keys)  # keywords in several shards: a message needs the code of all of them
        known.put(keys, np.where(codes > self.n_shards, codes, shards))
        return replace(self, keys=known)

    # -- files

    def save(self, path: str | os.PathLike[str]) -> None:
        arrays = {f"areas.{name}": array for name, array in self.areas._asdict().items()}
        for name in _MAPS:
            entries: IntMap = getattr(self, name)
            arrays |= {f"{name}.{part}": array for part, array in entries.arrays._asdict().items()}
        write_bundle(
            path, FORMAT, arrays, {"space": self.dialect.space.header(), "analyser": self.dialect.analyser.header()}
        )

    @classmethod
    def open(cls, path: str | os.PathLike[str], verify: bool = True) -> Router:
        arrays, header = read_bundle(path, FORMAT, verify)
        areas = Areas(*(arrays[f"areas.{name}"] for name in Areas._fields))
        maps = {
            name: IntMap.from_arrays(IntMapArrays(arrays[f"{name}.keys"], arrays[f"{name}.values"])) for name in _MAPS
        }
        dialect = Dialect(Analyser.from_header(header["analyser"]), Space.from_header(header["space"]), "skip")
        return cls(areas, dialect, **maps)


class _NoTokens(Analyser):
    """Finds no tokens in any text: for routers that route by place alone."""

    def tokens_batch(self, texts: pa.Array | pa.ChunkedArray) -> pa.ListArray:
        return pa.nulls(len(texts), pa.list_(pa.string()))


_NO_TOKENS = _NoTokens()


def hashes_of(tokens: pa.Array) -> np.ndarray:
    """int64[n]: a hash of each token, never negative. A null hashes as the empty token."""
    raw, offsets = string_buffers(tokens)
    out = np.empty(len(offsets) - 1, np.int64)
    hash_tokens(raw, offsets, out)
    return out


def hashes_of_terms(vocabulary: Vocabulary) -> np.ndarray:
    """int64[n]: the hash of each term's token."""
    return hashes_of(vocabulary.tokens(np.arange(len(vocabulary))))


def _entries(table: IntMap) -> tuple[np.ndarray, np.ndarray]:
    """The (keys, values) in use."""
    used = table.arrays.values >= 0
    return table.arrays.keys[used], table.arrays.values[used]


def rows_of_ids(ids: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """int64[n]: a row of each wanted id, all of which are in `ids`."""
    order = np.argsort(ids, kind="stable")
    return np.asarray(order[np.searchsorted(ids[order], wanted)])


def distinct_keys(triples: np.ndarray) -> np.ndarray:
    """int64[k,2]: the distinct (key, shard) pairs; a key has one shard."""
    filed = triples[triples[:, 2] != NO_KEY]
    first = np.unique(filed[:, 2], return_index=True)[1]
    return np.ascontiguousarray(filed[first][:, (2, 1)])


def _distinct_pairs(rows: np.ndarray, shards: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct pairs sorted by (row, shard): clauses and boxes of one subscription may share shards."""
    base = int(shards.max(initial=0)) + 1
    pairs = distinct(rows * base + shards)
    return pairs // base, (pairs % base).astype(np.int32)


def _plain(array: np.ndarray, dtype: type) -> np.ndarray:
    """The array contiguous, of one type and writable, so that a kernel is compiled only once."""
    plain: np.ndarray = np.ascontiguousarray(array, dtype)
    return plain if plain.flags.writeable else plain.copy()

"""Redis Streams: positions are the ids of entries.

A position is the id of the last entry that was read, or, before any was read, the id just below the first entry. So
entries after it are complete if the stream still has the entry at the position, or begins just above it. A stream that
was trimmed beyond its reader's last entry may have lost entries: Redis does not say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any, NamedTuple

import pyarrow as pa

from nearcast.errors import DataLoss, InvalidInput, MissingPart
from nearcast.ingest.brokers.values import ENTRIES_SCHEMA, lost_entries
from nearcast.tables import RANKED_SCHEMA

BEGINNING = "0-0"
_AT_ONCE = 1_000  # entries in one answer of the server; pairs in one request
_LAST_NUMBER = (1 << 64) - 1  # of the entries of one millisecond


class Range(NamedTuple):
    """Entries of one stream after `start` up to `end`, which is included."""

    key: str
    start: str
    end: str
    first: str | None = None  # the first entry when the range was planned
    lost: str | None = None  # why entries before it are missing


def connect(url: str) -> Any:
    try:
        import redis
    except ImportError:
        raise MissingPart("Redis Streams need the package redis: pip install 'nearcast[redis]'") from None
    return redis.Redis.from_url(url)


class Stream(NamedTuple):
    """What the server knows about a stream."""

    first: str | None  # the id of its first entry
    last: str  # of the newest entry that it ever had

    @classmethod
    def of(cls, server: Any, key: str) -> Stream:
        import redis

        try:
            about = server.xinfo_stream(key)
        except redis.ResponseError as error:
            if "no such key" in str(error):
                return cls(None, BEGINNING)
            raise
        first = about["first-entry"]
        return cls(_text(first[0]) if first else None, _text(about["last-generated-id"]))

    def position(self, start: str) -> str:
        """Where to begin so that all entries after `start` follow: not below the first entry."""
        if order(start) > order(self.last) > order(BEGINNING):
            raise InvalidInput(f"start={start} is beyond the newest entry of the stream, {self.last}")
        lowest = self.last if self.first is None else _just_below(self.first)
        return max(lowest, start if "-" in start else f"{start}-0", key=order)

    def gap(self, key: str, position: str) -> str | None:
        """Why entries after this position may be missing, or None."""
        if order(self.last) < order(position):
            return f"the Redis stream '{key}' was deleted: it ends at {self.last}, and was read up to {position}"
        if position in (BEGINNING, self.last):
            return None
        if self.first is None or order(self.first) > order(position):
            if self.first is not None and _just_below(self.first) == position:
                return None
            reach = "all" if self.first is None else f"up to {self.first}"
            return (
                f"the Redis stream '{key}' was trimmed beyond its reader: entries after {position}, {reach}, are gone"
            )
        return None


def plan(server: Any, start: Mapping[str, str], end: Mapping[str, str], n: int, fail: bool) -> list[Range]:
    """At most `n` ranges for each stream. Where entries are gone, raise DataLoss, or note it in a range."""
    ranges = []
    for key in sorted(end):
        after = start.get(key, BEGINNING)
        lost = check(server, key, after, fail) if after != end[key] else None
        for low, high in split(after, end[key], n):
            found = server.xrange(key, f"({low}", high, count=1)
            first = _text(found[0][0]) if found else None
            if first is not None or lost is not None:
                ranges.append(Range(key, low, high, first, lost))
            lost = None
    return ranges


def check(server: Any, key: str, position: str, fail: bool) -> str | None:
    """Why entries after the position may be missing, or None; raise it if `fail`."""
    gap = Stream.of(server, key).gap(key, position)
    if gap is not None and fail:
        raise _loss(gap)
    return gap


def split(start: str, end: str, n: int) -> list[tuple[str, str]]:
    """At most `n` ranges (after, up to) that together cover the ids after `start` up to `end`. Ids are times."""
    if start == end:
        return []
    first, last = int(start.split("-")[0]), int(end.split("-")[0])
    cuts = sorted({first + (last - first) * k // n for k in range(1, n)} - {first, last})
    bounds = [start, *(f"{cut}-0" for cut in cuts), end]
    return list(zip(bounds, bounds[1:], strict=False))


def read_range(url: str, wanted: Range, field: bytes, fail: bool) -> Iterator[pa.RecordBatch]:
    """The entries of a range, and a row for entries that are gone."""
    with closing(connect(url)) as server:
        if wanted.lost is not None:
            yield lost_entries(f"{wanted.key}:{wanted.start}", wanted.lost)
        batches = _entries(server, wanted, field)
        start = next(batches, None)
        if wanted.first is not None and (start is None or start["entry"][0].as_py() != f"{wanted.key}:{wanted.first}"):
            gap = f"the Redis stream '{wanted.key}' was trimmed while entries after {wanted.start} were read"
            if fail:
                raise _loss(gap)
            yield lost_entries(f"{wanted.key}:{wanted.start}", gap)
        if start is not None:
            yield start
        yield from batches


def _entries(server: Any, wanted: Range, field: bytes) -> Iterator[pa.RecordBatch]:
    after = wanted.start
    while found := server.xrange(wanted.key, f"({after}", wanted.end, count=_AT_ONCE):
        entries = [f"{wanted.key}:{_text(name)}" for name, _ in found]
        values = pa.array([fields.get(field) for _, fields in found], pa.binary())
        yield pa.record_batch([pa.array(entries), values], schema=ENTRIES_SCHEMA)
        after = _text(found[-1][0])


def _loss(gap: str) -> DataLoss:
    return DataLoss(f"{gap}; to go on without them, set failOnDataLoss=false")


def reach(server: Any, key: str, start: str, target: str, most: int | None) -> str:
    """The id of the entry `most` entries after `start`, or the target if that comes first."""
    if order(target) <= order(start):
        return start
    left, after = most, start
    while left is not None:
        found = server.xrange(key, f"({after}", target, count=min(left, _AT_ONCE))
        if not found:
            return target
        after, left = _text(found[-1][0]), left - len(found)
        if left <= 0:
            return after
    return target


def add_pairs(server: Any, key: str, pairs: pa.RecordBatch, batch_number: str, most: int | None) -> None:
    """Append matches to a stream, trimmed to about `most` entries."""
    for start in range(0, pairs.num_rows, _AT_ONCE):
        part = pairs.slice(start, _AT_ONCE)
        pipe = server.pipeline(transaction=False)
        columns = (part.column(name).to_pylist() for name in RANKED_SCHEMA.names)
        for message, subscription, score in zip(*columns, strict=True):
            fields = {"pair": f"{message}:{subscription}", "message": message, "subscription": subscription}
            if score is not None:
                fields["score"] = score
            pipe.xadd(key, fields | {"batch": batch_number}, maxlen=most)
        pipe.execute()


def order(name: str) -> tuple[int, int]:
    time, _, number = name.partition("-")
    return int(time), int(number or 0)


def required(options: Mapping[str, str], name: str) -> str:
    if not options.get(name):
        raise InvalidInput(f"Redis Streams need the option '{name}'")
    return options[name]


def _just_below(name: str) -> str:
    time, number = order(name)
    return f"{time}-{number - 1}" if number else f"{time - 1}-{_LAST_NUMBER}"


def _text(name: bytes | str) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)

"""Redis Streams for Spark: a source whose offsets are the streams' own ids, and a sink.

Options of the source, with defaults: `url` (redis://host:port/0 or unix://path), `keys` (names of streams, separated
by commas), `start` ("0": the beginning, "$": entries after the first start, or an id; "0"), `field` (the field of an
entry with the value; "value"), `partitions` (tasks per stream and batch; 1), `maxEntries` (per stream and batch;
100000). The source reads ranges of ids, so a batch can be read again as long as its entries exist: do not trim a stream
beyond the position of its reader.

Options of the sink: `url`, `key` ("matches"), `maxLength` (approximate; unlimited), `batch`. An entry has the fields
`pair` ("message:subscription"), `message`, `subscription`, `batch` and, for ranked subscriptions, `score`. After a
crash a batch may be written twice; receivers recognise repeats by `pair`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from nearcast.errors import InvalidInput, MissingPart
from nearcast.tables import RANKED_SCHEMA

ENTRIES_SCHEMA = pa.schema([("entry", pa.string()), ("value", pa.binary())])
_AT_ONCE = 1_000  # entries in one answer of the server; pairs in one request


class RedisStreams(DataSource):
    """The data source that Spark knows as `redis-streams`."""

    @classmethod
    def name(cls) -> str:
        return "redis-streams"

    def schema(self) -> str:
        return "entry string, value binary"

    def streamReader(self, schema: Any) -> RedisReader:
        return RedisReader(dict(self.options))

    def writer(self, schema: Any, overwrite: bool) -> RedisWriter:
        return RedisWriter(dict(self.options))


@dataclass
class Range(InputPartition):
    """Entries of one stream after `start` up to `end`, which is included."""

    key: str
    start: str
    end: str


class RedisReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = {name.lower(): value for name, value in options.items()}
        self._url = _required(self._options, "url")
        self._keys = sorted({key.strip() for key in _required(self._options, "keys").split(",") if key.strip()})
        self._field = self._options.get("field", "value")
        self._most = int(self._options.get("maxentries", "100000"))
        self._target: dict[str, str] | None = None

    def initialOffset(self) -> dict[str, str]:
        start = self._options.get("start", "0")
        if start == "$":
            return self.reportLatestOffset()
        return dict.fromkeys(self._keys, start if "-" in start else f"{start}-0")

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._most)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self.reportLatestOffset()

    def reportLatestOffset(self) -> dict[str, str]:
        with closing(connect(self._url)) as server:
            return {key: _last_id(server, key) for key in self._keys}

    def latestOffset(self, start: dict[str, str], limit: ReadLimit) -> dict[str, str]:
        """The end of the next batch, within the limit. A stream that is new to the query is read from its beginning."""
        most = None if isinstance(limit, ReadAllAvailable) else self._most
        target = self._target or self.reportLatestOffset()
        with closing(connect(self._url)) as server:
            return {key: _reach(server, key, start.get(key, "0-0"), target[key], most) for key in self._keys}

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> list[Range]:
        n = int(self._options.get("partitions", "1"))
        ranges = []
        for key in sorted(end):
            ranges += [Range(key, *pair) for pair in split(start.get(key, "0-0"), end[key], n)]
        return ranges

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Range)
        with closing(connect(self._url)) as server:
            yield from _read_range(server, partition, self._field.encode())


class RedisWriter(DataSourceArrowWriter):
    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = {name.lower(): value for name, value in options.items()}
        self._url = _required(self._options, "url")

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        key = self._options.get("key", "matches")
        most = int(self._options["maxlength"]) if "maxlength" in self._options else None
        batch_number = self._options.get("batch", "")
        with closing(connect(self._url)) as server:
            for batch in iterator:
                for start in range(0, batch.num_rows, _AT_ONCE):
                    _add(server, key, batch.slice(start, _AT_ONCE), batch_number, most)
        return WriterCommitMessage()


def connect(url: str) -> Any:
    try:
        import redis
    except ImportError:
        raise MissingPart("Redis Streams need the package redis: pip install 'nearcast[redis]'") from None
    return redis.Redis.from_url(url)


def split(start: str, end: str, n: int) -> list[tuple[str, str]]:
    """At most `n` ranges (after, up to) that together cover the ids after `start` up to `end`. Ids are times."""
    if start == end:
        return []
    first, last = int(start.split("-")[0]), int(end.split("-")[0])
    cuts = sorted({first + (last - first) * k // n for k in range(1, n)} - {first, last})
    bounds = [start, *(f"{cut}-0" for cut in cuts), end]
    return list(zip(bounds, bounds[1:], strict=False))


def _add(server: Any, key: str, pairs: pa.RecordBatch, batch_number: str, most: int | None) -> None:
    pipe = server.pipeline(transaction=False)
    columns = (pairs.column(name).to_pylist() for name in RANKED_SCHEMA.names)
    for message, subscription, score in zip(*columns, strict=True):
        fields = {"pair": f"{message}:{subscription}", "message": message, "subscription": subscription}
        if score is not None:
            fields["score"] = score
        pipe.xadd(key, fields | {"batch": batch_number}, maxlen=most)
    pipe.execute()


def _read_range(server: Any, wanted: Range, field: bytes) -> Iterator[pa.RecordBatch]:
    after = wanted.start
    while True:
        found = server.xrange(wanted.key, f"({after}", wanted.end, count=_AT_ONCE)
        if not found:
            return
        entries = [f"{wanted.key}:{name.decode()}" for name, _ in found]
        yield pa.record_batch(
            [pa.array(entries), pa.array([fields.get(field) for _, fields in found], pa.binary())],
            schema=ENTRIES_SCHEMA,
        )
        after = found[-1][0].decode()


def _reach(server: Any, key: str, start: str, target: str, most: int | None) -> str:
    """The id of the entry `most` entries after `start`, or the target if that comes first."""
    if _order(target) <= _order(start):
        return start  # no new entries, or the stream was deleted and restarted: offsets must not decrease
    left, after = most, start
    while left is not None:
        found = server.xrange(key, f"({after}", target, count=min(left, _AT_ONCE))
        if not found:
            return target
        after, left = str(found[-1][0].decode()), left - len(found)
        if left <= 0:
            return after
    return target


def _last_id(server: Any, key: str) -> str:
    import redis

    try:
        newest = server.xinfo_stream(key)["last-generated-id"]
        return newest.decode() if isinstance(newest, bytes) else str(newest)
    except redis.ResponseError as error:
        if "no such key" in str(error):
            return "0-0"
        raise


def _order(name: str) -> tuple[int, int]:
    time, _, number = name.partition("-")
    return int(time), int(number or 0)


def _required(options: Mapping[str, str], name: str) -> str:
    if not options.get(name):
        raise InvalidInput(f"Redis Streams need the option '{name}'")
    return options[name]

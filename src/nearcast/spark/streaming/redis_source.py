"""Redis Streams for Spark: a source whose offsets are the streams' own ids, and a sink.

Options of the source, with defaults: `url` (redis://host:port/0 or unix://path), `keys` (names of streams, separated
by commas), `start` ("0": the beginning, "$": entries after the first start, or an id; "0"), `field` (the field of an
entry with the value; "value"), `partitions` (tasks per stream and batch; 1), `maxEntries` (per stream and batch;
100000), `failOnDataLoss` (stop where entries were trimmed before they were read; "true"). The source reads ranges of
ids, so a batch can be read again as long as its entries exist. Trim a stream only below the last entry that was read.

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

from nearcast.ingest.brokers.redis_streams import (
    BEGINNING,
    Range,
    Stream,
    add_pairs,
    check,
    connect,
    plan,
    reach,
    read_range,
    required,
)


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
class RangePartition(InputPartition):
    range: Range


class RedisReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = {name.lower(): value for name, value in options.items()}
        self._url = required(self._options, "url")
        self._keys = sorted({key.strip() for key in required(self._options, "keys").split(",") if key.strip()})
        self._most = int(self._options.get("maxentries", "100000"))
        self._fail = self._options.get("failondataloss", "true").lower() != "false"
        self._target: dict[str, str] | None = None

    def initialOffset(self) -> dict[str, str]:
        start = self._options.get("start", "0")
        if start == "$":
            return self.reportLatestOffset()
        with closing(connect(self._url)) as server:
            return {key: Stream.of(server, key).position(start) for key in self._keys}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._most)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self.reportLatestOffset()

    def reportLatestOffset(self) -> dict[str, str]:
        with closing(connect(self._url)) as server:
            return {key: Stream.of(server, key).last for key in self._keys}

    def latestOffset(self, start: dict[str, str], limit: ReadLimit) -> dict[str, str]:
        """The end of the next batch, within the limit. A stream that is new to the query is read from its beginning."""
        most = None if isinstance(limit, ReadAllAvailable) else self._most
        target = self._target or self.reportLatestOffset()
        with closing(connect(self._url)) as server:
            for key in self._keys:
                check(server, key, start.get(key, BEGINNING), self._fail)
            return {key: reach(server, key, start.get(key, BEGINNING), target[key], most) for key in self._keys}

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> list[RangePartition]:
        with closing(connect(self._url)) as server:
            ranges = plan(server, start, end, int(self._options.get("partitions", "1")), self._fail)
        return [RangePartition(each) for each in ranges]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, RangePartition)
        yield from read_range(self._url, partition.range, self._options.get("field", "value").encode(), self._fail)


class RedisWriter(DataSourceArrowWriter):
    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = {name.lower(): value for name, value in options.items()}
        self._url = required(self._options, "url")

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        key = self._options.get("key", "matches")
        most = int(self._options["maxlength"]) if "maxlength" in self._options else None
        with closing(connect(self._url)) as server:
            for batch in iterator:
                add_pairs(server, key, batch, self._options.get("batch", ""), most)
        return WriterCommitMessage()

"""Kafka for Spark without its Java connector: a source whose offsets are Kafka's, and a sink. Needs confluent-kafka.

Options of the source, with defaults: `kafka.bootstrap.servers`, any `kafka.NAME` (a setting of the client), `subscribe`
(topics, separated by commas), `startingOffsets` ("earliest" or "latest"; "earliest"), `maxOffsetsPerTrigger` (100000),
`failOnDataLoss` (stop where messages were deleted before they were read; "true"). Their names are those of Spark's
connector. A batch can be read again as long as Kafka keeps its messages.

Options of the sink: `kafka.bootstrap.servers`, any `kafka.NAME`, `topic`, `batch`. After a crash a batch may be sent
twice; receivers recognise repeats by the key, "message:subscription".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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

from nearcast.errors import InvalidInput
from nearcast.ingest.brokers.kafka_topics import Positions, Range, Topics, client_settings, plan, reach, send_pairs


class KafkaTopics(DataSource):
    """The data source that Spark knows as `nearcast-kafka`."""

    @classmethod
    def name(cls) -> str:
        return "nearcast-kafka"

    def schema(self) -> str:
        return "entry string, value binary"

    def streamReader(self, schema: Any) -> KafkaReader:
        return KafkaReader(dict(self.options))

    def writer(self, schema: Any, overwrite: bool) -> KafkaWriter:
        return KafkaWriter(dict(self.options))


@dataclass
class RangePartition(InputPartition):
    range: Range


class KafkaReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: Mapping[str, str]) -> None:
        given = {name.lower(): value for name, value in options.items()}
        self._settings = client_settings(given)
        self._topics = sorted({topic.strip() for topic in given.get("subscribe", "").split(",") if topic.strip()})
        self._newest = given.get("startingoffsets", "earliest")
        if not self._topics or self._newest not in ("earliest", "latest"):
            raise InvalidInput("Kafka needs the option 'subscribe'; 'startingOffsets' is earliest or latest")
        self._most = int(given.get("maxoffsetspertrigger", "100000"))
        self._fail = given.get("failondataloss", "true").lower() != "false"
        self._target: Positions | None = None

    def initialOffset(self) -> Positions:
        return self._positions(newest=self._newest == "latest")

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._most)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self.reportLatestOffset()

    def reportLatestOffset(self) -> Positions:
        return self._positions(newest=True)

    def latestOffset(self, start: Positions, limit: ReadLimit) -> Positions:
        """The end of the next batch, within the limit. New partitions are read from their beginning."""
        most = None if isinstance(limit, ReadAllAvailable) else self._most
        return reach(start, self._target or self.reportLatestOffset(), most)

    def partitions(self, start: Positions, end: Positions) -> list[RangePartition]:
        with Topics.opened(self._settings) as topics:
            return [RangePartition(each) for each in plan(topics, start, end, self._fail)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, RangePartition)
        with Topics.opened(self._settings) as topics:
            yield from topics.read(partition.range, self._fail)

    def _positions(self, newest: bool) -> Positions:
        with Topics.opened(self._settings) as topics:
            return topics.positions(self._topics, newest)


class KafkaWriter(DataSourceArrowWriter):
    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = {name.lower(): value for name, value in options.items()}
        if not self._options.get("topic"):
            raise InvalidInput("the Kafka sink needs the option 'topic'")
        self._settings = client_settings(self._options)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        for batch in iterator:
            send_pairs(self._settings, self._options["topic"], batch, self._options.get("batch", ""))
        return WriterCommitMessage()

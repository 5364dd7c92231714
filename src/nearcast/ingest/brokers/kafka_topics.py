"""Kafka topics: positions are the offsets of the next message in each partition."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import pyarrow as pa

from nearcast.errors import DataLoss, InvalidInput, MissingPart, NearcastError
from nearcast.ingest.brokers.values import ENTRIES_SCHEMA, lost_entries
from nearcast.tables import RANKED_SCHEMA

Positions = dict[str, dict[str, int]]  # topic -> partition, as text for JSON -> offset of the next message
_AT_ONCE = 1_000
_PREFIX = "kafka."  # of options that go to the client
_TIMEOUT_S = 20.0
_SILENCE_S = 60.0  # without a message or an end of the partition


class Range(NamedTuple):
    """The messages of a partition from `start` up to `end`, which is excluded."""

    topic: str
    partition: int
    start: int
    end: int
    lost: str | None = None  # why messages before `start` are missing


def client_settings(options: Mapping[str, str]) -> dict[str, str]:
    """The client's settings: options that begin with `kafka.`, without it."""
    settings = {name[len(_PREFIX) :]: value for name, value in options.items() if name.startswith(_PREFIX)}
    if "bootstrap.servers" not in settings:
        raise InvalidInput("Kafka needs the option 'kafka.bootstrap.servers', as in host:9092")
    return {"log_level": "0", "socket.timeout.ms": str(int(1000 * _TIMEOUT_S)), **settings}


def client_module() -> Any:
    try:
        import confluent_kafka
    except ImportError:
        raise MissingPart("Kafka needs the package confluent-kafka: pip install 'nearcast[kafka]'") from None
    return confluent_kafka


class Topics:
    """A consumer of some topics that commits nothing: positions are in the checkpoint."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._kafka = client_module()
        ours = {"group.id": "nearcast", "enable.auto.commit": "false", "enable.partition.eof": "true"}
        self._consumer = self._kafka.Consumer({**ours, **settings, "auto.offset.reset": "error"})

    @classmethod
    @contextmanager
    def opened(cls, settings: Mapping[str, str]) -> Iterator[Topics]:
        topics = cls(settings)
        try:
            yield topics
        except topics._kafka.KafkaException as error:
            raise NearcastError(f"Kafka at {settings['bootstrap.servers']}: {error.args[0].str()}") from None
        finally:
            topics._consumer.close()

    def limits(self, topic: str) -> dict[str, tuple[int, int]]:
        """(the first offset, the next offset) of each partition."""
        known = self._consumer.list_topics(topic, _TIMEOUT_S).topics[topic]
        if known.error is not None:
            raise NearcastError(f"Kafka has no topic '{topic}': {known.error.str()}")
        places = {str(number): self._kafka.TopicPartition(topic, number) for number in sorted(known.partitions)}
        return {name: self._consumer.get_watermark_offsets(place, _TIMEOUT_S) for name, place in places.items()}

    def positions(self, topics: list[str], newest: bool) -> Positions:
        return {topic: {name: ends[newest] for name, ends in self.limits(topic).items()} for topic in topics}

    def gap(self, topic: str, partition: str, position: int, first: int, fail: bool) -> str | None:
        """Why messages from this position on are missing, or None; raise it if `fail`."""
        if position >= first:
            return None
        gap = f"Kafka deleted {first - position:,} messages of {topic}, partition {partition}, before they were read"
        if fail:
            raise _loss(f"{gap}: offsets {position} to {first - 1}")
        return gap

    def read(self, wanted: Range, fail: bool) -> Iterator[pa.RecordBatch]:
        """The messages of a range, and a row for messages that are gone."""
        if wanted.lost is not None:
            yield lost_entries(f"{wanted.topic}:{wanted.partition}:{wanted.start}", wanted.lost)
        place = self._kafka.TopicPartition(wanted.topic, wanted.partition, wanted.start)
        self._consumer.assign([place])
        position = wanted.start
        while position < wanted.end:
            found = self._wait_for_some()
            if not found:
                raise NearcastError(f"Kafka sent nothing of {wanted.topic}, partition {wanted.partition}, in a minute")
            messages = [each for each in found if each.error() is None]
            wrong = [each.error() for each in found if each.error() is not None and not _is_end(self._kafka, each)]
            position = max(position, self._consumer.position([place])[0].offset)
            yield _entries([each for each in messages if each.offset() < wanted.end])
            if wrong and wrong[0].code() == self._kafka.KafkaError._AUTO_OFFSET_RESET:
                yield from self._deleted_meanwhile(wanted._replace(start=position, lost=None), fail)
                return
            if wrong:
                raise self._kafka.KafkaException(wrong[0])

    def _wait_for_some(self) -> list[Any]:
        """The next messages and errors; `consume` alone would wait for all that it may take."""
        found = self._consumer.poll(_SILENCE_S)
        return [] if found is None else [found, *self._consumer.consume(_AT_ONCE, 0)]

    def _deleted_meanwhile(self, wanted: Range, fail: bool) -> Iterator[pa.RecordBatch]:
        """The rest of a range whose first messages were deleted after it was planned."""
        first = self.limits(wanted.topic)[str(wanted.partition)][0]
        gap = self.gap(wanted.topic, str(wanted.partition), wanted.start, first, fail)
        yield from self.read(wanted._replace(start=max(first, wanted.start), lost=gap), fail)


def plan(topics: Topics, start: Positions, end: Positions, fail: bool) -> list[Range]:
    """A range for each partition with messages. Where messages are gone, raise DataLoss, or note it in the range."""
    ranges = []
    for topic, ends in sorted(end.items()):
        limits = topics.limits(topic)
        for name, stop in ends.items():
            position = start.get(topic, {}).get(name, 0)
            if position >= stop:
                continue
            first, newest = limits.get(name, (0, 0))
            if newest < stop:
                raise _loss(f"the Kafka topic {topic}, partition {name}, ends at {newest}, but was seen up to {stop}")
            gap = topics.gap(topic, name, position, min(first, stop), fail)
            ranges.append(Range(topic, int(name), min(max(position, first), stop), stop, gap))
    return ranges


def reach(start: Positions, newest: Positions, most: int | None) -> Positions:
    """The end of the next batch: at most about `most` messages, a share of each partition. It never goes back."""
    waiting = {
        (topic, name): stop - start.get(topic, {}).get(name, 0)
        for topic, ends in newest.items()
        for name, stop in ends.items()
    }
    total = sum(max(0, n) for n in waiting.values())
    share = 1.0 if most is None or total <= most else most / total
    reached: Positions = {topic: dict(ends) for topic, ends in start.items()}
    for (topic, name), n in waiting.items():
        taken = n if share == 1.0 else min(n, max(1, int(n * share)))
        before = start.get(topic, {}).get(name, 0)
        reached.setdefault(topic, {})[name] = before + max(0, taken)
    return reached


def send_pairs(settings: Mapping[str, str], topic: str, pairs: pa.RecordBatch, batch: str) -> None:
    """Send matches, each under the key message:subscription; return when the broker has them."""
    producer = client_module().Producer({"enable.idempotence": "true", **settings})
    faults: list[Any] = []

    def note(error: Any, _: Any) -> None:
        if error is not None:
            faults.append(error)

    columns = (pairs.column(name).to_pylist() for name in RANKED_SCHEMA.names)
    for message, subscription, score in zip(*columns, strict=True):
        value = {"message": message, "subscription": subscription, "score": score, "batch": batch}
        text = json.dumps({name: each for name, each in value.items() if each is not None})
        while True:
            try:
                producer.produce(topic, text, f"{message}:{subscription}", on_delivery=note)
                break
            except BufferError:
                producer.poll(1.0)
    left = producer.flush(_SILENCE_S)
    if left or faults:
        raise NearcastError(
            f"Kafka did not take {left or len(faults)} matches: {faults[0].str() if faults else 'no answer'}"
        )


def _entries(messages: list[Any]) -> pa.RecordBatch:
    names = [f"{each.topic()}:{each.partition()}:{each.offset()}" for each in messages]
    return pa.record_batch(
        [pa.array(names, pa.string()), pa.array([each.value() for each in messages], pa.binary())],
        schema=ENTRIES_SCHEMA,
    )


def _is_end(kafka: Any, message: Any) -> bool:
    return bool(message.error().code() == kafka.KafkaError._PARTITION_EOF)


def _loss(gap: str) -> DataLoss:
    return DataLoss(f"{gap}; to go on without them, set failOnDataLoss=false")

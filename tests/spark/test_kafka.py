"""Kafka as source and sink, on the mock cluster of its client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from nearcast.errors import DataLoss, InvalidInput, NearcastError
from nearcast.ingest.brokers import kafka_topics
from nearcast.ingest.brokers.kafka_topics import Topics, client_settings, reach
from nearcast.sharding.live.stream_output import read_stream_rejects
from nearcast.sharding.payloads import as_arrow_stream
from nearcast.spark.batch.build import build_sharded
from nearcast.spark.streaming.kafka_source import KafkaReader
from nearcast.spark.streaming.stream import run_stream
from stream_world import World, delivered, put

N_PARTITIONS = 4  # of every topic of the mock cluster
A_FIFTH_OF_THE_LOG = b" " * 1_000_000  # the mock cluster keeps 5 MB of a partition


@pytest.fixture
def cluster() -> Iterator[tuple[str, Producer]]:
    """(the address of its broker, a producer; it lives as long as the producer)."""
    producer = Producer(
        {"test.mock.num.brokers": 1, "bootstrap.servers": "mock", "log_level": 0, "message.max.bytes": 2_000_000}
    )
    (broker,) = producer.list_topics(timeout=20).brokers.values()
    yield f"{broker.host}:{broker.port}", producer


def options_of(address: str, **more: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": address, "subscribe": "t", **more}


def send(producer: Producer, values: list[bytes], topic: str = "t", partition: int | None = None) -> None:
    for k, value in enumerate(values):
        producer.produce(topic, value, partition=k % N_PARTITIONS if partition is None else partition)
        if len(value) > 100_000:
            producer.flush()
    producer.flush()


def as_json(messages: pa.Table) -> list[bytes]:
    return [json.dumps(each, default=lambda time: time.isoformat()).encode() for each in messages.to_pylist()]


def values_of(reader: KafkaReader, start: Any, end: Any) -> list[bytes]:
    parts = reader.partitions(start, end)
    return sorted(value for part in parts for batch in reader.read(part) for value in batch.column("value").to_pylist())


def test_messages_come_from_kafka_and_matches_go_there(
    spark: Any, tmp_path: Path, cluster: tuple[str, Producer]
) -> None:
    address, producer = cluster
    world = World(50, 60)
    put(world.table(), tmp_path / "subscriptions")
    build_sharded(spark, str(tmp_path / "subscriptions"), str(tmp_path / "index"), shards=2)
    paths = [str(tmp_path / "index"), "one, two", str(tmp_path / "matches"), str(tmp_path / "checkpoint")]
    servers = {"kafka.bootstrap.servers": address}
    options: dict[str, Any] = {
        "once": True,
        "source": "kafka",
        "source_options": {**servers, "maxOffsetsPerTrigger": "40"},
        "sink": "kafka",
        "sink_options": {**servers, "topic": "found"},
    }
    send(producer, as_json(world.messages(50)), "one")
    send(producer, [as_arrow_stream(world.messages(40)), b"{not JSON"], "two")
    totals = run_stream(spark, *paths, **options)
    assert (totals["messages"], totals["rejected"], totals["batches"]) == (90, 1, 2), "52 values, at most 40 at a time"
    send(producer, as_json(world.messages(10)), "one")
    assert run_stream(spark, *paths, **options)["messages"] == 10
    wanted = world.all_expected()
    assert delivered(tmp_path / "matches").equals(wanted)
    found = KafkaReader(options_of(address) | {"subscribe": "found"})
    pairs = [json.loads(value) for value in values_of(found, {}, found.reportLatestOffset())]
    got = sorted((pair["message"], pair["subscription"], pair.get("score")) for pair in pairs)
    assert got == [tuple(row.values()) for row in wanted.to_pylist()]
    assert read_stream_rejects(tmp_path / "matches")["source"].to_pylist() == ["two:1:0"]
    assert "two" in json.loads(json.loads((tmp_path / "matches/batch=0/_manifest.json").read_text())["offsets"][0])


def test_any_range_of_offsets_can_be_read_again(cluster: tuple[str, Producer]) -> None:
    address, producer = cluster
    send(producer, [b"%03d" % k for k in range(100)])
    reader = KafkaReader(options_of(address))
    assert reader.initialOffset() == {"t": {str(k): 0 for k in range(N_PARTITIONS)}}
    middle = {"t": {"0": 3, "1": 25, "2": 0, "3": 7}}
    expected = sorted(b"%03d" % k for k in range(100) if k // N_PARTITIONS >= middle["t"][str(k % N_PARTITIONS)])
    for _ in range(2):
        assert values_of(reader, middle, reader.reportLatestOffset()) == expected
        assert len(values_of(reader, reader.initialOffset(), middle)) == 35
    assert KafkaReader(options_of(address, startingOffsets="latest")).initialOffset() == reader.reportLatestOffset()


def test_deleted_messages_stop_the_reader_unless_told_to_go_on(cluster: tuple[str, Producer]) -> None:
    address, producer = cluster
    send(producer, [b"first"], partition=0)
    reader, lenient = (KafkaReader(options_of(address, failOnDataLoss=fail)) for fail in ("true", "false"))
    start, planned = reader.initialOffset(), reader.partitions(reader.initialOffset(), reader.reportLatestOffset())
    send(producer, [A_FIFTH_OF_THE_LOG + b"%d" % k for k in range(12)], partition=0)
    end = reader.reportLatestOffset()
    with Topics.opened(client_settings(options_of(address))) as topics:
        first = topics.limits("t")["0"][0]
    assert 1 < first < 13, "the cluster has deleted some messages"
    with pytest.raises(DataLoss, match=f"deleted {first} messages of t, partition 0.*failOnDataLoss=false"):
        reader.partitions(start, end)
    found = values_of(lenient, start, end)
    assert len(found) == 13 - first + 1 and b"deleted" in found[-1]
    with pytest.raises(DataLoss, match="deleted"):
        list(reader.read(planned[0]))
    lost = [value for batch in lenient.read(planned[0]) for value in batch.column("value").to_pylist()]
    assert len(lost) == 1 and b"deleted" in lost[0], "of what was planned, nothing is left"
    with pytest.raises(DataLoss, match="ends at 13, but was seen up to 99"):
        reader.partitions(start, {"t": {"0": 99}})


def test_a_batch_takes_a_share_of_each_partition_and_never_goes_back() -> None:
    newest = {"t": {"0": 1_000, "1": 10, "2": 0}}
    assert reach({}, newest, None) == newest
    assert reach({}, newest, 101) == {"t": {"0": 100, "1": 1, "2": 0}}
    assert reach({"t": {"0": 2_000}}, newest, 5) == {"t": {"0": 2_000, "1": 5, "2": 0}}


def test_options_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_topics, "_TIMEOUT_S", 1.0)
    with pytest.raises(InvalidInput, match="bootstrap.servers"):
        KafkaReader({"subscribe": "t"})
    with pytest.raises(InvalidInput, match="subscribe"):
        KafkaReader({"kafka.bootstrap.servers": "h:1"})
    with pytest.raises(NearcastError, match="^Kafka at 127.0.0.1:1: "):
        KafkaReader(options_of("127.0.0.1:1")).initialOffset()

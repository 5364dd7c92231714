"""Opens the sources of a stream's messages (files, Redis, Kafka) and the additional sinks of its matches.

Brokers use Spark's Python Data Source API (redis_source.py, kafka_source.py): no Java connector is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from nearcast.errors import InvalidInput
from nearcast.sharding.live.change_folder import ENDINGS
from nearcast.spark.runtime.failures import retry_slow_start
from nearcast.spark.runtime.session import DataFrame, SparkSession
from nearcast.spark.streaming.batches import Sink

SOURCES = ("files", "redis", "kafka")
SINKS = {"redis": "redis-streams", "kafka": "nearcast-kafka"}
# The only schema that Spark accepts for this format.
_BINARY_FILES = "path string, modificationTime timestamp, length long, content binary"


def open_source(session: SparkSession, source: str, messages: str, options: Mapping[str, str]) -> DataFrame:
    """A streaming DataFrame with the column `path`, or with `entry` and `value`."""
    if source == "files":
        return _files(session, messages, options)
    if source == "redis":
        return _broker(session, source).readStream.format("redis-streams").options(keys=messages, **options).load()
    if source == "kafka":
        given = {"subscribe": messages} | dict(options)
        return _broker(session, source).readStream.format("nearcast-kafka").options(**given).load()
    raise InvalidInput(f"no source '{source}'; it is one of {', '.join(SOURCES)}")


def _files(session: SparkSession, folder: str, options: Mapping[str, str]) -> DataFrame:
    """Only the paths: a worker that reads a file itself needs 0.4 of the time that it takes with Java, accepts any
    schema, and can reject an unreadable file.
    """
    if not Path(folder).is_dir():
        raise InvalidInput(f"{folder} is no folder; a stream reads message files that are moved into one")
    ours = {
        "pathGlobFilter": f"*{{{','.join(_in_any_case(ending) for ending in ENDINGS)}}}",
        "recursiveFileLookup": "true",
        "maxFileAge": "100000000d",  # older than the newest file by more than any file can be
    }
    reader = session.readStream.format("binaryFile").schema(_BINARY_FILES).options(**ours | dict(options))
    return reader.load(folder).select("path")


def _in_any_case(ending: str) -> str:
    return "".join(f"[{letter.lower()}{letter.upper()}]" if letter.isalpha() else letter for letter in ending)


def open_sink(sink: str | Sink | None, options: Mapping[str, str]) -> Sink | None:
    """A function that takes the matches of a batch, or None."""
    if sink is None or callable(sink):
        return sink
    if sink not in SINKS:
        raise InvalidInput(f"no sink '{sink}'; it is one of {', '.join(SINKS)}, or code that takes (matches, batch)")
    return lambda matches, batch: _send(sink, matches, {**options, "batch": str(batch)})


def _send(sink: str, matches: DataFrame, options: Mapping[str, str]) -> None:
    _broker(matches.sparkSession, sink)
    writer = matches.write.format(SINKS[sink]).mode("append").options(**options)
    retry_slow_start(writer.save)


def _broker(session: SparkSession, name: str) -> SparkSession:
    """The session, with the data source of a broker."""
    if name == "redis":
        from nearcast.spark.streaming.redis_source import RedisStreams as Source
    else:
        from nearcast.spark.streaming.kafka_source import KafkaTopics as Source
    session.dataSource.register(Source)
    return session

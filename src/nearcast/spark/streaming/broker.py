"""Opens the sources of a stream's messages (files, Redis, Kafka) and the additional sinks of its matches.

Redis Streams use Spark's Python Data Source API (redis_source.py). Kafka uses Spark's own connector, which must be on
the class path; our tests do not cover it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nearcast.errors import InvalidInput, MissingPart
from nearcast.sharding.live.changes import ENDINGS
from nearcast.spark.runtime.failures import retry_slow_start
from nearcast.spark.runtime.session import DataFrame, SparkSession

Sink = Callable[[DataFrame, int], None]
SOURCES = ("files", "redis", "kafka")
SINKS = ("redis", "kafka")
# The only schema that Spark accepts for this format.
_BINARY_FILES = "path string, modificationTime timestamp, length long, content binary"
_KAFKA_CLASS = "org.apache.spark.sql.kafka010.KafkaSourceProvider"


def open_source(session: SparkSession, source: str, messages: str, options: Mapping[str, str]) -> DataFrame:
    """A streaming DataFrame with the column `path`, or with `entry` and `value`."""
    if source == "files":
        return _files(session, messages, options)
    if source == "redis":
        return _redis(session).readStream.format("redis-streams").options(keys=messages, **options).load()
    if source == "kafka":
        require_kafka(session)
        rows = session.readStream.format("kafka").options(**{"subscribe": messages} | dict(options)).load()
        return rows.selectExpr("concat_ws(':', topic, partition, offset) AS entry", "value")
    raise InvalidInput(f"no source '{source}'; it is one of {', '.join(SOURCES)}")


def _files(session: SparkSession, folder: str, options: Mapping[str, str]) -> DataFrame:
    """Only the paths: a worker that reads a file itself needs 0.4 of the time that it takes with Java, accepts any
    schema, and can reject an unreadable file.
    """
    if not Path(folder).is_dir():
        raise InvalidInput(f"{folder} is no folder; a stream reads message files that are moved into one")
    ours = {
        "pathGlobFilter": f"*{{{','.join(ENDINGS)}}}",
        "recursiveFileLookup": "true",
        "maxFileAge": "36500d",  # also files with an old date
    }
    reader = session.readStream.format("binaryFile").schema(_BINARY_FILES).options(**ours | dict(options))
    return reader.load(folder).select("path")


def open_sink(sink: str | Sink | None, options: Mapping[str, str]) -> Sink | None:
    """A function that takes the matches of a batch, or None."""
    if sink is None or callable(sink):
        return sink
    if sink == "redis":
        return lambda matches, batch: _to_redis(matches, batch, options)
    if sink == "kafka":
        return lambda matches, batch: _to_kafka(matches, batch, options)
    raise InvalidInput(f"no sink '{sink}'; it is one of {', '.join(SINKS)}, or code that takes (matches, batch)")


def _to_redis(matches: DataFrame, batch: int, options: Mapping[str, str]) -> None:
    _redis(matches.sparkSession)
    writer = matches.write.format("redis-streams").mode("append")
    retry_slow_start(writer.options(**dict(options) | {"batch": str(batch)}).save)


def _to_kafka(matches: DataFrame, batch: int, options: Mapping[str, str]) -> None:
    require_kafka(matches.sparkSession)
    pair = "concat(message, ':', subscription) AS key"
    value = f"to_json(struct(message, subscription, score, {batch} AS batch)) AS value"
    matches.selectExpr(pair, value).write.format("kafka").options(**options).save()


def require_kafka(session: SparkSession) -> None:
    jvm: Any = session._jvm
    try:
        jvm.org.apache.spark.util.Utils.classForName(_KAFKA_CLASS, True, False)
    except Exception:
        raise MissingPart(
            "Kafka needs Spark's connector: start Spark with "
            f"spark.jars.packages=org.apache.spark:spark-sql-kafka-0-10_2.13:{session.version}"
        ) from None


def _redis(session: SparkSession) -> SparkSession:
    from nearcast.spark.streaming.redis_source import RedisStreams

    session.dataSource.register(RedisStreams)
    return session

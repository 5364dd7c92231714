"""A notebook in a file: it starts a session of its own, as someone would who has never heard of our settings.

python foreign_session.py classic|connect INDEX MESSAGES OUT writes what it finds as JSON. INDEX and MESSAGES are paths
of a saved index and of a Parquet file with columns id, tokens, x, y, time and more.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import nearcast as nc
from nearcast import spark as ncs
from nearcast.spark.runtime.failures import failure_reason


def start(mode: str) -> SparkSession:
    builder = SparkSession.builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "3")
    builder = builder.config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
    if mode == "connect":
        return builder.remote("local[2]").getOrCreate()
    return builder.master("local[2]").getOrCreate()


def pairs(matches: DataFrame, *more: str) -> list[list[Any]]:
    return sorted([row[name] for name in ("message", "subscription", *more)] for row in matches.collect())


def nested(messages: DataFrame) -> DataFrame:
    """Columns as sources have them: nested, renamed, of other types, beside others that nobody needs."""
    point = F.when(F.col("x").isNotNull(), F.struct(F.col("x").cast("float").alias("lon"), F.col("y").alias("lat")))
    doc = F.struct(F.array_join("tokens", " ").alias("Body.text"), point.alias("at"))
    noise = F.map_from_arrays(F.array(F.lit("a")), F.array(F.lit(1.5))).alias("noise")
    return messages.select(
        F.col("id").cast("int").alias("key"), doc.alias("doc"), noise, "time", F.lit(b"x").alias("raw")
    )


def arrow_types(session: SparkSession, table: pa.Table) -> DataFrame:
    """A DataFrame from dictionaries and large strings, which also travel to Python as large ones."""
    session.conf.set("spark.sql.execution.arrow.useLargeVarTypes", "true")
    coded = pa.array(["north", "south"] * (table.num_rows // 2 + 1))[: table.num_rows].dictionary_encode()
    text = pa.array([" ".join(tokens) for tokens in table["tokens"].to_pylist()], pa.large_string())
    return session.createDataFrame(
        pa.table({"id": table["id"], "text": text, "x": table["x"], "y": table["y"], "city": coded})
    )


def main(mode: str, index_path: str, messages_path: str, out: str) -> None:
    session = start(mode)
    index = ncs.open_index(index_path)
    messages = session.read.parquet(messages_path)
    found: dict[str, Any] = {"version": session.version, "remote": "connect" in type(session).__module__}
    found["plain"] = pairs(ncs.match(messages, index))
    found["sharded"] = pairs(ncs.match(messages, index, layout="sharded"))
    columns = {"id": "key", "text": "doc.`Body.text`", "lon": "doc.at.lon", "lat": "doc.at.lat"}
    found["nested"] = pairs(ncs.match(nested(messages), index, columns=columns, keep=["doc.at", "raw"]))
    found["rejects"] = sorted(row.column for row in ncs.rejects(nested(messages), columns=columns).collect())
    found["arrow types"] = pairs(
        ncs.match(arrow_types(session, pq.read_table(messages_path)), index, keep=["city"]), "city"
    )
    found["tokens"] = messages.select(ncs.tokens(F.lit("Pizza, naïve"))).first()[0]
    found["vocabulary"] = {row.token: row.frequency for row in ncs.vocabulary(messages).collect()}
    if hasattr(F, "arrow_udtf"):
        messages.createOrReplaceTempView("messages")
        ncs.register(session, index)
        found["sql"] = pairs(session.sql("SELECT * FROM nearcast_match(TABLE(messages))"))
    stream = session.readStream.schema(messages.schema).parquet(messages_path + "*")
    query = ncs.match(stream, index, metrics="found").writeStream.format("memory").queryName("streamed")
    query.trigger(availableNow=True).start().awaitTermination()
    found["stream"] = pairs(session.table("streamed"))
    try:
        ncs.match(messages.withColumn("x", F.lit(999.0)), index, on_bad="raise").collect()
    except PySparkException as error:
        found["error"] = failure_reason(error)
    try:
        nc.open_index(index_path).match(messages)
    except nc.NearcastError as error:
        found["refused"] = str(error)
    with open(out, "w", encoding="utf-8") as file:
        json.dump(found, file)
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""The competitor: the join that one would write in plain Spark SQL, on the same tables.

Subscriptions are keyed by their rarest token and messages are exploded into tokens. Both are joined on the token; the
joined rows are filtered by box and by the other tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nearcast.geo.space import BOX_COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def plain_join(session: SparkSession, subscriptions: str, messages: str, out: str) -> None:
    """Write the matches of `subscriptions` (tokens and a box) and `messages` (tokens at a point) as Parquet.

    Messages are spread over the cores first: a file of less than 128 MB would be one task. A hint forces a sort-merge
    join: with Spark's own choice, a broadcast join, 150,000 x 150,000 took 98 s instead of 27.
    """
    wanted, sent = session.read.parquet(subscriptions), session.read.parquet(messages)
    sent = sent.repartition(2 * max(1, int(session.sparkContext.defaultParallelism)))
    _joined(_keyed_by_rarest(wanted, sent), sent).write.mode("overwrite").parquet(out)


def _keyed_by_rarest(subscriptions: DataFrame, messages: DataFrame) -> DataFrame:
    """The columns id, token (the one that the fewest messages contain), subscription (tokens and box)."""
    from pyspark.sql import functions as F

    counts = messages.select(F.explode("tokens").alias("token")).groupBy("token").count()
    exploded = subscriptions.select("id", "tokens", *BOX_COLUMNS, F.explode("tokens").alias("token"))
    counted = exploded.join(counts, "token", "left").withColumn("count", F.coalesce("count", F.lit(0)))
    rarest = F.min_by(F.struct("token", "tokens", *BOX_COLUMNS), "count").alias("subscription")
    return counted.groupBy("id").agg(rarest).withColumn("token", F.col("subscription.token"))


def _joined(subscriptions: DataFrame, messages: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    sent = messages.select(
        F.col("id").alias("message"), "x", "y", "tokens", F.explode(F.array_distinct("tokens")).alias("token")
    )
    s = "subscription"
    inside = F.col("x").between(F.col(f"{s}.xmin"), F.col(f"{s}.xmax"))
    inside &= F.col("y").between(F.col(f"{s}.ymin"), F.col(f"{s}.ymax"))
    rest = F.size(F.array_except(F.col(f"{s}.tokens"), F.col("tokens"))) == 0
    return sent.join(subscriptions.hint("merge"), "token").where(inside & rest).select("message", F.col("id").alias(s))

"""Kinds whose results live on, in shards: state that is stepped from micro-batch to micro-batch. No pyspark.

Each subscription belongs to one shard, by its id. Each message goes to all shards.
"""

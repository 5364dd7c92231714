"""Subscriptions divided over shards: who holds which rows, and what each shard does. Knows no Spark."""

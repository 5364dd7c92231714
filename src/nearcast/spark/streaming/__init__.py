"""Streaming on Spark: messages in micro-batches, changes to subscriptions, matches written exactly once (stream.py)."""

"""Streaming on Spark: messages in micro-batches, changes to subscriptions, matches written exactly once.

stream.py runs the query. broker.py and redis_source.py open its sources and sinks; input_chooser.py chooses what a
batch is matched against; task.py is the work of a worker; compaction.py builds changes into a new base.
"""

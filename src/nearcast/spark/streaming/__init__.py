"""Streaming jobs on Spark: sources, micro-batches, compaction."""

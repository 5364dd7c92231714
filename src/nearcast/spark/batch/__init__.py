"""Batch jobs on Spark: ingest, vocabulary, build, match."""

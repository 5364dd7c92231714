"""Batch jobs on Spark, in the order in which a pipeline runs them: ingest, vocabulary, statistics, build, match."""

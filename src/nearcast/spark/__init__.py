"""The pipeline on Spark: raw files to clean tables, sharded indexes and matches, in batch and as a stream.

runtime/    Java, the session, workers, failures and progress
batch/      the jobs: ingest, vocabulary, statistics, build, match
streaming/  matching in micro-batches while subscriptions change
pipeline/   the jobs as steps that are skipped when nothing changed
"""

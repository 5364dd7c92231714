"""The pipeline on Spark: raw files to clean tables, sharded indexes and matches, in batch and as a stream."""

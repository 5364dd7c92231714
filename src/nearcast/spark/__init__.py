"""The pipeline on Spark: raw files to clean tables, shards of an index, and matches, in batch and as a stream."""

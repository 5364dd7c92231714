"""Benchmarks of the pipeline on Spark, against a plain SQL join and against the library."""

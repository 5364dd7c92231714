"""Benchmarks of the pipeline on Spark."""

"""Benchmarks: methods side by side on the same workload, in one process; papers run again; the pipeline on Spark."""

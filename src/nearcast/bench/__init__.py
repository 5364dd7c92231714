"""Benchmarks: methods side by side on the same workload, in one process.

workloads   subscriptions and messages, synthetic or drawn from real texts
runs        measuring: build, match, update, threads, the table API; sweeps over parameters
reports     tables and pictures of results
papers      the experiments of a paper, run again, and the paper's claims checked
spark_runs  the pipeline on Spark against a plain SQL join and against the library
sweeps      the shipped sweeps, as TOML files
"""

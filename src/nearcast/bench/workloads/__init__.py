"""Benchmark workloads: which subscriptions and messages a benchmark uses."""

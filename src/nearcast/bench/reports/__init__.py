"""Benchmark results as files, tables and pictures."""

"""Benchmark runs: methods are built over the same rows, compared pair by pair, and timed in turns."""

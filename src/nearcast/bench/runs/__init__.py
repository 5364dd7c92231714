"""Benchmark runs: methods built, compared and timed side by side."""

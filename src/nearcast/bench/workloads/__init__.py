"""Benchmark workloads: which subscriptions and messages a benchmark uses.

workload.py        every parameter of a workload, the presets, TOML files
corpus.py          the source of messages: synthetic (words.py, places.py), or real texts (text_corpus.py)
subscriptions.py   subscriptions drawn from messages; expressions.py joins their tokens by AND, OR and NOT
tables.py          the same as Arrow tables and Parquet files
random_numbers.py  random numbers that depend on (seed, stream, number) alone
"""

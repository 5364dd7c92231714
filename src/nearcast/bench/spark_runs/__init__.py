"""Benchmarks of the pipeline on Spark.

benchmark.py      all measurements of `nearcast bench spark`
rates.py          throughput against a plain SQL join (sql_join.py) and against the library
overheads.py      time of an empty task and of a small micro-batch
worker_memory.py  memory of workers that map the same index;  cpu_time.py  CPU time of all processes
"""

"""Batch jobs on Spark, in the order in which a pipeline runs them.

ingest.py (with ingest_parts.py and ingest_duplicate_ids.py) writes clean tables; vocabulary.py and statistics.py count
tokens and more; build.py (with duplicate_ids.py and idf.py) builds a sharded index; match.py (with match_task.py)
matches a messages table against it. warm_up.py compiles the kernels of all of them.
"""

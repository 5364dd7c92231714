"""The commands of `nearcast pipeline`: steps.py (ingest, vocabulary, build, match), stream.py, run.py, size.py.

spark_console.py opens the Spark session and shows its progress.
"""

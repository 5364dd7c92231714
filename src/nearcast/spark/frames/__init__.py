"""DataFrames in, DataFrames out: matching in any Spark session, from any source into any sink.

match.py matches and rejects, build.py makes an index, functions.py has the column functions and the SQL table function.
columns.py maps the user's columns. What workers do is in sharding/frame_match.py, without pyspark.
"""

"""DataFrames in, DataFrames out: matching in any Spark session, from any source into any sink.

match.py is the entry, columns.py maps the user's columns, text.py and sql.py are the column functions and the SQL
table function. What workers do is in sharding/frame_match.py, without pyspark.
"""

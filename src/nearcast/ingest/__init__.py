"""Raw records to clean tables, independent of the framework that runs it.

sources.py finds files and cuts them into parts. ingest_part.py takes one part from raw file to table files: the readers
of each format (csv_records.py, json_records.py, parquet_records.py) return what records.py defines, and validate.py
divides it into good rows and rejects. row_groups.py reads the clean tables again, in pieces.
"""

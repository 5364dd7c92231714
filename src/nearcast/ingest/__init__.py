"""Raw records to clean tables, independent of the framework that runs it.

The modules, in the order in which data meets them:

    sources.py, lines.py             which files, cut into parts; lines of text files
    mapping.py                       which raw column becomes which column of a table
    csv_records.py, json_records.py, parquet_records.py, broker_values.py
                                     readers of one format each; all return what records.py defines
    readers.py                       the reader of each file
    validate.py                      good rows and rejects
    ingest_part.py                   one part from raw file to table files (parquet_writers.py, output_folder.py)
    row_groups.py                    the clean tables read again, in pieces
    reports/                         a page about a table
"""

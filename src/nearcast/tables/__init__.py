"""Reads tables (Arrow, pandas, Polars, Parquet, CSV, JSON Lines) into validated columns, and writes tables of results.

A bad row raises an error or goes to a table of rejects.
"""

from nearcast.tables.faults import REJECTS_SCHEMA, OnBad
from nearcast.tables.ids import Id, IdColumn, Names
from nearcast.tables.matches import MATCHES_SCHEMA, RANKED_SCHEMA, matches_table
from nearcast.tables.messages import Dialect, read_messages
from nearcast.tables.read import as_arrow, write_table
from nearcast.tables.subscriptions import Subscriptions, read_subscriptions, token_terms
from nearcast.tables.weights import idf, idf_weights, read_weights, subscriptions_per_term

__all__ = [
    "MATCHES_SCHEMA",
    "RANKED_SCHEMA",
    "REJECTS_SCHEMA",
    "Dialect",
    "Id",
    "IdColumn",
    "Names",
    "OnBad",
    "Subscriptions",
    "as_arrow",
    "idf",
    "idf_weights",
    "matches_table",
    "read_messages",
    "read_subscriptions",
    "read_weights",
    "token_terms",
    "subscriptions_per_term",
    "write_table",
]

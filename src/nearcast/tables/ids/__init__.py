"""Ids of any kind: whole numbers, strings and UUIDs outside, int64 inside."""

from nearcast.tables.ids.from_python import checked_id, id_column, one_id
from nearcast.tables.ids.id_columns import IdColumn, as_text, id_type_in, made_ids, read_ids
from nearcast.tables.ids.id_types import INT64, STRING, UUID, Id, IdType, header_of, of_header
from nearcast.tables.ids.names import Names

__all__ = [
    "INT64",
    "STRING",
    "UUID",
    "Id",
    "IdColumn",
    "IdType",
    "Names",
    "as_text",
    "checked_id",
    "header_of",
    "id_column",
    "id_type_in",
    "made_ids",
    "of_header",
    "one_id",
    "read_ids",
]

"""Filters on message columns, in braces: `{severity >= 3, type in (road, rail)}`."""

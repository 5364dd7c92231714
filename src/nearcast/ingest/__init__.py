"""Raw files -> blocks of records: every line or row becomes a row of a table or a fault, never nothing."""

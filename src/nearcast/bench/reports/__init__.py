"""Reports on benchmark results: their numbers, as tables and as pictures."""

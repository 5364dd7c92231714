"""Brokers whose entries can be read again: positions, ranges of entries, and the gaps that a broker's cleaning left."""

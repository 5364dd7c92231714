"""A sharded index under change: the change log, the delta, and the micro-batches of a stream."""
